// SPDX-License-Identifier: BSD-3-Clause
//
// The ping-pong of ping_pong.cuh by UCX's device interface (ucp_device_put, ucp_device_counter_inc), where the build has found it. Within
// a node its kernels store to the peer through UCX's mapping (cuda_ipc). By a thread, a warp or a block.
#ifndef MPIX_TESTS_BENCH_UCX_DEVICE_PAIR_CUH
#define MPIX_TESTS_BENCH_UCX_DEVICE_PAIR_CUH

#include <cstdint>
#include <memory>
#include <string>

#include "tests/bench/ping_pong.cuh"
#include "tests/bench/table.hpp"

namespace bench {

class ucx_device_pair {
public:
    // Null where it cannot be used, and `missing` is what the table says then: "absent" where there is no such UCX, or not a
    // GPU for each rank, or "failed: " and why. `most_bytes` of payloads, which `out` has room for. Both ranks call it; it
    // ends before `c` does.
    static std::unique_ptr<ucx_device_pair> open(pair &c, uint64_t most_bytes, char *out, std::string &missing);
    virtual ~ucx_device_pair() = default;
    // Half of a round trip by one group; the median of the epochs. `fenced`: with a fence between the payload and the
    // counter. UCX 1.22 has none there within a node, so that nothing orders the two.
    virtual double measure(pair &c, const exchange_shape &s, bool fenced) = 0;
};

#if !MPIX_HAVE_UCX_DEVICE
inline std::unique_ptr<ucx_device_pair> ucx_device_pair::open(pair &, uint64_t, char *, std::string &missing) {
    missing = absent;
    return nullptr;
}
#endif

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_UCX_DEVICE_PAIR_CUH
