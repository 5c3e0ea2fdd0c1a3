// SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "device/halo/exchange_in_order.cuh"

namespace mpix::gpu {
namespace {

using halo::device_exchange;
using halo::ordered_exchange;

constexpr int threads = 256;

// Calls work(block, exchange, step) with a copy of the exchange in shared memory.
template <class Work>
__device__ void with_exchange(const ordered_exchange &o, const Work &work) {
    const auto block = cooperative_groups::this_thread_block();
    __shared__ device_exchange x;
    const std::int64_t step = halo::next_step(o);
    if (block.thread_rank() == 0) x = halo::in_phase(o, step);
    block.sync();
    work(block, x, step);
}

__global__ void __launch_bounds__(threads) start_exchange(const __grid_constant__ ordered_exchange o) {
    with_exchange(o, [](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::start_in_order(block, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

__global__ void __launch_bounds__(threads) finish_exchange(const __grid_constant__ ordered_exchange o) {
    with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::finish_in_order(block, o, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

__global__ void __launch_bounds__(threads) drain_exchange(const __grid_constant__ ordered_exchange o) {
    with_exchange(o, [](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::drain_in_order(block, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

}  // namespace

int launch_exchange(halo::ordered_call call, const ordered_exchange &o, int blocks, CUstream_st *stream) {
    const auto grid = static_cast<unsigned>(blocks);
    switch (call) {
        case halo::ordered_call::start:
            start_exchange<<<grid, threads, 0, stream>>>(o);
            break;
        case halo::ordered_call::finish:
            finish_exchange<<<grid, threads, 0, stream>>>(o);
            break;
        case halo::ordered_call::drain:
            drain_exchange<<<grid, threads, 0, stream>>>(o);
            break;
    }
    return cudaGetLastError();
}

int load_exchange_kernels() {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, start_exchange);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, finish_exchange);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, drain_exchange);
    return error;
}

}  // namespace mpix::gpu
