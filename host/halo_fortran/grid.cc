// SPDX-License-Identifier: BSD-3-Clause
//
// Radii and grids.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <mpix/halo.h>

#include "host/format.h"
#include "host/halo_c/grid.h"
#include "host/halo_fortran/call.h"

using namespace mpix;
using namespace mpix::halo;

namespace {

// The module's type mpix_halo_grid_options.
struct fortran_grid_options {
    fint periodic[3];
    const fortran_box *boxes;
    fint box_count;
    const fint *owners;
    fint owner_count;
    fint boxes_per_rank;
    fint shortest[3];
    const double *within_node;
    fint entries;
    double network;
    const fint *typical_radius;
    double typical_bytes_per_cell;
    fint periodic_count, shortest_count;  // entries that the program gives
};

status convert(const fortran_grid_options &o, fint dimensions, std::vector<MPIX_Halo_box> &boxes,
               MPIX_Halo_grid_options &made) {
    if (dimensions < 1 || dimensions > 3)
        return failure(MPI_ERR_DIMS, format("extent has {} entries; it has 1 to 3", dimensions));
    for (const auto &[name, entries] : {std::pair{"periodic", o.periodic_count}, {"shortest", o.shortest_count}})
        if (entries != dimensions)
            return failure(MPI_ERR_ARG,
                           format("{} has {} entries; it has {}, one for each axis", name, entries, dimensions));
    for (int a = 0; a < 3; ++a) {
        made.periodic[a] = o.periodic[a];
        made.shortest[a] = o.shortest[a];
    }
    if (o.boxes != nullptr) {
        if (o.box_count == 0) return failure(MPI_ERR_ARG, "boxes has no entry");
        boxes.resize(static_cast<std::size_t>(o.box_count));
        std::transform(o.boxes, o.boxes + o.box_count, boxes.begin(), [](const fortran_box &b) { return to_c(b); });
        made.boxes = boxes.data();
        made.box_count = o.box_count;
    }
    if (o.boxes != nullptr && o.owners != nullptr && o.owner_count != o.box_count)
        return failure(MPI_ERR_ARG, format("owners has {} entries, and boxes has {}", o.owner_count, o.box_count));
    made.owners = o.owners;
    made.boxes_per_rank = o.boxes_per_rank;
    made.links = {o.within_node, o.entries, o.network};
    made.typical_radius = o.typical_radius;
    made.typical_bytes_per_cell = o.typical_bytes_per_cell;
    return {};
}

// MPIX_HALO_DIRECTION of three entries; none if one of them is not -1, 0 or 1, or all are 0.
int number_of(const fint d[3]) {
    if (std::any_of(d, d + 3, [](fint along) { return along < -1 || along > 1; })) return no_direction;
    return MPIX_HALO_DIRECTION(d[0], d[1], d[2]);
}

}  // namespace

MPIX_HALO_FORTRAN(radius_all, (const fint *cells, fint radius[], fint *ierror)) {
    call("MPIX_Halo_radius_all", ierror, [&] { return MPIX_Halo_radius_all(*cells, radius); });
}

MPIX_HALO_FORTRAN(radius_faces, (const fint *cells, fint radius[], fint *ierror)) {
    call("MPIX_Halo_radius_faces", ierror, [&] { return MPIX_Halo_radius_faces(*cells, radius); });
}

MPIX_HALO_FORTRAN(radius_of, (const fint *rows, const fint *count, const fint offsets[], fint radius[], fint *ierror)) {
    call("MPIX_Halo_radius_of", ierror, [&] {
        if (*rows != 3)
            return raise(MPI_COMM_NULL, "MPIX_Halo_radius_of", MPI_ERR_ARG,
                         format("offsets has {} rows; it has 3, and a column for each offset", *rows));
        return MPIX_Halo_radius_of(*count, offsets, radius);
    });
}

MPIX_HALO_FORTRAN(grid_create, (const fint *comm, const fint *dimensions, const fint extent[],
                                const fortran_grid_options *options, MPIX_Halo_grid *grid, fint *ierror)) {
    call("MPIX_Halo_grid_create", ierror, [&] {
        std::vector<MPIX_Halo_box> boxes;
        MPIX_Halo_grid_options made = {};
        const status bad = convert(*options, *dimensions, boxes, made);
        const std::vector<int64_t> cells(extent, extent + *dimensions);
        return create_grid(fortran::comm_of(comm), *dimensions, cells.data(), &made, bad, grid);
    });
}

MPIX_HALO_FORTRAN(grid_free, (MPIX_Halo_grid * grid, fint *ierror)) {
    call("MPIX_Halo_grid_free", ierror, [&] { return MPIX_Halo_grid_free(grid); });
}

MPIX_HALO_FORTRAN(grid_get, (const MPIX_Halo_grid *grid, fint *dimensions, fint extent[], fint periodic[], fint *rank,
                             fint *ranks, fint *boxes, fint *ierror)) {
    call("MPIX_Halo_grid_get", ierror, [&] {
        int64_t cells[3] = {};
        const int code = MPIX_Halo_grid_get(*grid, dimensions, cells, periodic, rank, ranks, boxes);
        if (code == MPI_SUCCESS && extent != nullptr)
            std::transform(cells, cells + 3, extent, [](int64_t along) { return static_cast<fint>(along); });
        return code;
    });
}

MPIX_HALO_FORTRAN(grid_boxes,
                  (const MPIX_Halo_grid *grid, const fint *size, fint numbers[], fint *count, fint *ierror)) {
    call("MPIX_Halo_grid_boxes", ierror, [&] { return MPIX_Halo_grid_boxes(*grid, *size, numbers, count); });
}

MPIX_HALO_FORTRAN(grid_box, (const MPIX_Halo_grid *grid, const fint *number, fortran_box *box, fint *ierror)) {
    call("MPIX_Halo_grid_box", ierror, [&] {
        MPIX_Halo_box made;
        const int code = MPIX_Halo_grid_box(*grid, *number, &made, nullptr);
        if (code == MPI_SUCCESS) *box = to_fortran(made);
        return code;
    });
}

MPIX_HALO_FORTRAN(grid_box_rank, (const MPIX_Halo_grid *grid, const fint *number, fint *rank, fint *ierror)) {
    call("MPIX_Halo_grid_box_rank", ierror, [&] {
        MPIX_Halo_box box;
        return MPIX_Halo_grid_box(*grid, *number, &box, rank);
    });
}

// As local() of mpix::halo::grid, which C does not have.
MPIX_HALO_FORTRAN(grid_local, (const fint *i, const MPIX_Halo_grid *grid, fortran_box *box, fint *ierror)) {
    call("MPIX_Halo_grid_local", ierror, [&] {
        return answer("MPIX_Halo_grid_local", errors_of(*grid), [&] {
            const halo::grid &g = demand_handle(*grid, "grid").grid;
            *box = to_fortran(to_c(g.local(*i - 1)));
        });
    });
}

MPIX_HALO_FORTRAN(grid_owner, (const MPIX_Halo_grid *grid, const fint cell[], fint *rank, fint *ierror)) {
    call("MPIX_Halo_grid_owner", ierror, [&] {
        const int64_t in_c[] = {cell[0] - int64_t{1}, cell[1] - int64_t{1}, cell[2] - int64_t{1}};
        return MPIX_Halo_grid_owner(*grid, in_c, rank);
    });
}

MPIX_HALO_FORTRAN(points, (const MPIX_Halo_grid *grid, const fortran_box *cells, const fint staggered[],
                           fortran_box *points, fint *ierror)) {
    call("MPIX_Halo_points", ierror, [&] {
        const MPIX_Halo_box in_c = to_c(*cells);
        MPIX_Halo_box made;
        const int code = MPIX_Halo_points(*grid, &in_c, staggered, &made);
        if (code == MPI_SUCCESS) *points = to_fortran(made);
        return code;
    });
}

MPIX_HALO_FORTRAN(global_index,
                  (const MPIX_Halo_grid *grid, const fint *i, const fint local[], fint global[], fint *ierror)) {
    call("MPIX_Halo_global_index", ierror, [&] {
        const int64_t in_c[] = {local[0] - int64_t{1}, local[1] - int64_t{1}, local[2] - int64_t{1}};
        int64_t made[3];
        const int code = MPIX_Halo_global_index(*grid, *i - 1, in_c, made);
        for (int a = 0; code == MPI_SUCCESS && a < 3; ++a) global[a] = static_cast<fint>(made[a] + 1);
        return code;
    });
}

MPIX_HALO_FORTRAN(grid_neighbours, (const MPIX_Halo_grid *grid, const fint direction[], const fint *depth,
                                    const fint *size, fint ranks[], fint *count, fint *ierror)) {
    call("MPIX_Halo_grid_neighbours", ierror, [&] {
        const int number = number_of(direction);
        if (number == no_direction && *grid != MPIX_HALO_GRID_NULL)
            return raise(errors_of(*grid), "MPIX_Halo_grid_neighbours", MPI_ERR_ARG,
                         format("direction is ({}, {}, {}); its entries are -1, 0 or 1, and not all 0", direction[0],
                                direction[1], direction[2]));
        return MPIX_Halo_grid_neighbours(*grid, number, *depth, *size, ranks, count);
    });
}

MPIX_HALO_FORTRAN(deep_radius,
                  (const MPIX_Halo_grid *grid, const fint stencil[], const fint *every, fint radius[], fint *ierror)) {
    call("MPIX_Halo_deep_radius", ierror, [&] { return MPIX_Halo_deep_radius(*grid, stencil, *every, radius); });
}

MPIX_HALO_FORTRAN(deep_valid, (const MPIX_Halo_grid *grid, const fint *i, const fint stencil[], const fint *every,
                               const fint *steps, const fint staggered[], fortran_box *box, fint *ierror)) {
    call("MPIX_Halo_deep_valid", ierror, [&] {
        MPIX_Halo_box made;
        const int code = MPIX_Halo_deep_valid(*grid, *i - 1, stencil, *every, *steps, staggered, &made);
        if (code == MPI_SUCCESS) *box = to_fortran(made);
        return code;
    });
}

MPIX_HALO_FORTRAN(difference, (const fortran_box *outer, const fortran_box *inner, fortran_box boxes[], fint *count,
                               fint *ierror)) {
    call("MPIX_Halo_difference", ierror, [&] {
        const MPIX_Halo_box whole = to_c(*outer), part = to_c(*inner);
        MPIX_Halo_box made[6];
        const int code = MPIX_Halo_difference(&whole, &part, made, count);
        if (code == MPI_SUCCESS)
            std::transform(made, made + *count, boxes, [](const MPIX_Halo_box &b) { return to_fortran(b); });
        return code;
    });
}
