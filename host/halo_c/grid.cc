// SPDX-License-Identifier: BSD-3-Clause
//
// Radii and grids in C.
#include "host/halo_c/grid.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/halo/grid_state.h"
#include "host/halo/grid_internals.h"
#include "host/halo_c/handles.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;
using namespace mpix::halo;

namespace {

radius radius_of(const int cells[directions]) {
    radius r;
    std::copy_n(cells, directions, r.cells.begin());
    r.cells[no_direction] = 0;
    return r;
}

void store(const radius &r, int cells[directions]) {
    demand_argument(cells, "radius");
    std::copy(r.cells.begin(), r.cells.end(), cells);
}

// The first ones, if there is no room for all.
void store_list(const std::vector<int> &all, int size, int *to, const char *name, int *count) {
    if (size < 0) throw error(MPI_ERR_COUNT, format("size is {}; it is at least 0", size));
    if (size > 0) demand_argument(to, name);
    demand_argument(count, "count");
    *count = static_cast<int>(all.size());
    std::copy_n(all.begin(), std::min(size, *count), to);
}

// What C++ cannot be given is a failure, which the collective function tells all ranks.
status convert_grid(int dimensions, const int64_t *extent, const MPIX_Halo_grid_options *given, int ranks,
                    std::vector<std::int64_t> &cells, grid_options &options) {
    if (dimensions < 1 || dimensions > 3)
        return failure(MPI_ERR_DIMS, format("dimensions is {}; it is 1 to 3", dimensions));
    if (extent == nullptr) return failure(MPI_ERR_ARG, "extent is null");
    cells.assign(extent, extent + dimensions);
    if (given == nullptr) return {};
    const MPIX_Halo_grid_options &o = *given;
    for (int a = 0; a < 3; ++a) {
        options.periodic[a] = o.periodic[a] != 0;
        options.shortest[a] = o.shortest[a] == 0 ? 1 : o.shortest[a];
    }
    if (o.box_count < 0 || (o.boxes == nullptr && o.box_count > 0))
        return failure(MPI_ERR_ARG, format("options.box_count is {}, and options.boxes is {}", o.box_count,
                                           o.boxes == nullptr ? "null" : "not null"));
    if (o.boxes == nullptr && o.owners != nullptr)
        return failure(MPI_ERR_ARG, "options.owners are those of options.boxes, which is null");
    const int boxes = o.box_count > 0 ? o.box_count : ranks;
    for (int i = 0; o.boxes != nullptr && i < boxes; ++i) options.boxes.push_back(from_c(o.boxes[i]));
    if (o.owners != nullptr) options.owners.assign(o.owners, o.owners + boxes);
    if (o.boxes_per_rank != 0) options.boxes_per_rank = o.boxes_per_rank;
    if (o.links.entries < 0)
        return failure(MPI_ERR_ARG, format("options.links.entries is {}; it is at least 0", o.links.entries));
    if (o.links.within_node == nullptr && o.links.entries > 0)
        return failure(MPI_ERR_ARG, format("options.links.within_node is null, and has {} entries", o.links.entries));
    if (o.links.within_node != nullptr)
        options.links.within_node.assign(o.links.within_node, o.links.within_node + o.links.entries);
    options.links.network = o.links.network;
    if (o.typical_radius != nullptr) options.typical_radius = radius_of(o.typical_radius);
    if (o.typical_bytes_per_cell != 0) options.typical_bytes_per_cell = o.typical_bytes_per_cell;
    return {};
}

}  // namespace

MPIX_SYMBOL int MPIX_Halo_radius_all(int cells, int radius[MPIX_HALO_DIRECTIONS]) try {
    return answer("MPIX_Halo_radius_all", MPI_COMM_NULL, [&] { store(halo::radius::all(cells), radius); });
}
MPIX_BOUNDARY("MPIX_Halo_radius_all", of_world())

MPIX_SYMBOL int MPIX_Halo_radius_faces(int cells, int radius[MPIX_HALO_DIRECTIONS]) try {
    return answer("MPIX_Halo_radius_faces", MPI_COMM_NULL, [&] { store(halo::radius::faces(cells), radius); });
}
MPIX_BOUNDARY("MPIX_Halo_radius_faces", of_world())

MPIX_SYMBOL int MPIX_Halo_radius_of(int count, const int offsets[], int radius[MPIX_HALO_DIRECTIONS]) try {
    return answer("MPIX_Halo_radius_of", MPI_COMM_NULL, [&] {
        if (count < 0) throw error(MPI_ERR_COUNT, format("count is {}; it is at least 0", count));
        if (count > 0) demand_argument(offsets, "offsets");
        std::vector<std::array<int, 3>> all(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < all.size(); ++i) std::copy_n(offsets + 3 * i, 3, all[i].begin());
        store(halo::radius::of(all), radius);
    });
}
MPIX_BOUNDARY("MPIX_Halo_radius_of", of_world())

int halo::create_grid(MPI_Comm comm, int dimensions, const int64_t extent[], const MPIX_Halo_grid_options *options,
                      status bad, MPIX_Halo_grid *grid) {
    MPIX_CHECK_THREAD("MPIX_Halo_grid_create", of_comm(comm));
    demand_mpi("MPIX_Halo_grid_create");
    if (grid != nullptr) *grid = MPIX_HALO_GRID_NULL;
    return answer("MPIX_Halo_grid_create", comm, [&] {
        int ranks = 0;
        check_communicator(comm, grid_call);
        MPI_Comm_size(comm, &ranks);
        std::vector<std::int64_t> cells;
        grid_options converted;
        if (grid == nullptr) bad = failure(MPI_ERR_ARG, "grid is null");
        if (bad.ok()) bad = convert_grid(dimensions, extent, options, ranks, cells, converted);
        auto state = make_grid_state(comm, cells, converted, bad);
        *grid = new mpix_halo_grid{grid_internals::grid_of(std::move(state)), std::make_shared<const error_comm>(comm)};
    });
}

MPIX_SYMBOL int MPIX_Halo_grid_create(MPI_Comm comm, int dimensions, const int64_t extent[],
                                      const MPIX_Halo_grid_options *options, MPIX_Halo_grid *grid) try {
    return create_grid(comm, dimensions, extent, options, {}, grid);
}
MPIX_BOUNDARY("MPIX_Halo_grid_create", of_comm(comm))

MPIX_SYMBOL int MPIX_Halo_grid_free(MPIX_Halo_grid *grid) try {
    MPIX_CHECK_THREAD("MPIX_Halo_grid_free", of_world());
    return answer("MPIX_Halo_grid_free", MPI_COMM_NULL, [&] {
        demand_argument(grid, "grid");
        delete std::exchange(*grid, MPIX_HALO_GRID_NULL);
    });
}
MPIX_BOUNDARY("MPIX_Halo_grid_free", of_world())

MPIX_SYMBOL int MPIX_Halo_grid_get(MPIX_Halo_grid grid, int *dimensions, int64_t extent[3], int periodic[3], int *rank,
                                   int *ranks, int *boxes) try {
    return answer("MPIX_Halo_grid_get", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        if (dimensions != nullptr) *dimensions = g.dimensions();
        if (extent != nullptr) std::copy_n(g.extent().along, 3, extent);
        if (periodic != nullptr) std::copy_n(g.periodic().begin(), 3, periodic);
        if (rank != nullptr) *rank = g.rank();
        if (ranks != nullptr) *ranks = g.ranks();
        if (boxes != nullptr) *boxes = g.total_boxes();
    });
}
MPIX_BOUNDARY("MPIX_Halo_grid_get", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_grid_boxes(MPIX_Halo_grid grid, int size, int numbers[], int *count) try {
    return answer("MPIX_Halo_grid_boxes", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        store_list(g.boxes(), size, numbers, "numbers", count);
    });
}
MPIX_BOUNDARY("MPIX_Halo_grid_boxes", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_grid_box(MPIX_Halo_grid grid, int number, MPIX_Halo_box *box, int *rank) try {
    return answer("MPIX_Halo_grid_box", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(box, "box");
        *box = to_c(g.box_of(number));
        if (rank != nullptr) *rank = g.rank_of(number);
    });
}
MPIX_BOUNDARY("MPIX_Halo_grid_box", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_grid_owner(MPIX_Halo_grid grid, const int64_t cell[3], int *rank) try {
    return answer("MPIX_Halo_grid_owner", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(cell, "cell");
        demand_argument(rank, "rank");
        *rank = g.owner(from_c(cell));
    });
}
MPIX_BOUNDARY("MPIX_Halo_grid_owner", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_points(MPIX_Halo_grid grid, const MPIX_Halo_box *cells, const int staggered[3],
                                 MPIX_Halo_box *points) try {
    return answer("MPIX_Halo_points", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(cells, "cells");
        demand_argument(staggered, "staggered");
        demand_argument(points, "points");
        *points = to_c(g.points(from_c(*cells), axes_from_c(staggered)));
    });
}
MPIX_BOUNDARY("MPIX_Halo_points", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_global_index(MPIX_Halo_grid grid, int i, const int64_t local[3], int64_t global[3]) try {
    return answer("MPIX_Halo_global_index", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(local, "local");
        demand_argument(global, "global");
        std::copy_n(g.global_index(from_c(local), i).along, 3, global);
    });
}
MPIX_BOUNDARY("MPIX_Halo_global_index", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_deep_radius(MPIX_Halo_grid grid, const int stencil[MPIX_HALO_DIRECTIONS], int every,
                                      int radius[MPIX_HALO_DIRECTIONS]) try {
    return answer("MPIX_Halo_deep_radius", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(stencil, "stencil");
        store(deep_halo(g, radius_of(stencil), every).radius(), radius);
    });
}
MPIX_BOUNDARY("MPIX_Halo_deep_radius", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_deep_valid(MPIX_Halo_grid grid, int i, const int stencil[MPIX_HALO_DIRECTIONS], int every,
                                     int steps, const int staggered[3], MPIX_Halo_box *box) try {
    return answer("MPIX_Halo_deep_valid", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(stencil, "stencil");
        demand_argument(box, "box");
        *box = to_c(deep_halo(g, radius_of(stencil), every)
                        .valid(steps, i, staggered == nullptr ? std::array<bool, 3>{} : axes_from_c(staggered)));
    });
}
MPIX_BOUNDARY("MPIX_Halo_deep_valid", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_difference(const MPIX_Halo_box *outer, const MPIX_Halo_box *inner, MPIX_Halo_box boxes[6],
                                     int *count) try {
    return answer("MPIX_Halo_difference", MPI_COMM_NULL, [&] {
        demand_argument(outer, "outer");
        demand_argument(inner, "inner");
        demand_argument(boxes, "boxes");
        demand_argument(count, "count");
        const std::vector<box> rest = difference(from_c(*outer), from_c(*inner));
        std::transform(rest.begin(), rest.end(), boxes, to_c);
        *count = static_cast<int>(rest.size());
    });
}
MPIX_BOUNDARY("MPIX_Halo_difference", of_world())

MPIX_SYMBOL int MPIX_Halo_grid_neighbours(MPIX_Halo_grid grid, int direction, int depth, int size, int ranks[],
                                          int *count) try {
    return answer("MPIX_Halo_grid_neighbours", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        store_list(g.neighbours(direction, depth), size, ranks, "ranks", count);
    });
}
MPIX_BOUNDARY("MPIX_Halo_grid_neighbours", of_comm(errors_of(grid)))
