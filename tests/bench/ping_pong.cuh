// SPDX-License-Identifier: BSD-3-Clause
//
// A ping-pong inside one kernel a rank, by one group or by several blocks. Between several blocks there is no barrier:
// each one waits for the whole message and then sends its own share of the answer.
//
// A port is one end of a way to send: put(group, i) sends the caller's share of message i, await(group, i) waits for
// the whole one, and says whether it came, the same to all threads of the group. begin(group), if there is one, makes
// the port that plays. next(group, i), if there is one, comes when both messages i are through.
#ifndef MPIX_TESTS_BENCH_PING_PONG_CUH
#define MPIX_TESTS_BENCH_PING_PONG_CUH

#include <cooperative_groups.h>
#include <mpix/launch.h>

#include "tests/bench/pair.cuh"

namespace bench {

// thread_block: one thread of a block sends, and the whole block waits.
enum class scope { thread, warp, block, thread_block };
constexpr const char *scope_names[] = {"thread", "warp", "block", "thread-block"};

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

// Not every port is played by every group.
template <class Port, class Group>
concept puts_by = requires(const Port &port, const Group &group) {
    port.put(group, 0);
};
template <class Port, class Group>
concept begun_by = requires(const Port &port, const Group &group) {
    port.begin(group);
};
template <class Port, class Group>
concept followed_by = requires(Port &port, const Group &group) {
    port.next(group, 0);
};
template <class Port, class Group>
concept played_by = puts_by<Port, Group> || begun_by<Port, Group>;

template <class Port>
struct from_thread_to_block {
    const Port &port;

    __device__ void put(const whole_block &block, int i) const {
        block.sync();
        if (block.thread_rank() == 0) port.put(lone_thread{}, i);
    }
    __device__ bool await(const whole_block &block, int i) const { return port.await(block, i); }
};

// The time of all round trips but the first, in which the two kernels meet. One-dimensional blocks.
template <class Port, class Group>
__device__ void play(const Group &group, Port port, int count, bool first, times *out) {
    const bool notes = blockIdx.x == 0 && threadIdx.x == 0;
    for (int i = 0; i < count; ++i) {
        if (first) port.put(group, i);
        if (!port.await(group, i)) {  // no use to go on; the peer gives up as well
            if (threadIdx.x == 0) atomicAdd(&out->errors, 1ull);
            return;
        }
        if (!first) port.put(group, i);
        if constexpr (followed_by<Port, Group>) port.next(group, i);
        if (i == 0 && notes) out->start = now_ns();
    }
    if (notes) out->stop = now_ns();
}

template <class Port, class Group>
__device__ void begin(const Group &group, const Port &port, int count, bool first, times *out) {
    if constexpr (begun_by<Port, Group>)
        play(group, port.begin(group), count, first, out);
    else
        play(group, port, count, first, out);
}

// `Most` threads: of a larger block each has fewer registers.
template <scope By, class Port, int Most>
__global__ void __launch_bounds__(Most, 1) ping_pong(const Port port, int count, bool first, times *out) {
    const whole_block block = cooperative_groups::this_thread_block();
    if constexpr (By == scope::thread)
        begin(lone_thread{}, port, count, first, out);
    else if constexpr (By == scope::warp)
        begin(cooperative_groups::tiled_partition<32>(block), port, count, first, out);
    else if constexpr (By == scope::thread_block)
        play(block, from_thread_to_block<Port>{port}, count, first, out);
    else
        begin(block, port, count, first, out);
}

inline double half_round_trip_us(const times &t, int count) {
    return static_cast<double>(t.stop - t.start) * 1e-3 / (2.0 * (count - 1));
}

constexpr int usual_threads = 512, most_threads = 1024;

template <scope By, class Port>
auto *ping_pong_of(int threads) {
    return threads <= usual_threads ? ping_pong<By, Port, usual_threads> : ping_pong<By, Port, most_threads>;
}

// Whether so many blocks of each rank are resident at a time, as they have to be; the ranks may have one GPU between
// them.
template <class Port>
bool resident_together(const pair &c, int blocks, int threads) {
    MPIX_Occupancy occupancy;
    check(mpix::get_occupancy(ping_pong_of<scope::block, Port>(threads), dim3(static_cast<unsigned>(threads)), 0,
                              &occupancy),
          "mpix::get_occupancy");
    return (c.devices > 1 ? 1 : 2) * blocks <= occupancy.blocks;
}

// How many threads of a block play, if a block has `threads`.
constexpr int players(scope by, int threads) { return by == scope::thread ? 1 : by == scope::warp ? 32 : threads; }

// Of a message each way: who sends and waits, and how often in an epoch.
struct exchange_shape {
    scope by;
    int blocks, threads;
    uint64_t bytes;
    int count, epochs;

    uint64_t total() const { return bytes * static_cast<uint64_t>(count); }
};

// Half of a round trip of an epoch by the device's clock, in microseconds.
template <class Port>
double ping_pong_us(const pair &c, const exchange_shape &s, const Port &port, const char *what) {
    const scope by = s.by;
    const int threads = s.threads;
    const auto start = [&](auto *kernel) {
        kernel<<<static_cast<unsigned>(s.blocks), static_cast<unsigned>(players(by, threads)), 0, c.stream>>>(
            port, s.count, c.rank == 0, c.result);
    };
    if constexpr (played_by<Port, whole_block>)
        if (by == scope::block) start(ping_pong_of<scope::block, Port>(threads));
    if constexpr (played_by<Port, whole_warp>)
        if (by == scope::warp) start(ping_pong<scope::warp, Port, usual_threads>);
    if constexpr (played_by<Port, lone_thread>)
        if (by == scope::thread) start(ping_pong<scope::thread, Port, usual_threads>);
    if constexpr (puts_by<Port, lone_thread>)
        if (by == scope::thread_block) start(ping_pong_of<scope::thread_block, Port>(threads));
    check(cudaGetLastError(), what);
    return half_round_trip_us(c.outcome(what), s.count);
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PING_PONG_CUH
