// SPDX-License-Identifier: BSD-3-Clause
//
// What the device functions need of a group: its leader, a barrier, and a broadcast from the leader to all members.
#ifndef MPIX_IMPL_GROUP_GROUP_CUH
#define MPIX_IMPL_GROUP_GROUP_CUH

#include <mpix/detail/host_launch.h>
#include <mpix/detail/order.h>

#ifdef __CUDACC__
#include <cooperative_groups.h>
#endif

namespace mpix {

struct thread_group {
    MPIX_FN int thread_rank() const { return 0; }
    MPIX_FN int num_threads() const { return 1; }
    MPIX_FN void sync() const {}
    MPIX_FN uint64_t broadcast(uint64_t value) const { return value; }
    MPIX_FN bool all(bool mine) const { return mine; }
};

MPIX_FN thread_group this_thread() { return {}; }

namespace detail {

template <class Group>
inline constexpr bool is_lone_thread = false;
template <>
inline constexpr bool is_lone_thread<thread_group> = true;

// broadcast_bool: the leader's truth value, for every member. It is also a barrier: what any member wrote before is
// visible to all members after. broadcast_code: the same for a number below 256 (an MPI error class, a slot of a
// landing). It is slower on a GPU, so it is for rare paths.

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN bool broadcast_bool(const Group &group, bool leaders) {
    return group.broadcast(leaders) != 0;
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int broadcast_code(const Group &group, int leaders) {
    return static_cast<int>(group.broadcast(static_cast<uint64_t>(leaders)));
}

// vote_all: whether all members say yes. It is a barrier as well.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN bool vote_all(const Group &group, bool mine) {
    return group.all(mine);
}

// reconverge: brings the lanes of a warp together, so that they do the next thing at the same time. A lane that has
// taken a branch of its own may go on alone even after a barrier, and then its stores are separate: 256 KiB stored by a
// warp took 80 us for that reason, and 61 us with this call.
template <class Group>
MPIX_FN void reconverge(const Group &) {}

#ifdef __CUDACC__

// A warp or a part of one: sync orders the members' memory, shfl carries the value.
template <class Tile>
MPIX_FN int tile_broadcast(const Tile &tile, int leaders) {
#ifdef __CUDA_ARCH__
    tile.sync();
    return tile.shfl(leaders, 0);
#else
    (void)tile;
    return leaders;
#endif
}

template <unsigned Size, class Parent>
MPIX_FN bool broadcast_bool(const cooperative_groups::thread_block_tile<Size, Parent> &tile, bool leaders) {
    static_assert(Size <= 32, "mpix takes warps, parts of warps and whole blocks; no tiles of several warps");
    return tile_broadcast(tile, leaders) != 0;
}
template <unsigned Size, class Parent>
MPIX_FN int broadcast_code(const cooperative_groups::thread_block_tile<Size, Parent> &tile, int leaders) {
    static_assert(Size <= 32, "mpix takes warps, parts of warps and whole blocks; no tiles of several warps");
    return tile_broadcast(tile, leaders);
}
MPIX_FN bool broadcast_bool(const cooperative_groups::coalesced_group &tile, bool leaders) {
    return tile_broadcast(tile, leaders) != 0;
}
MPIX_FN int broadcast_code(const cooperative_groups::coalesced_group &tile, int leaders) {
    return tile_broadcast(tile, leaders);
}

template <unsigned Size, class Parent>
MPIX_FN void reconverge(const cooperative_groups::thread_block_tile<Size, Parent> &tile) {
#ifdef __CUDA_ARCH__
    tile.sync();
#else
    (void)tile;
#endif
}
MPIX_FN void reconverge(const cooperative_groups::coalesced_group &tile) {
#ifdef __CUDA_ARCH__
    tile.sync();
#else
    (void)tile;
#endif
}

template <class Tile>
MPIX_FN bool tile_all(const Tile &tile, bool mine) {
#ifdef __CUDA_ARCH__
    tile.sync();
    return tile.all(mine) != 0;
#else
    (void)tile;
    return mine;
#endif
}
template <unsigned Size, class Parent>
MPIX_FN bool vote_all(const cooperative_groups::thread_block_tile<Size, Parent> &tile, bool mine) {
    return tile_all(tile, mine);
}
MPIX_FN bool vote_all(const cooperative_groups::coalesced_group &tile, bool mine) { return tile_all(tile, mine); }

// A block: the barrier itself carries one bit, so the kernel needs no shared memory for this.
MPIX_FN bool broadcast_bool(const cooperative_groups::thread_block &block, bool leaders) {
#ifdef __CUDA_ARCH__
    return __syncthreads_or(block.thread_rank() == 0 && leaders) != 0;
#else
    (void)block;
    return leaders;
#endif
}
MPIX_FN bool vote_all(const cooperative_groups::thread_block &block, bool mine) {
#ifdef __CUDA_ARCH__
    return __syncthreads_and(mine) != 0;
#else
    (void)block;
    return mine;
#endif
}
MPIX_FN int broadcast_code(const cooperative_groups::thread_block &block, int leaders) {
    int code = 0;
    for (int bit = 1; bit < 256; bit <<= 1)
        if (broadcast_bool(block, (leaders & bit) != 0)) code |= bit;
    return code;
}

#endif  // __CUDACC__

}  // namespace detail
}  // namespace mpix

#endif  // MPIX_IMPL_GROUP_GROUP_CUH
