// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/ucp_library.h"

#include <dlfcn.h>

namespace mpix::transport::ucx {

status ucp_library::load() {
    // Of this ABI. Its dependencies (libucs) come with it, and are searched by dlsym as well.
    void *const handle = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return failure(std::string("UCX cannot be loaded: ") + dlerror());
    const char *missing = nullptr;
    const auto find = [&](const char *name) {
        void *const symbol = dlsym(handle, name);
        if (symbol == nullptr && missing == nullptr) missing = name;
        return symbol;
    };
#define MPIX_UCP_FIND(function) function = reinterpret_cast<decltype(function)>(find(#function));
    MPIX_UCP_FUNCTIONS(MPIX_UCP_FIND)
#undef MPIX_UCP_FIND
    if (missing != nullptr) return failure(std::string("libucp.so.0 lacks ") + missing);
    return {};
}

}  // namespace mpix::transport::ucx
