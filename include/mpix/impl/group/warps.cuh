// SPDX-License-Identifier: BSD-3-Clause
//
// The warps of a group, for work that has many small parts.
#ifndef MPIX_IMPL_GROUP_WARPS_CUH
#define MPIX_IMPL_GROUP_WARPS_CUH

#include <mpix/impl/group/group.cuh>

namespace mpix::detail {

// Calls work(warp, index, warps) in all threads: `index` is the number of the caller's warp among those of the group. A group
// that does not consist of several whole warps counts as one warp.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Work>
MPIX_FN void by_warps(const Group &group, const Work &work) {
    work(group, 0, 1);
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
template <class Work>
MPIX_FN void by_warps(const cooperative_groups::thread_block &block, const Work &work) {
#ifdef __CUDA_ARCH__
    constexpr unsigned size = 32;
    const unsigned threads = block.num_threads();
    if (threads > size && threads % size == 0)
        work(cooperative_groups::tiled_partition<size>(block), static_cast<int>(block.thread_rank() / size),
             static_cast<int>(threads / size));
    else
        work(block, 0, 1);
#else
    work(block, 0, 1);
#endif
}
#endif

}  // namespace mpix::detail

#endif  // MPIX_IMPL_GROUP_WARPS_CUH
