// SPDX-License-Identifier: BSD-3-Clause
//
// Rget by hand: the payload stays in the sender's buffer, which the receiver has mapped. One thread of the sender
// fences and stores a flag; the receiver polls it and reads the payload with all its threads into its own buffer. When
// the sender may write its buffer again it would have to be told; here each message has a place of its own.
#ifndef MPIX_TESTS_BENCH_RGET_PORT_CUH
#define MPIX_TESTS_BENCH_RGET_PORT_CUH

#include "tests/bench/floor.cuh"

namespace bench {

struct rget_port {
    char *in;  // `bytes` of each message, multiples of 16
    const char *peer_out;
    uint64_t *flags, *peer_flags;  // one a message
    uint64_t bytes, epoch;

    // The fence orders what the thread wrote, and those with whom it has synchronised, before the flag; it pairs with
    // poll_flag.
    __device__ void put(const lone_thread &, int i) const {
        asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u64 [%0], %1;" ::"l"(peer_flags + i), "l"(epoch)
                     : "memory");
    }

    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        if (!all_agree(group, group.thread_rank() != 0 || poll_flag(flags + i, epoch))) return false;
        const uint64_t at = static_cast<uint64_t>(i) * bytes, words = bytes / sizeof(uint4), size = group.num_threads();
        const uint4 *const from = reinterpret_cast<const uint4 *>(peer_out + at);
        uint4 *const to = reinterpret_cast<uint4 *>(in + at);
        for (uint64_t first = group.thread_rank(); first < words; first += each * size) {
            uint4 word[each];
#pragma unroll
            for (unsigned k = 0; k < each; ++k)
                if (first + k * size < words) word[k] = from[first + k * size];
#pragma unroll
            for (unsigned k = 0; k < each; ++k)
                if (first + k * size < words) to[first + k * size] = word[k];
        }
        group.sync();
        return true;
    }

private:
    static constexpr unsigned each = 8;  // words in flight a thread: a load takes a round trip
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_RGET_PORT_CUH
