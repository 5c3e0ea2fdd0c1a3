// SPDX-License-Identifier: BSD-3-Clause
//
// A barrier of all blocks of a grid that are resident together: there are fewer than multiprocessors.
#ifndef MPIX_TESTS_BENCH_GRID_CUH
#define MPIX_TESTS_BENCH_GRID_CUH

#include <cstdint>

namespace bench {

// `target`: what the count has come to when all have arrived. False after some ten seconds.
__device__ inline bool grid_barrier(unsigned *count, unsigned target) {
    __syncthreads();
    bool good = true;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1u);
        unsigned seen = 0;
        for (unsigned polls = 0; seen < target && polls != 1u << 25; ++polls)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
        good = seen >= target;
    }
    return __syncthreads_and(good) != 0;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_GRID_CUH
