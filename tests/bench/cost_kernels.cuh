// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of cost.cu: one group that calls again and again, many that call at the same time, and a kernel that
// computes for a while and asks once. Times are in ticks of the multiprocessor's clock, and each kernel notes how long
// a tick was.
#ifndef MPIX_TESTS_BENCH_COST_KERNELS_CUH
#define MPIX_TESTS_BENCH_COST_KERNELS_CUH

#include <mpix/device.cuh>

#include "tests/bench/grid.cuh"
#include "tests/bench/ping_pong.cuh"

namespace bench {

constexpr int most_samples = 1 << 15;
constexpr uint64_t least_span_ns = 300'000;  // that a tick's length is known well enough

// What a kernel notes, on the device.
struct notes {
    uint64_t ticks, ns;    // how long something took by both clocks
    uint64_t first, last;  // globaltimer: first caller's begin, last one's end
    unsigned samples[most_samples];
};

__device__ inline uint64_t ticks_now() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

// The caller's group of that size; blocks are one-dimensional.
template <scope By>
__device__ auto group_of() {
    if constexpr (By == scope::thread)
        return mpix::this_thread();
    else if constexpr (By == scope::warp)
        return cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    else
        return cooperative_groups::this_thread_block();
}

class both_clocks {
public:
    __device__ both_clocks() : ns_(now_ns()), ticks_(ticks_now()) {}
    // One thread.
    __device__ void write(notes *to) const {
        while (now_ns() - ns_ < least_span_ns) {
        }
        to->ticks = ticks_now() - ticks_;
        to->ns = now_ns() - ns_;
    }

private:
    uint64_t ns_, ticks_;
};

// ---- what is called; whether it did what it should -----------------------------------------------------------------

struct nothing {
    template <class Group>
    __device__ bool operator()(const Group &, int) const {
        return true;
    }
};
struct ready {
    MPIX_Prequest send;
    template <class Group>
    __device__ bool operator()(const Group &group, int p) const {
        return mpix::pready(group, p, send) == MPI_SUCCESS;
    }
};
struct contribute {
    MPIX_Prequest send;
    template <class Group>
    __device__ bool operator()(const Group &group, int p) const {
        return mpix::pready_contribute(group, p, send) == MPI_SUCCESS;
    }
};
struct look {
    MPIX_Prequest receive;
    bool expected;
    template <class Group>
    __device__ bool operator()(const Group &group, int p) const {
        return mpix::parrived(group, receive, p) == expected;
    }
};
struct take {
    MPIX_Prequest receive;
    template <class Group>
    __device__ bool operator()(const Group &group, int p) const {
        return mpix::wait_arrived(group, receive, p, patience_ns) == MPI_SUCCESS;
    }
};
// The least that asking can take: one trip to the GPU's memory.
struct one_load {
    const uint64_t *word;  // not 0
    template <class Group>
    __device__ bool operator()(const Group &group, int) const {
        return group.thread_rank() != 0 || mpix::detail::reached_acquire(word, 1);
    }
};

// What a group finds out ahead of its calls, outside of what is timed.
template <class Group, class Call>
__device__ Call ahead(const Group &, const Call &call) {
    return call;
}
struct known_ready {
    mpix::prepared_send send;
    template <class Group>
    __device__ bool operator()(const Group &group, int p) const {
        return mpix::pready(group, p, send) == MPI_SUCCESS;
    }
};
struct known_look {
    mpix::prepared_receive receive;
    template <class Group>
    __device__ bool operator()(const Group &group, int p) const {
        return mpix::parrived(group, receive, p);
    }
};
struct prepared_ready {
    MPIX_Prequest send;
};
struct prepared_look {
    MPIX_Prequest receive;
};
template <class Group>
__device__ known_ready ahead(const Group &group, const prepared_ready &call) {
    return {mpix::prepare_send(group, call.send)};
}
template <class Group>
__device__ known_look ahead(const Group &group, const prepared_look &call) {
    return {mpix::prepare_receive(group, call.receive)};
}

// ---- one group ----------------------------------------------------------------------------------------------------

// A call for each of `count` partitions, timed by the group's first thread.
template <scope By, class Call>
__global__ void __launch_bounds__(512, 1) alone(const Call plan, int count, notes *out, times *result) {
    const auto group = group_of<By>();
    const auto call = ahead(group, plan);
    const both_clocks clocks;
    bool good = true;
    for (int p = 0; p < count && good; ++p) {
        group.sync();
        const uint64_t before = ticks_now();
        good = call(group, p);
        const uint64_t after = ticks_now();
        if (threadIdx.x == 0) out->samples[p] = static_cast<unsigned>(after - before);
    }
    if (!good) atomicAdd(&result->errors, 1ull);
    if (threadIdx.x == 0) clocks.write(out);
}

// The same without times, for partitions `begin` to `end` - 1, by the blocks of the grid.
template <class Call>
__global__ void __launch_bounds__(512, 1) for_all(const Call call, int begin, int end, times *result) {
    const auto block = cooperative_groups::this_thread_block();
    bool good = true;
    for (int p = begin + static_cast<int>(blockIdx.x); p < end && good; p += static_cast<int>(gridDim.x))
        good = call(block, p);
    if (!good) atomicAdd(&result->errors, 1ull);
}

// ---- many at the same time ----------------------------------------------------------------------------------------

// `callers` groups, of all blocks, each of which marks `rounds` partitions ready, from the moment on that all are
// there.
template <scope By>
__global__ void __launch_bounds__(256)
    at_once(MPIX_Prequest send, int callers, int rounds, unsigned *arrived, notes *out, times *result) {
    const auto group = group_of<By>();
    const int threads = By == scope::thread ? 1 : By == scope::warp ? 32 : static_cast<int>(blockDim.x);
    const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / threads;
    const bool leads = static_cast<int>(threadIdx.x) % threads == 0;
    const both_clocks clocks;
    bool good = grid_barrier(arrived, gridDim.x);
    const uint64_t begin = now_ns();
    for (int r = 0; r < rounds && good; ++r) {
        const int p = r * callers + me;
        const uint64_t before = ticks_now();
        good = mpix::pready(group, p, send) == MPI_SUCCESS;
        const uint64_t after = ticks_now();
        if (leads) out->samples[p] = static_cast<unsigned>(after - before);
    }
    if (leads) {
        atomicMin(reinterpret_cast<unsigned long long *>(&out->first), static_cast<unsigned long long>(begin));
        atomicMax(reinterpret_cast<unsigned long long *>(&out->last), static_cast<unsigned long long>(now_ns()));
    }
    if (!good) atomicAdd(&result->errors, 1ull);
    if (blockIdx.x == 0 && threadIdx.x == 0) clocks.write(out);
}

// ---- a kernel that computes ---------------------------------------------------------------------------------------

// Each block computes; before that it makes a call for its partition, if `asks`, by its first thread, its first warp or
// as a whole. With and without are one code, so that they differ in the call alone.
template <scope By, class Call>
__global__ void __launch_bounds__(512, 1)
    busy(const Call plan, bool asks, int iterations, float *sink, notes *out, times *result) {
    const auto group = group_of<By>();
    const both_clocks clocks;
    const unsigned asking = By == scope::thread ? 1 : By == scope::warp ? 32 : blockDim.x;
    decltype(ahead(group, plan)) call{};
    if (threadIdx.x < asking) call = ahead(group, plan);
    __syncthreads();
    const uint64_t before = ticks_now();
    bool good = true;
    if (asks && threadIdx.x < asking) good = call(group, static_cast<int>(blockIdx.x));
    good = __syncthreads_and(good) != 0;
    float x = static_cast<float>(threadIdx.x);
#pragma unroll 1
    for (int i = 0; i < iterations; ++i) x = fmaf(x, 0.999f, 0.5f);
    if (x < 0) *sink = x;  // never
    __syncthreads();
    const uint64_t after = ticks_now();
    if (threadIdx.x != 0) return;
    out->samples[blockIdx.x] = static_cast<unsigned>(after - before);
    if (!good) atomicAdd(&result->errors, 1ull);
    if (blockIdx.x == 0) clocks.write(out);
}

// ---- which way the partitions went ----------------------------------------------------------------------------------

enum class way : int { direct, by_inline, deferred };

// Of a send's epoch that is over in this kernel's GPU, by groups of so many threads.
static __global__ void way_out(MPIX_Prequest send, unsigned threads, uint64_t epoch, int *out) {
    const mpix_prequest *const r = mpix::detail::request_of(send);
    const bool sent_inline = mpix::detail::is_inline_capable(send, threads) && mpix::detail::may_send_inline(r, epoch);
    *out = static_cast<int>(mpix::detail::load_relaxed(&r->defer_epoch) == epoch ? way::deferred
                            : sent_inline                                        ? way::by_inline
                                                                                 : way::direct);
}
// Of a receive's first partition, which has been taken.
static __global__ void way_in(MPIX_Prequest receive, uint64_t epoch, int *out) {
    const uint64_t *const told = mpix::detail::request_of(receive)->told;
    const bool sent_inline = told != nullptr && mpix::detail::load_relaxed(told) == epoch;
    *out = static_cast<int>(sent_inline ? way::by_inline : way::direct);
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_COST_KERNELS_CUH
