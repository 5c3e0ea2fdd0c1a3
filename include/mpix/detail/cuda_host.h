// SPDX-License-Identifier: BSD-3-Clause
//
// For the library's own host code on the CUDA runtime.
#ifndef MPIX_DETAIL_CUDA_HOST_H
#define MPIX_DETAIL_CUDA_HOST_H

#include <cuda.h>
#include <cuda_runtime.h>
#include <mpix/detail/cuda_context.h>
#include <mpix/detail/cuda_driver.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mpix::detail {

// A sentence for the user.
inline std::string cuda_error(const char *what, cudaError_t error) {
    cudaGetLastError();       // ours to report, not for the user's next check to find
    std::string text = what;  // not by operator +, of which GCC 12 warns (-Warray-bounds)
    text += ": ";
    return text += cudaGetErrorString(error);
}

// The allocation of GPU memory around an address: only the driver interface tells. A sentence if there is none.
inline std::string find_allocation(std::uint64_t address, std::uint64_t &start, std::uint64_t &bytes) {
    using get_attribute = CUresult (*)(void *, CUpointer_attribute, CUdeviceptr);
    using get_range = int (*)(unsigned long long *, std::size_t *, unsigned long long);
    static const auto attribute = driver_function<get_attribute>("cuPointerGetAttribute");
    static const auto range = driver_function<get_range>("cuMemGetAddressRange");
    if (attribute == nullptr || range == nullptr) return "the CUDA driver lacks cuMemGetAddressRange";
    int device = -1;
    if (const CUresult error = attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address); error != CUDA_SUCCESS)
        return driver_error("cuPointerGetAttribute", error);
    const device_scope scope(device);  // without a context the driver says nothing
    if (!scope.problem().empty()) return scope.problem();
    unsigned long long first = 0;
    std::size_t size = 0;
    if (const int error = range(&first, &size, address); error != 0) return driver_error("cuMemGetAddressRange", error);
    start = first;
    bytes = size;
    return {};
}

// Whether all work before the event is done; `problem` is set if it failed.
inline bool event_passed(cudaEvent_t event, const char *what, std::string &problem) {
    const beside_captures beside;  // a query makes no context (CUDA 13.0, tried)
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
    }
    if (state != cudaSuccess) problem = cuda_error(what, state);
    return true;
}

// Kernels of `device` may access memory of `other`.
inline std::string enable_peer(int device, int other) {
    const device_scope scope(device);
    if (!scope.problem().empty()) return scope.problem();
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaSuccess) return {};
    if (error != cudaErrorPeerAccessAlreadyEnabled)
        return cuda_error("no peer access between two GPUs: cudaDeviceEnablePeerAccess", error);
    cudaGetLastError();
    return {};
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_CUDA_HOST_H
