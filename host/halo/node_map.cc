// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/node_map.h"

#include <map>

#include "host/halo/collective.h"

namespace mpix::halo {

node_map::node_map(MPI_Comm comm) {
    int ranks = 0;
    MPI_Comm here = MPI_COMM_NULL;
    demand(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    demand(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    if (fake_node != nullptr)
        demand(MPI_Comm_split(comm, fake_node(rank_), rank_, &here), "MPI_Comm_split");
    else
        demand(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here), "MPI_Comm_split_type");
    int lowest = rank_;
    const int code = MPI_Bcast(&lowest, 1, MPI_INT, 0, here);
    MPI_Comm_free(&here);
    demand(code, "MPI_Bcast");
    std::vector<int> lowest_of(static_cast<std::size_t>(ranks));
    demand(MPI_Allgather(&lowest, 1, MPI_INT, lowest_of.data(), 1, MPI_INT, comm), "MPI_Allgather");
    std::map<int, int> numbers;  // of nodes, by their lowest ranks
    for (int r = 0; r < ranks; ++r) {
        const auto [node, is_new] = numbers.try_emplace(lowest_of[static_cast<std::size_t>(r)], nodes_.size());
        if (is_new) nodes_.emplace_back();
        std::vector<int> &its = nodes_[static_cast<std::size_t>(node->second)];
        places_.push_back({node->second, static_cast<int>(its.size())});
        its.push_back(r);
    }
}

node_comm::node_comm(MPI_Comm comm, const node_map &nodes) {
    demand(MPI_Comm_split(comm, nodes.node_of(nodes.rank()), nodes.rank(), &comm_), "MPI_Comm_split");
}

node_comm::~node_comm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

}  // namespace mpix::halo
