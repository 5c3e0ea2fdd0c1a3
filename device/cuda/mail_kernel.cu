// SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/device/gpu_mail.h>

namespace mpix::gpu {
namespace {

constexpr int threads = 256, blocks = 16;

__global__ void __launch_bounds__(threads) take(MPIX_Prequest receive) {
    const auto block = cooperative_groups::this_thread_block();
    const int partitions = mpix::detail::request_of(receive)->partitions;
    for (int j = static_cast<int>(blockIdx.x); j < partitions; j += static_cast<int>(gridDim.x))
        parrived(block, receive, j);
}

__global__ void lone_copy(char *to, const char *from, int64_t bytes) {
    mpix::detail::group_copy(this_thread(), to, from, static_cast<uint64_t>(bytes));
}

}  // namespace

int launch_lone_copy(char *to, const char *from, int64_t bytes, stream_handle order) {
    lone_copy<<<1, 1, 0, order>>>(to, from, bytes);
    return cudaGetLastError();
}

int launch_taking(mpix_prequest *receive, stream_handle order) {
    take<<<blocks, threads, 0, order>>>(receive);
    return cudaGetLastError();
}

int load_taking() {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, take);
}

}  // namespace mpix::gpu
