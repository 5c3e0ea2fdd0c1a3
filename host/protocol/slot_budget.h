// SPDX-License-Identifier: BSD-3-Clause
//
// How many epochs a landing has room for, beyond the two that the protocol needs.
//
// Within a node: a store to a line in another core's cache waits until that core has given the line up. So the slots of
// a landing are written in turn, and the receiver has read something else since it last read a slot (docs/performance/host-memory.md: "Slots, and
// one copy or two").
//
// Between nodes: a sender runs ahead of the receiver by all slots but one, so that clear-to-send need not be a message of
// its own in each epoch. Not with many partitions: a sender that posts to a work queue has entries for each of them in
// each slot.
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

std::uint64_t wanted_slots_between_nodes(std::uint64_t message_bytes, std::uint64_t partitions, std::uint64_t budget);
// The clear-to-send that the host's send of `epoch` needs there. The first epoch as in slot_ring.cuh.
std::uint64_t clear_to_send_between_nodes(std::uint64_t epoch, std::uint64_t slots);

// The memory that the landing of one receive takes beyond two slots. It is a share of what the whole process may take,
// and is given back at the end.
class landing_room {
public:
    landing_room() = default;
    ~landing_room() { give_back(); }
    landing_room(const landing_room &) = delete;
    landing_room &operator=(const landing_room &) = delete;

    // Return the number of slots: as many as wanted, or two.
    std::uint64_t take(std::uint64_t message_bytes, std::uint64_t budget) {
        return take(message_bytes, wanted_slots(message_bytes, budget), budget);
    }
    std::uint64_t take_between_nodes(std::uint64_t message_bytes, std::uint64_t partitions, std::uint64_t budget) {
        return take(message_bytes, wanted_slots_between_nodes(message_bytes, partitions, budget), budget);
    }
    void give_back();

private:
    std::uint64_t take(std::uint64_t message_bytes, std::uint64_t slots, std::uint64_t budget);

    std::uint64_t taken_ = 0;  // bytes
};

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_SLOT_BUDGET_H
