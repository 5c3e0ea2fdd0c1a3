// SPDX-License-Identifier: BSD-3-Clause
//
// As much of the CUDA runtime as the sources need that are tested with it where there is no CUDA. A test says what
// memory there is, and sees what is mapped.
#ifndef MPIX_TESTS_FAKE_CUDA_CUDA_RUNTIME_H
#define MPIX_TESTS_FAKE_CUDA_CUDA_RUNTIME_H

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorAlreadyMapped = 208,
    cudaErrorNotReady = 600,
    cudaErrorPeerAccessAlreadyEnabled = 704
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
constexpr unsigned cudaEnableDefault = 0, cudaIpcMemLazyEnablePeerAccess = 1;
using cudaEvent_t = void *;
struct cudaIpcMemHandle_t {
    char reserved[64];
};

namespace fake_cuda {

enum kind { plain, managed, pool, mapped };
struct allocation {
    std::size_t bytes;
    kind of;
    bool shareable = false;  // mapped: by files
    unsigned long long id = 1;
    int device = 0;
};
// By address.
inline std::map<unsigned long long, allocation> memory;

// The devices' primary contexts, and how often each became current. `current`: the calling thread's stack of contexts, the
// current one last. `capture_mode`: the thread's CUstreamCaptureMode.
struct context {
    int pushed = 0;
    bool refused = false;  // to retain it fails
    bool stale = false;    // to make it current fails, until it is retained again
};
inline context contexts[4];
inline thread_local std::vector<context *> current;
inline thread_local int capture_mode = 0;
inline int device_of(const context *of) { return static_cast<int>(of - contexts); }

inline int retain_context(void **out, int device) {
    if (contexts[device].refused) return CUDA_ERROR_INVALID_VALUE;
    contexts[device].stale = false;
    *out = &contexts[device];
    return CUDA_SUCCESS;
}
inline int get_current(void **out) {
    *out = current.empty() ? nullptr : current.back();
    return CUDA_SUCCESS;
}
inline int get_current_device(int *out) {
    if (current.empty()) return CUDA_ERROR_INVALID_VALUE;
    *out = device_of(current.back());
    return CUDA_SUCCESS;
}
inline int push_current(void *of) {
    context *const made = static_cast<context *>(of);
    if (made->stale) return CUDA_ERROR_INVALID_VALUE;
    ++made->pushed;
    current.push_back(made);
    return CUDA_SUCCESS;
}
inline int pop_current(void **out) {
    if (get_current(out); current.empty()) return CUDA_ERROR_INVALID_VALUE;
    current.pop_back();
    return CUDA_SUCCESS;
}
inline int exchange_capture_mode(int *mode) {
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
}

// Mappings, as often as they were opened, and all bases that were closed.
inline std::vector<void *> open, closed;
// Opening fails while any of these is open.
inline std::vector<void *> in_the_way;
inline char mappings[16][64];

inline const std::pair<const unsigned long long, allocation> *find(unsigned long long address) {
    auto it = memory.upper_bound(address);
    if (it == memory.begin()) return nullptr;
    --it;
    return address < it->first + it->second.bytes ? &*it : nullptr;
}
inline int get_range(unsigned long long *start, std::size_t *bytes, unsigned long long address) {
    const auto *const found = find(address);
    if (found == nullptr || current.empty()) return CUDA_ERROR_INVALID_VALUE;
    *start = found->first;
    *bytes = found->second.bytes;
    return CUDA_SUCCESS;
}
inline CUresult get_attribute(void *out, CUpointer_attribute which, CUdeviceptr address) {
    const auto *const found = find(address);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const kind k = found->second.of;
    const unsigned managed_memory = k == managed, for_ipc = k == plain;
    void *const of_pool = k == pool ? &memory : nullptr;
    if (which == CU_POINTER_ATTRIBUTE_IS_MANAGED) std::memcpy(out, &managed_memory, sizeof managed_memory);
    if (which == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) std::memcpy(out, &for_ipc, sizeof for_ipc);
    if (which == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) std::memcpy(out, &of_pool, sizeof of_pool);
    if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        std::memcpy(out, &found->second.device, sizeof found->second.device);
    if (which == CU_POINTER_ATTRIBUTE_BUFFER_ID) std::memcpy(out, &found->second.id, sizeof found->second.id);
    return CUDA_SUCCESS;
}

// Addresses that were reserved, and what is mapped there: the id of an allocation, which is its handle and what its file
// holds. Handles that were not released.
inline std::map<unsigned long long, unsigned long> reserved;
inline std::map<unsigned long long, unsigned long long> mapped_here;
inline int handles = 0;
inline unsigned long long next_address = 0x7000000, not_imported = 0;
inline std::vector<int> admitted;  // devices

template <class Function>
void *as_entry(Function *function) {
    return reinterpret_cast<void *>(function);
}
inline void *find_function(std::string_view name) {
#define MPIX_FAKE(function) \
    if (name == #function) return as_entry(&function)
    MPIX_FAKE(cuMemRetainAllocationHandle);
    MPIX_FAKE(cuMemGetAllocationPropertiesFromHandle);
    MPIX_FAKE(cuMemExportToShareableHandle);
    MPIX_FAKE(cuMemImportFromShareableHandle);
    MPIX_FAKE(cuMemRelease);
    MPIX_FAKE(cuMemAddressReserve);
    MPIX_FAKE(cuMemAddressFree);
    MPIX_FAKE(cuMemMap);
    MPIX_FAKE(cuMemUnmap);
    MPIX_FAKE(cuMemSetAccess);
#undef MPIX_FAKE
    if (name == "cuDevicePrimaryCtxRetain") return as_entry(&retain_context);
    if (name == "cuCtxGetCurrent") return as_entry(&get_current);
    if (name == "cuCtxGetDevice") return as_entry(&get_current_device);
    if (name == "cuCtxPushCurrent") return as_entry(&push_current);
    if (name == "cuCtxPopCurrent") return as_entry(&pop_current);
    if (name == "cuThreadExchangeStreamCaptureMode") return as_entry(&exchange_capture_mode);
    if (name == "cuMemGetAddressRange") return as_entry(&get_range);
    return name == "cuPointerGetAttribute" ? as_entry(&get_attribute) : nullptr;
}

}  // namespace fake_cuda

inline CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address) {
    const auto *const found = fake_cuda::find(reinterpret_cast<unsigned long long>(address));
    if (found == nullptr || found->second.of != fake_cuda::mapped) return CUDA_ERROR_INVALID_VALUE;
    *out = found->second.id;
    ++fake_cuda::handles;
    return CUDA_SUCCESS;
}
inline CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle) {
    for (const auto &[address, a] : fake_cuda::memory)
        if (a.id == handle)
            out->requestedHandleTypes =
                a.shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    return CUDA_SUCCESS;
}
inline CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                             unsigned long long) {
    const int file = memfd_create("fake_cuda", 0);
    if (write(file, &handle, sizeof handle) != sizeof handle) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out, &file, sizeof file);
    return CUDA_SUCCESS;
}
inline CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *file,
                                               CUmemAllocationHandleType) {
    const int number = static_cast<int>(reinterpret_cast<std::uintptr_t>(file));
    if (pread(number, out, sizeof *out, 0) != sizeof *out || *out == fake_cuda::not_imported)
        return CUDA_ERROR_INVALID_VALUE;
    ++fake_cuda::handles;
    return CUDA_SUCCESS;
}
inline CUresult cuMemRelease(CUmemGenericAllocationHandle) {
    --fake_cuda::handles;
    return CUDA_SUCCESS;
}
inline CUresult cuMemAddressReserve(CUdeviceptr *out, unsigned long bytes, unsigned long, CUdeviceptr,
                                    unsigned long long) {
    *out = fake_cuda::next_address;
    fake_cuda::next_address += bytes;
    fake_cuda::reserved[*out] = bytes;
    return CUDA_SUCCESS;
}
inline CUresult cuMemAddressFree(CUdeviceptr address, unsigned long) {
    fake_cuda::reserved.erase(address);
    return CUDA_SUCCESS;
}
inline CUresult cuMemMap(CUdeviceptr address, unsigned long, unsigned long, CUmemGenericAllocationHandle handle,
                         unsigned long long) {
    fake_cuda::mapped_here[address] = handle;
    return CUDA_SUCCESS;
}
inline CUresult cuMemUnmap(CUdeviceptr address, unsigned long bytes) {
    auto &all = fake_cuda::mapped_here;
    all.erase(all.lower_bound(address), all.lower_bound(address + bytes));
    return CUDA_SUCCESS;
}
inline CUresult cuMemSetAccess(CUdeviceptr, unsigned long, const CUmemAccessDesc *access, unsigned long) {
    fake_cuda::admitted.push_back(access->location.id);
    return CUDA_SUCCESS;
}

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char *cudaGetErrorString(cudaError_t) { return "it failed"; }
inline cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned, unsigned,
                                                    cudaDriverEntryPointQueryResult *found) {
    *out = fake_cuda::find_function(name);
    *found = *out != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

// A handle's first byte is the number of its mapping.
inline cudaError_t cudaIpcOpenMemHandle(void **base, cudaIpcMemHandle_t handle, unsigned) {
    for (void *const it : fake_cuda::open)
        for (void *const other : fake_cuda::in_the_way)
            if (it == other) return cudaErrorAlreadyMapped;
    *base = fake_cuda::mappings[static_cast<int>(handle.reserved[0])];
    fake_cuda::open.push_back(*base);
    return cudaSuccess;
}
inline cudaError_t cudaIpcCloseMemHandle(void *base) {
    fake_cuda::closed.push_back(base);
    for (auto it = fake_cuda::open.begin(); it != fake_cuda::open.end(); ++it)
        if (*it == base) {
            fake_cuda::open.erase(it);
            return cudaSuccess;
        }
    return cudaErrorAlreadyMapped;
}

#endif  // MPIX_TESTS_FAKE_CUDA_CUDA_RUNTIME_H
