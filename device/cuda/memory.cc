// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/memory.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

namespace mpix::gpu {

std::string allocate(int device, std::uint64_t bytes, void *&memory) {
    const detail::device_scope scope(device);
    if (!scope.problem().empty()) return scope.problem();
    const auto failed = [&](const char *call, cudaError_t error) {
        cudaGetLastError();
        return std::string(call) + ": " + cudaGetErrorString(error);
    };
    if (const cudaError_t error = cudaMalloc(&memory, bytes == 0 ? 1 : bytes); error != cudaSuccess)
        return failed("cudaMalloc", error);
    cudaError_t error = cudaMemset(memory, 0, bytes);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error == cudaSuccess) return {};
    cudaFree(memory);
    return failed("cudaMemset", error);
}

void release(int device, void *memory) {
    const detail::device_scope scope(device);
    cudaFree(memory);
}

}  // namespace mpix::gpu
