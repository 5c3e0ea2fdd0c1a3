// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL's send and receive between the two ranks, where the build has found it.
#ifndef MPIX_TESTS_BENCH_NCCL_PAIR_CUH
#define MPIX_TESTS_BENCH_NCCL_PAIR_CUH

#include "tests/bench/pair.cuh"

#if MPIX_HAVE_NCCL
#include <nccl.h>

#include <cstdlib>
#endif

namespace bench {

#if MPIX_HAVE_NCCL
class nccl_pair {
public:
    explicit nccl_pair(const pair &c) : present_(c.devices >= 2) {
        if (!present_) return;
        setenv("NCCL_NVLS_ENABLE", "0", 1);  // no multicast
        ncclUniqueId id;
        if (c.rank == 0) checked(ncclGetUniqueId(&id), "ncclGetUniqueId");
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        checked(ncclCommInitRank(&comm_, 2, id, c.rank), "ncclCommInitRank");
    }
    ~nccl_pair() {
        if (present_) checked(ncclCommDestroy(comm_), "ncclCommDestroy");
    }
    nccl_pair(const nccl_pair &) = delete;
    nccl_pair &operator=(const nccl_pair &) = delete;

    bool present() const { return present_; }

    // On the stream: `messages` of `bytes` each from rank 0 to rank 1 as one group, and 8 bytes back at `words`.
    void flood(const pair &c, char *out, char *in, uint64_t bytes, int messages, char *words) const {
        checked(ncclGroupStart(), "ncclGroupStart");
        for (int i = 0; i < messages; ++i) {
            const uint64_t at = static_cast<uint64_t>(i) * bytes;
            if (c.rank == 0)
                checked(ncclSend(out + at, bytes, ncclChar, c.peer, comm_, c.stream), "ncclSend");
            else
                checked(ncclRecv(in + at, bytes, ncclChar, c.peer, comm_, c.stream), "ncclRecv");
        }
        checked(ncclGroupEnd(), "ncclGroupEnd");
        if (c.rank == 0)
            checked(ncclRecv(words, 8, ncclChar, c.peer, comm_, c.stream), "ncclRecv");
        else
            checked(ncclSend(words, 8, ncclChar, c.peer, comm_, c.stream), "ncclSend");
    }

private:
    static void checked(ncclResult_t result, const char *call) {
        if (result == ncclSuccess) return;
        std::fprintf(stderr, "%s: %s\n", call, ncclGetErrorString(result));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    bool present_;
    ncclComm_t comm_ = nullptr;
};
#else
class nccl_pair {
public:
    explicit nccl_pair(const pair &) {}
    bool present() const { return false; }
    void flood(const pair &, char *, char *, uint64_t, int, char *) const {}
};
#endif

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_NCCL_PAIR_CUH
