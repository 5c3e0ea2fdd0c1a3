// SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "device/halo/stream_exchange.cuh"

namespace mpix::gpu {
namespace {

using halo::device_exchange;
using halo::stream_exchange_args;

constexpr int threads = 256;

// Calls work(block, exchange, step) with a copy of the exchange in shared memory.
template <class Work>
__device__ void with_exchange(const stream_exchange_args &o, const Work &work) {
    const auto block = cooperative_groups::this_thread_block();
    __shared__ device_exchange x;
    const std::int64_t step = halo::next_step(o);
    if (block.thread_rank() == 0) x = halo::in_phase(o, step);
    block.sync();
    work(block, x, step);
}

__global__ void __launch_bounds__(threads) start_exchange(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::start_in_order(block, o, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

__global__ void __launch_bounds__(threads) finish_exchange(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::finish_in_order(block, o, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

__global__ void __launch_bounds__(threads, 2) run_exchange(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::run_in_order(block, o, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

__global__ void __launch_bounds__(threads) drain_sends(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::drain_sends_in_order(block, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

__global__ void __launch_bounds__(threads) drain_receives(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::drain_receives_in_order(block, x, step, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
    });
}

using kernel = void (*)(stream_exchange_args);
constexpr kernel all_kernels[] = {start_exchange, finish_exchange, run_exchange, drain_sends,
                                  drain_receives};  // in stream_call's order

}  // namespace

int launch_exchange(halo::stream_call call, const stream_exchange_args &o, int blocks, CUstream_st *stream) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(threads);
    config.stream = stream;
    // Its own result: the last error may be of an earlier call of the program.
    return cudaLaunchKernelEx(&config, all_kernels[static_cast<int>(call)], o);
}

int load_exchange_kernels() {
    cudaError_t error = cudaSuccess;
    const auto load = [](cudaError_t &failed, kernel one) {
        cudaFuncAttributes attributes;
        if (failed == cudaSuccess) failed = cudaFuncGetAttributes(&attributes, one);
    };
    load(error, start_exchange);
    load(error, finish_exchange);
    load(error, run_exchange);
    load(error, drain_sends);
    load(error, drain_receives);
    return error;
}

}  // namespace mpix::gpu
