// SPDX-License-Identifier: BSD-3-Clause
#include "host/profiled_range.h"

#if MPIX_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace mpix {

bool ranges_are_shown = false;

#if MPIX_HAVE_NVTX
namespace {

nvtxDomainHandle_t domain = nullptr;
nvtxStringHandle_t names[static_cast<unsigned>(range_name::number_of_names)] = {};

}  // namespace

// The header looks for a tool at its first call: the library that NVTX_INJECTION64_PATH names. Without one it answers with
// null.
void open_ranges() {
    if (domain != nullptr) return;
    domain = nvtxDomainCreateA("mpix");
    if (domain == nullptr) return;
#define MPIX_REGISTER_RANGE(name, text) \
    names[static_cast<unsigned>(range_name::name)] = nvtxDomainRegisterStringA(domain, text);
    MPIX_RANGES(MPIX_REGISTER_RANGE)
#undef MPIX_REGISTER_RANGE
    ranges_are_shown = true;
}

void profiled_range::push(range_name name) {
    nvtxEventAttributes_t what{};
    what.version = NVTX_VERSION;
    what.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    what.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    what.message.registered = names[static_cast<unsigned>(name)];
    nvtxDomainRangePushEx(domain, &what);
}

void profiled_range::pop() { nvtxDomainRangePop(domain); }
#else
void open_ranges() {}
void profiled_range::push(range_name) {}
void profiled_range::pop() {}
#endif

}  // namespace mpix
