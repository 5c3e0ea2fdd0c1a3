// SPDX-License-Identifier: BSD-3-Clause
//
// How many epochs a landing within a node has room for, beyond the two that the protocol needs.
//
// A store to a line in another core's cache waits until that core has given the line up. So the slots of a landing are
// written in turn, and the receiver has read something else since it last read a slot (docs/performance/host-memory.md: "Slots, and
// one copy or two").
#ifndef MPIX_HOST_PROTOCOL_SLOT_BUDGET_H
#define MPIX_HOST_PROTOCOL_SLOT_BUDGET_H

#include <cstdint>

namespace mpix {

// Slots of a landing. A power of two, as slot_of in slot_ring.cuh needs.
constexpr std::uint64_t most_slots = 128;
static_assert(most_slots <= 256);  // broadcast_code tells a group's members a slot
// How many slots of that size fit into `room` bytes; at least two.
std::uint64_t slots_within(std::uint64_t room, std::uint64_t message_bytes);
// How many slots a message with room for two epochs should have. `budget` is MPIX_LANDING_BYTES.
std::uint64_t wanted_slots(std::uint64_t message_bytes, std::uint64_t budget);

// The memory that the landing of one receive takes beyond two slots. It is a share of what the whole process may take,
// and is given back at the end.
class landing_room {
public:
    landing_room() = default;
    ~landing_room() { give_back(); }
    landing_room(const landing_room &) = delete;
    landing_room &operator=(const landing_room &) = delete;

    // Returns the number of slots: as many as wanted, or two.
    std::uint64_t take(std::uint64_t message_bytes, std::uint64_t budget);
    void give_back();

private:
    std::uint64_t taken_ = 0;  // bytes
};

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_SLOT_BUDGET_H
