// SPDX-License-Identifier: BSD-3-Clause
//
// A ping-pong inside one kernel a rank, by one group or by several blocks. Between several blocks there is no barrier:
// each one waits for the whole message and then sends its own share of the answer.
//
// A port is one end of a way to send: put(group, i) sends the caller's share of message i, await(group, i) waits for the
// whole one, and says whether it came, the same to all threads of the group.
#ifndef MPIX_TESTS_BENCH_PING_PONG_CUH
#define MPIX_TESTS_BENCH_PING_PONG_CUH

#include <cooperative_groups.h>

#include "tests/bench/pair.cuh"

namespace bench {

enum class scope { thread, warp, block };
constexpr const char *scope_names[] = {"thread", "warp", "block"};

struct lone_thread {
    __device__ unsigned thread_rank() const { return 0; }
    __device__ unsigned num_threads() const { return 1; }
    __device__ void sync() const {}
};
using whole_warp = cooperative_groups::thread_block_tile<32, cooperative_groups::thread_block>;
using whole_block = cooperative_groups::thread_block;

// Also a barrier.
__device__ inline bool all_agree(const whole_block &, bool good) { return __syncthreads_and(good) != 0; }
__device__ inline bool all_agree(const whole_warp &warp, bool good) {
    warp.sync();
    return warp.all(good) != 0;
}
__device__ inline bool all_agree(const lone_thread &, bool good) { return good; }

// The time of all round trips but the first, in which the two kernels meet. One-dimensional blocks.
template <class Port, class Group>
__device__ void play(const Group &group, const Port &port, int count, bool first, times *out) {
    const bool notes = blockIdx.x == 0 && threadIdx.x == 0;
    for (int i = 0; i < count; ++i) {
        if (first) port.put(group, i);
        if (!port.await(group, i)) {  // no use to go on; the peer gives up as well
            if (threadIdx.x == 0) atomicAdd(&out->errors, 1ull);
            return;
        }
        if (!first) port.put(group, i);
        if (i == 0 && notes) out->start = now_ns();
    }
    if (notes) out->stop = now_ns();
}

template <scope By, class Port>
__global__ void __launch_bounds__(512, 1) ping_pong(const Port port, int count, bool first, times *out) {
    const whole_block block = cooperative_groups::this_thread_block();
    if constexpr (By == scope::thread)
        play(lone_thread{}, port, count, first, out);
    else if constexpr (By == scope::warp)
        play(cooperative_groups::tiled_partition<32>(block), port, count, first, out);
    else
        play(block, port, count, first, out);
}

inline double half_round_trip_us(const times &t, int count) {
    return static_cast<double>(t.stop - t.start) * 1e-3 / (2.0 * (count - 1));
}

// Whether so many blocks of each rank are resident at a time, as they have to be; the ranks may have one GPU between them.
template <class Port>
bool resident_together(const pair &c, int blocks, int threads) {
    int on_each = 0, processors = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&on_each, ping_pong<scope::block, Port>, threads, 0),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, c.device), "cudaDeviceGetAttribute");
    return (c.devices > 1 ? 1 : 2) * blocks <= on_each * processors;
}

// Half of a round trip by several blocks, by the device's clock, in microseconds.
template <class Port>
double blocks_us(const pair &c, int blocks, int threads, const Port &port, int count, const char *what) {
    ping_pong<scope::block><<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, c.stream>>>(
        port, count, c.rank == 0, c.result);
    check(cudaGetLastError(), what);
    return half_round_trip_us(c.outcome(what), count);
}

// The same by one group; `threads` of a block.
template <class Port>
double group_us(const pair &c, scope by, int threads, const Port &port, int count, const char *what) {
    if (by == scope::block) return blocks_us(c, 1, threads, port, count, what);
    if (by == scope::thread) ping_pong<scope::thread><<<1, 1, 0, c.stream>>>(port, count, c.rank == 0, c.result);
    if (by == scope::warp) ping_pong<scope::warp><<<1, 32, 0, c.stream>>>(port, count, c.rank == 0, c.result);
    check(cudaGetLastError(), what);
    return half_round_trip_us(c.outcome(what), count);
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PING_PONG_CUH
