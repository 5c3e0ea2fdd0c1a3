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
#include <thread>
#endif

namespace tutorial {

using namespace example;

#ifdef __CUDACC__

using word = cuda::atomic_ref<int, cuda::thread_scope_device>;
inline constexpr auto acquire = cuda::memory_order_acquire, release = cuda::memory_order_release;
__device__ inline void pause() {}

#else

using word = std::atomic_ref<int>;
inline constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;
inline void pause() { std::this_thread::yield(); }

#endif

/** One thread: waits until *at is at least `value`. What was written before that was released is visible then. */
KERNEL_FN inline void await(int *at, int value) {
    while (word(*at).load(acquire) < value) pause();
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
            await(arrived, (mine / blocks + 1) * blocks);
        }
        block.sync();
    }
};

}  // namespace tutorial

#endif  // TUTORIAL_BARRIER_CUH
