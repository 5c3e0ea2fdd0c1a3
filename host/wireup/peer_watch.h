// SPDX-License-Identifier: BSD-3-Clause
//
// The watch over peers: which of their processes have ended, and which requests wait for a partner that does not come.
#ifndef MPIX_HOST_WIREUP_PEER_WATCH_H
#define MPIX_HOST_WIREUP_PEER_WATCH_H

#include <cstdint>
#include <memory>

#include "host/request/request.h"

namespace mpix {

// How long a request must have been in the same epoch before its peer's process is checked, and how often that is done.
constexpr std::int64_t watch_period_ms = 400;

// For poll_setup; setup_mutex is held. Requests with processes that have ended fail.
void take_reported_ends();
void watch_peers();

// The request that has been active without a partner for longest, if that is more than `least` seconds as poll_setup
// has seen it; else null. `waited`: for how long.
std::shared_ptr<request> longest_unmatched(double least, double &waited);

}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_PEER_WATCH_H
