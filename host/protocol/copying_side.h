// SPDX-License-Identifier: BSD-3-Clause
//
// Which process makes a single copy. Both can: Pready writes into the receive buffer, or the receiver reads out of the send
// buffer when it looks. Which of the two takes less time depends on the cores and on their caches, and is measured as
// messages come (peer_memory in transport/cma.h; docs/performance/host-memory.md).
#ifndef MPIX_HOST_PROTOCOL_COPYING_SIDE_H
#define MPIX_HOST_PROTOCOL_COPYING_SIDE_H

#include <cstdint>

#include "transport/select.h"

namespace mpix {

// `turn` counts the epochs of all sends of this process to that one, from 1. In the first ones both do it, in turn. Then the
// faster one does, and now and then the other: threads move to other cores. Costs as in peer_memory.
constexpr std::uint64_t copy_trials = 8, copy_trial_period = 64;
constexpr bool receiver_copies(std::uint64_t turn, std::uint64_t read_cost, std::uint64_t write_cost) {
    if (read_cost == transport::cannot_copy) return false;
    if (turn <= copy_trials) return turn % 2 == 1;
    const bool reads = read_cost != 0 && (write_cost == 0 || read_cost < write_cost);
    return reads != (turn % copy_trial_period == 0);
}

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_COPYING_SIDE_H
