// SPDX-License-Identifier: BSD-3-Clause
//
// How blocks wait for each other, on GPUs and on host threads.
#ifndef TUTORIAL_BARRIER_CUH
#define TUTORIAL_BARRIER_CUH

#include <mpix/device.cuh>

#include "gpu_or_host.cuh"

#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace tutorial {

using namespace example;

#ifdef __CUDACC__

using word = cuda::atomic_ref<int, cuda::thread_scope_device>;
inline constexpr auto acquire = cuda::memory_order_acquire, release = cuda::memory_order_release;
__device__ inline void wait_for_change(int *, int) {}
__device__ inline void wake_all(int *) {}

#else

using word = std::atomic_ref<int>;
inline constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;
// A thread that waits sleeps. If it yielded, all waiting threads would pass the cores to each other.
inline void wait_for_change(int *at, int now) { word(*at).wait(now, acquire); }
inline void wake_all(int *at) { word(*at).notify_all(); }

#endif

/** One thread: waits until *at is at least `value`. What the thread that told so had written is visible then. */
KERNEL_FN inline void await(int *at, int value) {
    for (int now = word(*at).load(acquire); now < value; now = word(*at).load(acquire)) wait_for_change(at, now);
}

/** One thread: sets *at to `value`, for those that await it. */
KERNEL_FN inline void tell(int *at, int value) {
    word(*at).store(value, release);
    wake_all(at);
}

/** A barrier of all blocks of a kernel. */
struct grid_barrier {
    int *arrived;  // counts up from 0
    int blocks;

    template <class Block>
    KERNEL_FN void operator()(const Block &block) const {
        block.sync();
        if (block.thread_rank() == 0) {
            const int mine = word(*arrived).fetch_add(1);
            wake_all(arrived);
            await(arrived, (mine / blocks + 1) * blocks);
        }
        block.sync();
    }
};

}  // namespace tutorial

#endif  // TUTORIAL_BARRIER_CUH
