// SPDX-License-Identifier: BSD-3-Clause
//
// Which ranks share a node.
#ifndef MPIX_HOST_HALO_NODE_MAP_H
#define MPIX_HOST_HALO_NODE_MAP_H

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

namespace mpix::halo {

// For tests: on which node a rank is to be. Null: as MPI_Comm_split_type says.
inline int (*fake_node)(int rank) = nullptr;

class node_map {
public:
    node_map() = default;
    // Collective. Throws error.
    explicit node_map(MPI_Comm comm);

    int rank() const { return rank_; }
    int ranks() const { return static_cast<int>(places_.size()); }
    int node_of(int rank) const { return places_[static_cast<std::size_t>(rank)][0]; }
    // Among the node's ranks.
    int place_of(int rank) const { return places_[static_cast<std::size_t>(rank)][1]; }
    bool is_here(int rank) const { return node_of(rank) == node_of(rank_); }
    // The ranks of each node in ascending order; nodes by their lowest ranks.
    const std::vector<std::vector<int>> &nodes() const { return nodes_; }
    const std::vector<int> &ranks_of(int node) const { return nodes_[static_cast<std::size_t>(node)]; }

private:
    int rank_ = 0;
    std::vector<std::array<int, 2>> places_;  // of each rank its node and place
    std::vector<std::vector<int>> nodes_;
};

// A communicator of the ranks of this node, by place.
class node_comm {
public:
    // Collective over `comm`, which the map is of. Throws error.
    node_comm(MPI_Comm comm, const node_map &nodes);
    ~node_comm();
    node_comm(const node_comm &) = delete;
    node_comm &operator=(const node_comm &) = delete;
    MPI_Comm get() const { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_NODE_MAP_H
