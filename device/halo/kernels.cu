// SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "device/halo/launch.h"
#include "device/halo/stream_exchange.cuh"

namespace mpix::gpu {
namespace {

using halo::device_exchange;
using halo::stream_exchange_args;

constexpr int threads = 256;

// Calls work(block, exchange, step) with a copy of the exchange in shared memory, unless a call has failed before.
template <class Work>
__device__ std::int64_t with_exchange(const stream_exchange_args &o, const Work &work) {
    const auto block = cooperative_groups::this_thread_block();
    __shared__ device_exchange x;
    __shared__ bool failed;
    const std::int64_t step = halo::next_step(o);
    if (block.thread_rank() == 0) {
        failed = halo::detail::has_failed(o.x);
        x = halo::in_phase(o, step);
    }
    block.sync();
    if (!failed) work(block, x, step);
    return step;
}

// Dynamic scheduling by an atomic counter (see start_in_order). The next index is fetched while the block works on the
// present one, so the atomic's latency is hidden.
class block_scheduler {
public:
    __device__ block_scheduler(std::uint64_t *counter, int count, int first, int preassigned)
        : counter_(counter), count_(count), first_(first), preassigned_(preassigned) {}
    // Called by all threads of the block.
    __device__ int take() {
        __shared__ int taken[2];  // used in turn: a slow warp may still read the last one
        int mine = first_;
        if (first_ < 0) {
            if (!fetched_) fetch_next();
            if (threadIdx.x == 0) taken[turn_] = next_;
            __syncthreads();
            mine = taken[turn_];
            turn_ ^= 1;
        }
        first_ = -1;
        if (mine >= count_) return count_;
        fetch_next();
        return mine;
    }

private:
    __device__ void fetch_next() {
        if (threadIdx.x == 0) next_ = preassigned_ + static_cast<int>(mpix::detail::fetch_add_relaxed_gpu(counter_));
        fetched_ = true;
    }
    std::uint64_t *counter_;
    int count_, first_, preassigned_, next_ = 0, turn_ = 0;
    bool fetched_ = false;
};

__device__ int this_block() { return static_cast<int>(blockIdx.x); }
__device__ int all_blocks() { return static_cast<int>(gridDim.x); }

__global__ void __launch_bounds__(threads) start_exchange(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::start_in_order<block_scheduler>(block, o, x, step, this_block(), all_blocks());
    });
}

__global__ void __launch_bounds__(threads) finish_exchange(const __grid_constant__ stream_exchange_args o) {
    const std::int64_t step = with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t now) {
        halo::finish_in_order(block, o, x, now, this_block(), all_blocks());
    });
    halo::end_in_order(cooperative_groups::this_thread_block(), o, step, all_blocks());
}

__global__ void __launch_bounds__(threads, halo::run_blocks_of_multiprocessor)
    run_exchange(const __grid_constant__ stream_exchange_args o) {
    const std::int64_t step = with_exchange(o, [&](const auto &block, const device_exchange &x, std::int64_t now) {
        halo::run_in_order<block_scheduler>(block, o, x, now, this_block(), all_blocks());
    });
    halo::end_in_order(cooperative_groups::this_thread_block(), o, step, all_blocks());
}

__global__ void __launch_bounds__(threads) drain_sends(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::drain_sends_in_order(block, x, step, this_block(), all_blocks());
    });
}

__global__ void __launch_bounds__(threads) drain_receives(const __grid_constant__ stream_exchange_args o) {
    with_exchange(o, [](const auto &block, const device_exchange &x, std::int64_t step) {
        halo::drain_receives_in_order(block, x, step, this_block(), all_blocks());
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
