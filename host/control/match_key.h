// SPDX-License-Identifier: BSD-3-Clause
//
// The key by which sends and receives are matched.
#ifndef MPIX_HOST_CONTROL_MATCH_KEY_H
#define MPIX_HOST_CONTROL_MATCH_KEY_H

#include <compare>
#include <cstdint>

namespace mpix {

struct match_key {
    std::uint64_t communicator;
    int source;  // world rank of the sender
    int tag;
    auto operator<=>(const match_key &) const = default;
};

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_MATCH_KEY_H
