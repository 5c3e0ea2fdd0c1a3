// SPDX-License-Identifier: BSD-3-Clause
//
// The same ping-pong by NCCL's device interface, where the build has found it: the payload is stored to the peer's
// window through the pointer that NCCL gives for it (LSA: load and store accessible), and an LSA barrier tells of it.
// The sender arrives with a release after its stores and the receiver waits with an acquire; it has arrived itself
// before, which the sender waits for, since it is a barrier. By a thread, a warp or a block. No multicast.
#ifndef MPIX_TESTS_BENCH_NCCL_DEVICE_PAIR_CUH
#define MPIX_TESTS_BENCH_NCCL_DEVICE_PAIR_CUH

#include <cstdint>
#include <memory>
#include <string>

#include "tests/bench/ping_pong.cuh"
#include "tests/bench/table.hpp"

namespace bench {

class nccl_device_pair {
public:
    // Null where it cannot be used, and `missing` is what the table says then: "absent" where there is no NCCL, or a
    // library of another release than the bench's headers, or not a GPU for each rank; or "failed: " and why.
    // `most_bytes` of payloads, which `out` has room for. Both ranks call it; it ends before `c` does.
    static std::unique_ptr<nccl_device_pair> open(pair &c, uint64_t most_bytes, char *out, std::string &missing);
    virtual ~nccl_device_pair() = default;
    // Half of a round trip by one group; the median of the epochs.
    virtual double measure(pair &c, const exchange_shape &s, char *out) = 0;
};

#if !MPIX_HAVE_NCCL_DEVICE
inline std::unique_ptr<nccl_device_pair> nccl_device_pair::open(pair &, uint64_t, char *, std::string &missing) {
    missing = absent;
    return nullptr;
}
#endif

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_NCCL_DEVICE_PAIR_CUH
