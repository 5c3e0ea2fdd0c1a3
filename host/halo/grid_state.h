// SPDX-License-Identifier: BSD-3-Clause
//
// What the copies of a grid share, and its exchanges keep.
#ifndef MPIX_HOST_HALO_GRID_STATE_H
#define MPIX_HOST_HALO_GRID_STATE_H

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/neighbours.h"
#include "host/halo/node_map.h"
#include "transport/status.h"

namespace mpix::halo {

struct grid_state {
    grid_state() = default;
    grid_state(const grid_state &) = delete;
    grid_state &operator=(const grid_state &) = delete;
    ~grid_state();

    MPI_Comm comm = MPI_COMM_NULL;  // ours, returns errors
    int rank = 0, ranks = 1;
    halo::domain domain;
    std::vector<int> mine;  // the numbers of this rank's boxes, in ascending order
    node_map nodes;
    measured_links links;  // of computed boxes, if they were given: then all nodes have as many ranks

    const box &local(int i) const { return domain.boxes[mine[i]]; }
    // Of a staggered field, the points of all of this rank's boxes.
    std::vector<box> local_points(const std::array<bool, 3> &staggered) const;
    // Of the link from one rank to another, in bytes per second; 0 if it has not been measured.
    double bandwidth(int from, int to) const;
    // Where a box of this rank is among them, by its number.
    int position_of(int number) const;
};

// The position of one of this rank's boxes, or of the only one. Throw error, if there is none. `caller`, or its member
// `function`, needs it.
int demand_box(const grid_state &g, int i, const char *caller, const char *function = nullptr);
int demand_only_box(const grid_state &g, const char *caller, const char *function = nullptr);

inline constexpr const char *grid_call = "mpix::halo::grid";
// Throws error in the name of `caller`, if no grid can be made over it.
void check_communicator(MPI_Comm comm, const char *caller);
// Collective. `given`: what was wrong on this rank before; then all ranks throw.
std::shared_ptr<const grid_state> make_grid_state(MPI_Comm comm, const std::vector<std::int64_t> &extent,
                                                  const grid_options &options, const status &given = {});

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_GRID_STATE_H
