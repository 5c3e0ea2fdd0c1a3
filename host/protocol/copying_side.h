// SPDX-License-Identifier: BSD-3-Clause
//
// Which process makes a single copy. Both can: Pready writes into the receive buffer, or the receiver reads out of the send
// buffer when it looks. Which of the two takes less time depends on the cores and on their caches
// (docs/performance/host-memory.md), and is measured as messages come (peer_memory in transport/cma.h).
#ifndef MPIX_HOST_PROTOCOL_COPYING_SIDE_H
#define MPIX_HOST_PROTOCOL_COPYING_SIDE_H

#include <cstdint>

namespace mpix {

// In the first epochs both do it, in turn. Then the faster one does, and now and then the other: threads move to other
// cores. Costs are 0 as long as they are not known.
constexpr std::uint64_t copy_trials = 8, copy_trial_period = 64;
constexpr bool receiver_copies(std::uint64_t epoch, std::uint64_t read_cost, std::uint64_t write_cost) {
    if (epoch <= copy_trials) return epoch % 2 == 1;
    const bool reads = read_cost != 0 && (write_cost == 0 || read_cost < write_cost);
    return reads != (epoch % copy_trial_period == 0);
}

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_COPYING_SIDE_H
