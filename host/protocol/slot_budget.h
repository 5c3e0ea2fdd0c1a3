// SPDX-License-Identifier: BSD-3-Clause
//
// How many epochs a landing within a node has room for beyond the two that the protocol uses.
//
// A store to a line that another core's cache holds waits until that core has given it up. So the slots of a landing are written
// by turns, that the receiver has read something else since it read this one (docs/performance.md: "Slots, and one copy or two").
#ifndef MPIX_HOST_PROTOCOL_SLOT_BUDGET_H
#define MPIX_HOST_PROTOCOL_SLOT_BUDGET_H

#include <cstdint>

namespace mpix {

// Of a landing. A power of two, as slot_of in slot_ring.cuh wants it.
constexpr std::uint64_t most_slots = 128;
static_assert(most_slots <= 256);  // broadcast_code tells a group's members a slot
// Those of a landing that takes `room` bytes in all, and has at least two.
std::uint64_t slots_within(std::uint64_t room, std::uint64_t message_bytes);
// What a message that has room for two epochs should have. `budget` is MPIX_LANDING_BYTES.
std::uint64_t wanted_slots(std::uint64_t message_bytes, std::uint64_t budget);

// What the landing of one receive has more than two slots: a share of what the process has for all, given back at the end.
class landing_room {
public:
    landing_room() = default;
    ~landing_room() { give_back(); }
    landing_room(const landing_room &) = delete;
    landing_room &operator=(const landing_room &) = delete;

    // How many slots it gets: as many as wanted, or two.
    std::uint64_t take(std::uint64_t message_bytes, std::uint64_t budget);
    void give_back();

private:
    std::uint64_t taken_ = 0;  // bytes
};

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_SLOT_BUDGET_H
