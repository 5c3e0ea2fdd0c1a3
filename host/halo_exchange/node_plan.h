// SPDX-License-Identifier: BSD-3-Clause
//
// Which messages of an exchange go together to a node: a node message has those of one rank to the ranks of another
// node. One of these, its carrier, receives it for them all.
#ifndef MPIX_HOST_HALO_EXCHANGE_NODE_PLAN_H
#define MPIX_HOST_HALO_EXCHANGE_NODE_PLAN_H

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <mpix/halo.hpp>

#include "host/halo/node_map.h"

namespace mpix::halo {

// A part of a node message: a message that would go by itself otherwise.
struct node_part {
    int reader = 0;          // who takes it out
    std::int64_t bytes = 0;  // packed, with padding
    std::int64_t at = 0;     // in the node message
};

struct node_message {
    int sender = 0, carrier = 0;
    std::vector<node_part> parts{};  // by reader
    std::int64_t bytes = 0;
    // Where it lies in the memory of the carrier's node: a flag, and room for it twice.
    std::size_t flag_at = 0;
    std::array<std::size_t, 2> room_at{};
};

// A message of this rank that is packed, as far as a plan needs to know it.
struct candidate {
    int peer = 0;
    std::int64_t bytes = 0, packed_bytes = 0;  // packed, there may be padding
};

// No message above this gains by going together with others (docs/performance/network.md).
constexpr std::int64_t longest_in_node_message = 8192;
// Flags, and what is received, have cache lines of their own.
constexpr std::size_t node_line = 64;

// Which rank of another node receives a rank's node message to it: the one that has the same place there, so that all
// ranks of a node share the work.
int carrier_of(const node_map &nodes, int sender, int node);

// The node messages that a rank sends, by node. `how` is not never.
std::vector<node_message> plan_node_messages(const node_map &nodes, const std::vector<candidate> &sends,
                                             node_messages how);

// All that come to this rank's node, by sender, and where they lie there.
struct node_plan {
    std::vector<node_message> received;
    std::size_t memory_bytes = 0;  // flags of the node's ranks come first
};
// Collective over `comm`, of which `here` has the ranks of this node. Empty on all ranks, or on none: see `any`.
node_plan exchange_plans(MPI_Comm comm, MPI_Comm here, const node_map &nodes, const std::vector<node_message> &sent,
                         bool &any);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_NODE_PLAN_H
