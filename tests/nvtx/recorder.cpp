// SPDX-License-Identifier: BSD-3-Clause
//
// A tool for NVTX: writes down the ranges of the domain "mpix", and prints them on request. Loaded by NVTX_INJECTION64_PATH.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace {

std::mutex mutex;
std::string record;           // "name(" at a push, ")" at a pop
std::set<std::string> names;  // registered; their addresses are the handles
int domains = 0, registrations = 0;
int of_mpix;  // its address is the domain

bool is_ours(nvtxDomainHandle_t domain) { return reinterpret_cast<int *>(domain) == &of_mpix; }

nvtxDomainHandle_t create(const char *name) {
    const std::lock_guard lock(mutex);
    if (std::strcmp(name, "mpix") != 0) return nullptr;
    ++domains;
    return reinterpret_cast<nvtxDomainHandle_t>(&of_mpix);
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text) {
    const std::lock_guard lock(mutex);
    if (!is_ours(domain)) return nullptr;
    ++registrations;
    return reinterpret_cast<nvtxStringHandle_t>(const_cast<std::string *>(&*names.insert(text).first));
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what) {
    const std::lock_guard lock(mutex);
    if (!is_ours(domain)) return 0;
    record += what->messageType == NVTX_MESSAGE_TYPE_REGISTERED && what->message.registered != nullptr
                  ? *reinterpret_cast<const std::string *>(what->message.registered)
                  : "not registered";
    record += "(";
    return 0;
}

int pop(nvtxDomainHandle_t domain) {
    const std::lock_guard lock(mutex);
    if (is_ours(domain)) record += ")";
    return 0;
}

template <class Function>
NvtxFunctionPointer as_pointer(Function *function) {
    return reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const auto *const callbacks = static_cast<const NvtxExportTableCallbacks *>(get_table(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
        size <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = as_pointer(create);
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = as_pointer(register_string);
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = as_pointer(push);
    *table[NVTX_CBID_CORE2_DomainRangePop] = as_pointer(pop);
    return 1;
}

// What has been written down since the last call, cut to `size` bytes.
__attribute__((visibility("default"))) void nvtx_recorder_take(char *text, std::size_t size) {
    const std::lock_guard lock(mutex);
    std::snprintf(text, size, "%s", record.c_str());
    record.clear();
}

__attribute__((visibility("default"))) void nvtx_recorder_counts(int *made, int *registered, int *distinct) {
    const std::lock_guard lock(mutex);
    *made = domains;
    *registered = registrations;
    *distinct = static_cast<int>(names.size());
}
}
