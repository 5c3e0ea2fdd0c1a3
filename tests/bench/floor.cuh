// SPDX-License-Identifier: BSD-3-Clause
//
// What the hardware allows: the same ping-pong by hand, over a mapping of the bench's own. A group copies the
// payload to the peer with the widest stores, one fence, one flag; the receiver polls the flag. No epochs, no
// deferral, no checks.
#ifndef MPIX_TESTS_BENCH_FLOOR_CUH
#define MPIX_TESTS_BENCH_FLOOR_CUH

#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdint>

#include "tests/bench/machine.hpp"

namespace bench {

struct times {
    uint64_t start, stop;  // of all round trips but the first, in which the two kernels meet
    uint64_t errors;
};

__device__ inline uint64_t now_ns() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

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

// One end of the channel.
struct floor_port {
    char *out, *peer_in;           // `count` payloads each
    uint64_t *flags, *peer_flags;  // one a payload
    uint64_t bytes, epoch;

    template <class Group>
    __device__ void put(const Group &group, int i) const {
        const uint64_t at = static_cast<uint64_t>(i) * bytes;
        if (bytes % sizeof(uint4) == 0)
            copy_by_hand<uint4>(group, peer_in + at, out + at, bytes);
        else
            copy_by_hand<uint64_t>(group, peer_in + at, out + at, bytes);
        group.sync();
        if (group.thread_rank() == 0)
            asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.u64 [%0], %1;" ::"l"(peer_flags + i), "l"(epoch)
                         : "memory");
    }

    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        if (group.thread_rank() == 0) {
            uint64_t seen;
            do asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(seen) : "l"(flags + i) : "memory");
            while (seen != epoch);
        }
        group.sync();
        return true;
    }
};

// Memory for the peer to write to: payloads, then flags, mapped into the peer by CUDA IPC.
class floor_channel {
public:
    floor_channel(int peer, uint64_t bytes, int count) : room_((bytes * count + 255) & ~uint64_t{255}) {
        check(cudaMalloc(&own_, room_ + count * sizeof(uint64_t)), "cudaMalloc");
        check(cudaMemset(own_, 0, room_ + count * sizeof(uint64_t)), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        cudaIpcMemHandle_t mine, theirs;
        check(cudaIpcGetMemHandle(&mine, own_), "cudaIpcGetMemHandle");
        MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, peer, 1, &theirs, sizeof theirs, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        void *base = nullptr;
        check(cudaIpcOpenMemHandle(&base, theirs, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
        peer_ = static_cast<char *>(base);
    }
    ~floor_channel() {
        check(cudaIpcCloseMemHandle(peer_), "cudaIpcCloseMemHandle");
        MPI_Barrier(MPI_COMM_WORLD);  // freed only when the peer has let go
        check(cudaFree(own_), "cudaFree");
    }
    floor_channel(const floor_channel &) = delete;
    floor_channel &operator=(const floor_channel &) = delete;

    char *in() const { return own_; }
    floor_port port(char *out, uint64_t bytes, uint64_t epoch) const {
        return {out,   peer_, reinterpret_cast<uint64_t *>(own_ + room_), reinterpret_cast<uint64_t *>(peer_ + room_),
                bytes, epoch};
    }

private:
    uint64_t room_;
    char *own_ = nullptr, *peer_ = nullptr;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_FLOOR_CUH
