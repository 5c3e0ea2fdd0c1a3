// SPDX-License-Identifier: BSD-3-Clause
//
// A barrier of all blocks of a kernel. Its launch is executor::launch_cooperative.
#ifndef MPIX_TESTS_DEVICE_GRID_BARRIER_HPP
#define MPIX_TESTS_DEVICE_GRID_BARRIER_HPP

#include "tests/device/executor.hpp"

namespace device_test {

struct grid_barrier {
    std::uint64_t *arrived;  // counts up; 0 before a launch with another number of blocks
    int blocks;

    template <class Block>
    DEVICE_FN void operator()(const Block &block) const {
        block.sync();
        if (block.thread_rank() == 0) {
            const std::uint64_t n = static_cast<std::uint64_t>(blocks);
#ifdef __CUDACC__
            __threadfence();
            const std::uint64_t mine = atomicAdd(reinterpret_cast<unsigned long long *>(arrived), 1ull);
            const std::uint64_t all = (mine / n + 1) * n;
            std::uint64_t now;
            do asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(now) : "l"(arrived) : "memory");
            while (now < all);
#else
            const std::atomic_ref<std::uint64_t> counter(*arrived);
            const std::uint64_t all = (counter.fetch_add(1, std::memory_order_acq_rel) / n + 1) * n;
            for (int looks = 0; counter.load(std::memory_order_acquire) < all; ++looks)
                if (looks >= 100 || !mpix::detail::try_yield()) host_poll_pause();
#endif
        }
        block.sync();
    }
};

}  // namespace device_test

#endif  // MPIX_TESTS_DEVICE_GRID_BARRIER_HPP
