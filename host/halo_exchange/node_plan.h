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

namespace mpix::halo {

// For tests: on which node a rank is to be. Null: as MPI_Comm_split_type says.
inline int (*played_node)(int rank) = nullptr;

// Who is on which node. Freed with the communicator of the node's ranks, which its construction made.
class node_map {
public:
    // Collective.
    explicit node_map(MPI_Comm comm);
    ~node_map();
    node_map(const node_map &) = delete;
    node_map &operator=(const node_map &) = delete;

    int rank() const { return rank_; }
    MPI_Comm here() const { return here_; }
    int node_of(int rank) const { return places_[static_cast<std::size_t>(rank)][0]; }
    // Among the node's ranks.
    int place_of(int rank) const { return places_[static_cast<std::size_t>(rank)][1]; }
    const std::vector<int> &ranks_of(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
    int ranks() const { return static_cast<int>(places_.size()); }
    // Who receives a rank's node message to another node: whoever has the same place there, so that all ranks of a node
    // share the work.
    int carrier(int sender, int node) const;

private:
    MPI_Comm here_ = MPI_COMM_NULL;
    int rank_ = 0;
    std::vector<std::array<int, 2>> places_;  // of each rank its node and place
    std::vector<std::vector<int>> nodes_;     // ranks, in ascending order
};

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

// The node messages that a rank sends, by node. `how` is not never.
std::vector<node_message> plan_node_messages(const node_map &nodes, const std::vector<candidate> &sends,
                                             node_messages how);

// All that come to this rank's node, by sender, and where they lie there.
struct node_plan {
    std::vector<node_message> received;
    std::size_t memory_bytes = 0;  // flags of the node's ranks come first
};
// Collective over `comm`. Empty on all ranks, or on none: see `any`.
node_plan exchange_plans(MPI_Comm comm, const node_map &nodes, const std::vector<node_message> &sent, bool &any);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_NODE_PLAN_H
