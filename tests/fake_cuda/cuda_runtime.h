// SPDX-License-Identifier: BSD-3-Clause
//
// As much of the CUDA runtime as the sources need that are tested with it where there is no CUDA. A test says what
// memory there is, and sees what is mapped.
#ifndef MPIX_TESTS_FAKE_CUDA_CUDA_RUNTIME_H
#define MPIX_TESTS_FAKE_CUDA_CUDA_RUNTIME_H

#include <cuda.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorAlreadyMapped = 208,
    cudaErrorNotReady = 600,
    cudaErrorPeerAccessAlreadyEnabled = 704
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
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
};
// By address.
inline std::map<unsigned long long, allocation> memory;

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
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
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
    return CUDA_SUCCESS;
}

}  // namespace fake_cuda

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char *cudaGetErrorString(cudaError_t) { return "it failed"; }
inline cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned, unsigned,
                                                    cudaDriverEntryPointQueryResult *found) {
    *found = cudaDriverEntryPointSuccess;
    if (std::string_view(name) == "cuMemGetAddressRange")
        *out = reinterpret_cast<void *>(&fake_cuda::get_range);
    else
        *out = reinterpret_cast<void *>(&fake_cuda::get_attribute);
    return cudaSuccess;
}
inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
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
