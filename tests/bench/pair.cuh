// SPDX-License-Identifier: BSD-3-Clause
//
// Two ranks with a GPU each, and how they measure something: fresh data, all of it checked, the median of some epochs.
#ifndef MPIX_TESTS_BENCH_PAIR_CUH
#define MPIX_TESTS_BENCH_PAIR_CUH

#include <cuda_runtime.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "tests/bench/by_hand.cuh"
#include "tests/bench/machine.hpp"
#include "tests/bench/median.hpp"

namespace bench {

constexpr uint64_t patience_ns = 10'000'000'000u;  // of a wait in a kernel

// ---- fresh data --------------------------------------------------------------------------------------------------

__device__ inline uint64_t payload_word(uint64_t key, uint64_t i) {
    uint64_t x = key + i * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 27);
}

// Fresh payload out, poison in.
static __global__ void prepare(uint64_t *out, uint64_t *in, uint64_t words, uint64_t key) {
    const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) {
        out[i] = payload_word(key, i);
        in[i] = ~uint64_t{0};
    }
}

static __global__ void verify(const uint64_t *in, uint64_t words, uint64_t key, times *out) {
    const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step)
        if (in[i] != payload_word(key, i)) atomicAdd(&out->errors, 1ull);
}

// ---- two ranks ---------------------------------------------------------------------------------------------------

class pair {
public:
    // Initialises MPI. With other than two ranks the program ends.
    pair(int argc, char **argv) {
        int provided, size, local;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (size != 2) {
            std::fprintf(stderr, "%s: two ranks are needed, by mpirun -n 2\n", argv[0]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        peer = 1 - rank;
        MPI_Comm node;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_rank(node, &local);
        MPI_Comm_free(&node);
        check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        device = local % devices;
        check(cudaSetDevice(device), "cudaSetDevice");
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        check(cudaMalloc(&result, sizeof(times)), "cudaMalloc");
    }
    ~pair() {
        check(cudaFree(result), "cudaFree");
        check(cudaStreamDestroy(stream), "cudaStreamDestroy");
        MPI_Finalize();
    }
    pair(const pair &) = delete;
    pair &operator=(const pair &) = delete;

    // Until the stream is done, or, after twice the kernels' patience, the end of the program: a kernel that waits for
    // a peer without a time limit must not keep the machine.
    void finish(const char *what) const { finish(what, stream); }
    void finish(const char *what, cudaStream_t of) const {
        const double since = MPI_Wtime();
        cudaError_t state;
        while ((state = cudaStreamQuery(of)) == cudaErrorNotReady) {
            if (MPI_Wtime() - since > 2e-9 * static_cast<double>(patience_ns)) {
                std::fprintf(stderr, "rank %d: %s: no end within 20 s\n", rank, what);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            usleep(20);
        }
        check(state, what);
    }

    // What the kernels on the stream have noted, when they are done.
    times noted(const char *what) const {
        finish(what);
        times t;
        check(cudaMemcpyAsync(&t, result, sizeof t, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
        finish(what);
        return t;
    }
    // The same; errors end the program.
    times outcome(const char *what) const {
        const times t = noted(what);
        if (t.errors != 0) {
            std::fprintf(stderr, "rank %d: %s: %llu wrong words or failed calls\n", rank, what, t.errors);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        return t;
    }

    // `epochs` times, and once more to warm up: fresh data in `total` bytes at `out`, poison at `in`; `epoch(number
    // from 1)`; all bytes of `in` checked, if `receives`. The median of what `epoch` returns.
    double measure(int epochs, const char *what, char *out, char *in, uint64_t total,
                   const std::function<double(int)> &epoch, bool receives = true) {
        std::vector<double> all;
        const uint64_t words = total / sizeof(uint64_t);
        for (int e = 0; e <= epochs; ++e) {
            begin_epoch(out, in, words);
            const double us = epoch(e + 1);
            end_epoch(in, words, receives);
            outcome(what);
            if (e > 0) all.push_back(us);
        }
        return median(all);
    }

    // One such epoch, of which nobody knows yet whether it works: whether it did, on both ranks. `epoch` ends in
    // noted().
    bool succeeds(const char *what, char *out, char *in, uint64_t total, const std::function<void()> &epoch) {
        const uint64_t words = total / sizeof(uint64_t);
        begin_epoch(out, in, words);
        epoch();
        end_epoch(in, words, true);
        int bad = noted(what).errors != 0, any = 0;
        MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        return any == 0;
    }

    int rank = 0, peer = 0, devices = 0, device = 0;
    cudaStream_t stream = nullptr;
    times *result = nullptr;  // on the device

private:
    void begin_epoch(char *out, char *in, uint64_t words) {
        key_ += 2;
        prepare<<<264, 512, 0, stream>>>(reinterpret_cast<uint64_t *>(out), reinterpret_cast<uint64_t *>(in), words,
                                         key_ + static_cast<uint64_t>(rank));
        check(cudaGetLastError(), "prepare");
        check(cudaMemsetAsync(result, 0, sizeof(times), stream), "cudaMemsetAsync");
        finish("prepare");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void end_epoch(const char *in, uint64_t words, bool receives) const {
        MPI_Barrier(MPI_COMM_WORLD);  // what came by the peer's hand alone is here now
        if (!receives) return;
        verify<<<264, 512, 0, stream>>>(reinterpret_cast<const uint64_t *>(in), words,
                                        key_ + static_cast<uint64_t>(peer), result);
        check(cudaGetLastError(), "verify");
    }

    uint64_t key_ = 1;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PAIR_CUH
