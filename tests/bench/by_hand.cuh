// SPDX-License-Identifier: BSD-3-Clause
//
// What the benches do without mpix: the device's clock, a copy by all threads of a group, a flag, memory mapped
// into the peer.
#ifndef MPIX_TESTS_BENCH_BY_HAND_CUH
#define MPIX_TESTS_BENCH_BY_HAND_CUH

#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdint>

#include "tests/bench/machine.hpp"

namespace bench {

__device__ inline uint64_t now_ns() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// What a kernel notes.
struct times {
    uint64_t start, stop;
    unsigned long long errors;
};

// The payload is a multiple of the word; four words in flight a thread.
template <class Word, class Group>
__device__ void copy_by_hand(const Group &group, char *to, const char *from, uint64_t bytes) {
    Word *const t = reinterpret_cast<Word *>(to);
    const Word *const f = reinterpret_cast<const Word *>(from);
    const uint64_t words = bytes / sizeof(Word), size = group.num_threads();
    uint64_t i = group.thread_rank();
    for (; i + 3 * size < words; i += 4 * size) {
        const Word a = f[i], b = f[i + size], c = f[i + 2 * size], d = f[i + 3 * size];
        t[i] = a;
        t[i + size] = b;
        t[i + 2 * size] = c;
        t[i + 3 * size] = d;
    }
    for (; i < words; i += size) t[i] = f[i];
}

constexpr unsigned most_polls = 1u << 24;  // some ten seconds

// One thread waits for *flag to reach `value`, and acquires what was released with it.
__device__ inline bool poll_flag(const uint64_t *flag, uint64_t value) {
    for (unsigned polls = 0; polls != most_polls; ++polls) {
        uint64_t seen;
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
        if (seen >= value) return true;
    }
    return false;
}

// As many bytes on either GPU, zeros, mapped into the other by CUDA IPC.
class mapped_memory {
public:
    mapped_memory(int peer, uint64_t bytes) {
        check(cudaMalloc(&own_, bytes), "cudaMalloc");
        check(cudaMemset(own_, 0, bytes), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        cudaIpcMemHandle_t mine, theirs;
        check(cudaIpcGetMemHandle(&mine, own_), "cudaIpcGetMemHandle");
        MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, peer, 1, &theirs, sizeof theirs, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        void *base = nullptr;
        check(cudaIpcOpenMemHandle(&base, theirs, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
        peer_ = static_cast<char *>(base);
    }
    ~mapped_memory() {
        check(cudaIpcCloseMemHandle(peer_), "cudaIpcCloseMemHandle");
        MPI_Barrier(MPI_COMM_WORLD);  // freed only when the peer has let go
        check(cudaFree(own_), "cudaFree");
    }
    mapped_memory(const mapped_memory &) = delete;
    mapped_memory &operator=(const mapped_memory &) = delete;

    char *own() const { return own_; }
    char *peer() const { return peer_; }

private:
    char *own_ = nullptr, *peer_ = nullptr;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_BY_HAND_CUH
