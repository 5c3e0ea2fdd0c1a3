// SPDX-License-Identifier: BSD-3-Clause
//
// Many messages one way, by mpix, before an answer: the sender's groups mark the partitions ready, the receiver's wait
// for them, each group for its own, and when all have come the receiver answers with a partition of 8 bytes. Rounds of
// this follow each other inside one kernel a rank; the first, in which the kernels meet, is not counted.
#ifndef MPIX_TESTS_BENCH_FLOOD_CUH
#define MPIX_TESTS_BENCH_FLOOD_CUH

#include <mpix/device.cuh>

#include "tests/bench/grid.cuh"
#include "tests/bench/ping_pong.cuh"

namespace bench {

struct flood_shape {
    scope by;  // who marks a partition, and who waits for it
    int blocks, threads;
    uint64_t bytes;  // of a message, a partition of the receiver
    int messages;    // of one round
    int split;       // partitions of the sender in a message
};

constexpr int flood_rounds = 5;

// Calls `work(group, i)` for i from 0 to `count` - 1: as many in a row for each block, which its groups take by turns.
template <scope By, class Work>
__device__ void share_out(int count, const Work &work) {
    const int blocks = static_cast<int>(gridDim.x), each = (count + blocks - 1) / blocks;
    const int begin = static_cast<int>(blockIdx.x) * each, end = min(begin + each, count);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const auto all = cooperative_groups::this_thread_block();
    if constexpr (By == scope::thread) {
        for (int i = begin + thread; i < end; i += threads) work(mpix::this_thread(), i);
    } else if constexpr (By == scope::warp) {
        const auto warp = cooperative_groups::tiled_partition<32>(all);
        for (int i = begin + thread / 32; i < end; i += threads / 32) work(warp, i);
    } else {
        for (int i = begin; i < end; ++i) work(all, i);
    }
}

// `arrived` counts blocks, from zero.
template <scope By>
__global__ void __launch_bounds__(512, 1)
    flood_out(MPIX_Prequest send, MPIX_Prequest answer, int count, unsigned *arrived, times *out) {
    const bool leads = blockIdx.x == 0 && threadIdx.x == 0;
    bool good = true;
    for (int r = 0; r < flood_rounds; ++r) {
        share_out<By>(count, [&](const auto &group, int i) {
            good = mpix::pready(group, r * count + i, send) == MPI_SUCCESS && good;
        });
        if (leads) good = mpix::wait_arrived(mpix::this_thread(), answer, r, patience_ns) == MPI_SUCCESS && good;
        const bool together = grid_barrier(arrived, (static_cast<unsigned>(r) + 1) * gridDim.x);
        if (!good) atomicAdd(&out->errors, 1ull);
        if (!together || __syncthreads_or(!good)) return;  // the others run out of time
        if (leads) (r == 0 ? out->start : out->stop) = now_ns();
    }
}

template <scope By>
__global__ void __launch_bounds__(512, 1)
    flood_in(MPIX_Prequest receive, MPIX_Prequest answer, int count, unsigned *arrived, times *out) {
    bool good = true;
    for (int r = 0; r < flood_rounds; ++r) {
        share_out<By>(count, [&](const auto &group, int i) {  // after a failure the rest is not worth its time
            good = mpix::wait_arrived(group, receive, r * count + i, good ? patience_ns : 0) == MPI_SUCCESS && good;
        });
        const bool together = grid_barrier(arrived, (static_cast<unsigned>(r) + 1) * gridDim.x);
        if (together && blockIdx.x == 0 && threadIdx.x == 0)
            good = mpix::pready(mpix::this_thread(), r, answer) == MPI_SUCCESS && good;
        if (!good) atomicAdd(&out->errors, 1ull);
        if (!together || __syncthreads_or(!good)) return;
    }
}

// Microseconds of one round, by the sender's clock, the answer included. The result is rank 0's; `out` and `in` hold
// messages * bytes * flood_rounds.
inline double flood_us(pair &c, int epochs, const flood_shape &s, char *out, char *in) {
    const bool sends = c.rank == 0;
    const int parts = s.messages * s.split;
    unsigned *arrived = nullptr;
    char *words = nullptr;
    check(cudaMalloc(&arrived, sizeof *arrived), "cudaMalloc");
    check(cudaMalloc(&words, 8 * flood_rounds), "cudaMalloc");
    const auto bytes = static_cast<MPI_Count>(s.bytes);
    MPI_Request r[2];  // data, answer
    MPIX_Prequest p[2];
    if (sends) {
        must(MPI_Psend_init(out, parts * flood_rounds, bytes / s.split, MPI_BYTE, c.peer, 1, MPI_COMM_WORLD,
                            MPI_INFO_NULL, &r[0]),
             "MPI_Psend_init");
        must(MPI_Precv_init(words, flood_rounds, 8, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]),
             "MPI_Precv_init");
    } else {
        must(MPI_Precv_init(in, s.messages * flood_rounds, bytes, MPI_BYTE, c.peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &r[0]),
             "MPI_Precv_init");
        must(MPI_Psend_init(words, flood_rounds, 8, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]),
             "MPI_Psend_init");
    }
    for (int i = 0; i < 2; ++i) must(MPIX_Prequest_create(r[i], MPI_INFO_NULL, &p[i]), "MPIX_Prequest_create");
    const uint64_t total = s.bytes * static_cast<uint64_t>(s.messages) * flood_rounds;
    const auto grid = static_cast<unsigned>(s.blocks), threads = static_cast<unsigned>(s.threads);
    const double us = c.measure(
        epochs, "flood", out, in, total,
        [&](int) {
            check(cudaMemsetAsync(arrived, 0, sizeof *arrived, c.stream), "cudaMemsetAsync");
            must(MPI_Startall(2, r), "MPI_Startall");
            must(MPIX_Pbuf_prepare_all(2, r), "MPIX_Pbuf_prepare_all");
            const auto launch = [&](auto *kernel, int count) {
                kernel<<<grid, threads, 0, c.stream>>>(p[0], p[1], count, arrived, c.result);
                check(cudaGetLastError(), "flood");
            };
            if (s.by == scope::thread)
                sends ? launch(flood_out<scope::thread>, parts) : launch(flood_in<scope::thread>, s.messages);
            else if (s.by == scope::warp)
                sends ? launch(flood_out<scope::warp>, parts) : launch(flood_in<scope::warp>, s.messages);
            else
                sends ? launch(flood_out<scope::block>, parts) : launch(flood_in<scope::block>, s.messages);
            const times t = c.outcome("flood");
            must(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), "MPI_Waitall");
            return static_cast<double>(t.stop - t.start) * 1e-3 / (flood_rounds - 1);
        },
        !sends);
    for (int i = 0; i < 2; ++i) {
        must(MPIX_Prequest_free(&p[i]), "MPIX_Prequest_free");
        must(MPI_Request_free(&r[i]), "MPI_Request_free");
    }
    MPI_Barrier(MPI_COMM_WORLD);  // the peer has let go of the memory
    check(cudaFree(words), "cudaFree");
    check(cudaFree(arrived), "cudaFree");
    return us;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_FLOOD_CUH
