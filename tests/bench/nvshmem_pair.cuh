// SPDX-License-Identifier: BSD-3-Clause
//
// The same ping-pong by NVSHMEM, where the build has found it: putmem_signal_nbi of a thread, a warp or a block, or of
// several blocks that add to one signal; signal_wait_until at the other end.
#ifndef MPIX_TESTS_BENCH_NVSHMEM_PAIR_CUH
#define MPIX_TESTS_BENCH_NVSHMEM_PAIR_CUH

#include <cstdint>
#include <memory>

#include "tests/bench/ping_pong.cuh"

namespace bench {

class nvshmem_pair {
public:
    // Null where there is no NVSHMEM, or a library of another release than the bench's headers, or not a GPU for each
    // rank. `most_bytes` of payloads, `most_count` messages. Both ranks call it; it ends before `c` does.
    static std::unique_ptr<nvshmem_pair> open(const pair &c, uint64_t most_bytes, int most_count);
    virtual ~nvshmem_pair() = default;
    // Half of a round trip, by one group or, as blocks, by several; the median of the epochs.
    virtual double measure(pair &c, const exchange_shape &s) = 0;
};

#if !MPIX_HAVE_NVSHMEM
inline std::unique_ptr<nvshmem_pair> nvshmem_pair::open(const pair &, uint64_t, int) { return nullptr; }
#endif

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_NVSHMEM_PAIR_CUH
