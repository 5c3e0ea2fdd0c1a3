// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the caller's grid has more blocks than the GPU holds at a time: then some have not begun, and a wait may be
// for them. Only threads are counted; a GPU may hold fewer blocks, for lack of registers or shared memory.
#ifndef MPIX_IMPL_EPOCH_RESIDENCY_CUH
#define MPIX_IMPL_EPOCH_RESIDENCY_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

struct grid_facts {
    uint64_t blocks;
    unsigned threads;          // of a block
    unsigned multiprocessors;  // at least as many as there are
    unsigned warps;            // that a multiprocessor holds, at least
};

// False for a grid of which nothing is known.
MPIX_FN bool exceeds_gpu(const grid_facts &grid) {
    constexpr unsigned warp = 32;
    const unsigned warps = (grid.threads + warp - 1) / warp;
    return warps != 0 && grid.blocks > uint64_t{grid.multiprocessors} * (grid.warps / warps);
}

#ifndef __CUDA_ARCH__
// Host threads are all there. A test can play a larger grid.
inline thread_local grid_facts played_grid{0, 0, 0, 0};
#endif

MPIX_FN bool grid_exceeds_gpu() {
#ifdef __CUDA_ARCH__
    unsigned multiprocessors, warps;
    asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
    asm("mov.u32 %0, %%nwarpid;" : "=r"(warps));
    return exceeds_gpu(
        {uint64_t{gridDim.x} * gridDim.y * gridDim.z, blockDim.x * blockDim.y * blockDim.z, multiprocessors, warps});
#else
    return exceeds_gpu(played_grid);
#endif
}

// Why a wait has timed out.
MPIX_COLD_FN mpix_cause timed_out() { return grid_exceeds_gpu() ? MPIX_CAUSE_RESIDENCY : MPIX_CAUSE_DEADLINE; }

// How long a wait lasts by default, in nanoseconds; 0: for ever. In checked kernels, not long for a grid that is too
// large.
MPIX_FN uint64_t default_limit_ns(const mpix_prequest *r) {
    const uint64_t limit = r->stall_ns;
#if defined(MPIX_CHECK)
    constexpr uint64_t most = 10000000000;
    if ((limit == 0 || limit > most) && grid_exceeds_gpu()) return most;
#endif
    return limit;
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_RESIDENCY_CUH
