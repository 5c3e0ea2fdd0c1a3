// SPDX-License-Identifier: BSD-3-Clause
//
// How long an exchange takes on given links, and which decomposition and placement take least.
#ifndef MPIX_HOST_DECOMPOSITION_PREDICT_H
#define MPIX_HOST_DECOMPOSITION_PREDICT_H

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/decomposition/decompose.h"
#include "host/decomposition/flows.h"
#include "host/decomposition/placement.h"

namespace mpix::halo {

// Nodes that are all alike. Bandwidths are in bytes per second, as measured, in one direction.
struct machine {
    // A link on which several pairs of GPUs depend, such as the one between two sockets.
    struct shared_link {
        double bandwidth = 0;
        std::vector<std::pair<int, int>> pairs;  // from, to
    };

    int nodes = 1;
    matrix
        bandwidth;  // from one GPU of a node to another, nothing else being under way; on the diagonal, a copy within
    double network = 0;  // out of a node, for all its GPUs together; 0 if there is one node
    std::vector<shared_link> shared = {};
    double run_seconds = 0;  // to pack or to unpack a run of cells that lie together, beyond the time of its bytes

    int gpus() const { return bandwidth.size(); }  // of a node
};

// What is exchanged.
struct stencil {
    halo::radius radius{};
    double bytes_per_cell = 0;  // of all fields
    std::array<bool, 3> periodic{};
};

// What one node sends in one exchange, in bytes.
struct traffic {
    flows within;            // from one of its boxes to another, or to itself
    double out_of_node = 0;  // of all its boxes
    double runs = 0;         // rows along x that a box packs; of the box with the most
};
// Of a node in the middle of the domain, or the nearest to one that there is.
traffic traffic_of(const decomposition &d, const stencil &s);

// All boxes are packed at the same time, and so unpacked. All transfers begin together and overlap, so the busiest link
// decides. In seconds.
double predicted_seconds(const traffic &t, const machine &m, const placement &gpu_of);

struct plan {
    decomposition boxes;
    placement gpu_of;    // of the boxes of each node, the same in all nodes
    double seconds = 0;  // as predicted
};

// By prime factors (decompose), placed on the GPUs.
std::optional<plan> plan_by_primes(const index3 &extent, const machine &m, const stencil &s,
                                   const index3 &shortest = {1, 1, 1});
// The least predicted time of all regular decompositions (on nodes of more than best_swaps_up_to GPUs: of those that
// promise most): boxes are stretched until slow links carry little. If another one is not faster, that by prime factors.
std::optional<plan> plan_by_time(const index3 &extent, const machine &m, const stencil &s,
                                 const index3 &shortest = {1, 1, 1});

}  // namespace mpix::halo

#endif  // MPIX_HOST_DECOMPOSITION_PREDICT_H
