// SPDX-License-Identifier: BSD-3-Clause
//
// What grids answer, and refuse.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::radius;
using halo_test::rank;
using halo_test::refused;

namespace {

void grid_refused(const char *what, int error_class, const std::string &sentence,
                  const std::vector<std::int64_t> &extent, const halo::grid_options &options = {}) {
    refused(what, error_class, "mpix::halo::grid, " + sentence, [&] { halo::grid(MPI_COMM_WORLD, extent, options); });
}

}  // namespace

void grids() {
    refused("comm", MPI_ERR_COMM, "mpix::halo::grid: comm is MPI_COMM_NULL", [] { halo::grid(MPI_COMM_NULL, {4, 4}); });
    grid_refused("no extent", MPI_ERR_DIMS, "rank 0: extent has 0 axes; it has 1 to 3", {});
    grid_refused("4-D", MPI_ERR_DIMS, "rank 0: extent has 4 axes; it has 1 to 3", {4, 4, 4, 4});
    grid_refused("empty", MPI_ERR_DIMS, "rank 0: extent[1] is 0; it is at least 1", {4, 0});
    grid_refused("large", MPI_ERR_DIMS, "rank 0: extent: more than 2^60 cells", {1 << 30, 1 << 30, 2});
    grid_refused("axis", MPI_ERR_ARG, "rank 0: options.periodic[1]: the domain has 1 axes", {4},
                 {.periodic = {false, true, false}});
    grid_refused("shortest", MPI_ERR_ARG, "rank 0: options.shortest[0] is 0; it is at least 1", {4},
                 {.shortest = {0, 1, 1}});
    grid_refused(
        "too few cells", MPI_ERR_ARG,
        "rank 0: 1 x 1 x 1 cells cannot be cut into 2 boxes (options.shortest: 1 x 1 x 1); use fewer ranks, or give "
        "options.boxes",
        {1, 1, 1});
    grid_refused("boxes", MPI_ERR_ARG, "rank 0: options.boxes has 1 boxes; there are 2 ranks, and no options.owners",
                 {4}, {.boxes = {{{}, {4, 1, 1}}}});
    grid_refused(
        "overlap", MPI_ERR_ARG,
        "rank 0: options.boxes do not cover the domain once: boxes[0] and boxes[1] overlap, in [0, 0, 0] to [4, 1, 1]",
        {4}, {.boxes = {{{}, {4, 1, 1}}, {{}, {4, 1, 1}}}});
    grid_refused("links", MPI_ERR_ARG, "rank 0: options.links.within_node has 3 entries; 2 ranks of a node need 4", {4},
                 {.links = {.within_node = {1, 1, 1}}});
    grid_refused("hi below lo", MPI_ERR_ARG,
                 "rank 0: options.boxes[1] is [4, 0, 0] to [0, 4, 1]: hi is below lo; an empty box has hi equal to lo",
                 {4, 4}, {.boxes = {{{}, {4, 4, 1}}, {{4, 0, 0}, {0, 4, 1}}}});
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const auto bandwidths = [](double last) { return halo::measured_links{.within_node = {1, 1, 1, last}}; };
    grid_refused("infinity", MPI_ERR_ARG, "rank 0: options.links.within_node[3] is inf; it is above 0 and finite", {4},
                 {.links = bandwidths(inf)});
    grid_refused("nan", MPI_ERR_ARG, "rank 0: options.links.within_node[3] is nan; it is above 0 and finite", {4},
                 {.links = bandwidths(nan)});
    grid_refused("network", MPI_ERR_ARG, "rank 0: options.links.network is inf; it is at least 0 and finite", {4},
                 {.links = {.network = inf}});
    grid_refused("network", MPI_ERR_ARG, "rank 0: options.links.network is -1; it is at least 0 and finite", {4},
                 {.links = {.network = -1}});
    grid_refused("typical bytes", MPI_ERR_ARG, "rank 0: options.typical_bytes_per_cell is 0; it is above 0 and finite",
                 {4}, {.typical_bytes_per_cell = 0});
    // One rank alone is wrong, or of another mind.
    grid_refused("one rank", MPI_ERR_DIMS, "rank 1: extent[0] is -3; it is at least 1", {rank == 1 ? -3 : 4});
    grid_refused("disagree", MPI_ERR_ARG, "rank 1: extent is 4, 5 here, and 4, 4 on rank 0; all ranks give the same",
                 {4, 4 + rank});
    grid_refused("disagree on the number of axes", MPI_ERR_ARG,
                 "rank 1: extent is 4 here, and 4, 4 on rank 0; all ranks give the same",
                 rank == 0 ? std::vector<std::int64_t>{4, 4} : std::vector<std::int64_t>{4});
    grid_refused("disagree on periods", MPI_ERR_ARG,
                 "rank 1: options.periodic is 1, 0, 0 here, and 0, 0, 0 on rank 0; all ranks give the same", {4, 4},
                 {.periodic = {rank == 1, false, false}});
    const auto halves = [](std::int64_t at) { return std::vector<box>{{{}, {at, 4, 1}}, {{at, 0, 0}, {4, 4, 1}}}; };
    grid_refused("boxes on one rank", MPI_ERR_ARG,
                 "rank 1: options.boxes has 2 boxes here, and 0 on rank 0; all ranks give the same", {4, 4},
                 {.boxes = rank == 1 ? halves(2) : std::vector<box>{}});
    grid_refused("other boxes", MPI_ERR_ARG,
                 "rank 1: options.boxes[0].hi is 2, 4, 1 here, and 1, 4, 1 on rank 0; all ranks give the same", {4, 4},
                 {.boxes = halves(1 + rank)});
    grid_refused("bandwidths on one rank", MPI_ERR_ARG,
                 "rank 1: options.links.within_node has 4 entries here, and 0 on rank 0; all ranks give the same", {4},
                 {.links = rank == 1 ? bandwidths(1) : halo::measured_links{}});
    // Which are equal as integers.
    grid_refused("bandwidths", MPI_ERR_ARG,
                 "rank 1: options.links.within_node[3] is 1.75 here, and 1.5 on rank 0; all ranks give the same", {4},
                 {.links = bandwidths(rank == 1 ? 1.75 : 1.5)});
    grid_refused("typical bytes", MPI_ERR_ARG,
                 "rank 1: options.typical_bytes_per_cell is 0.75 here, and 0.5 on rank 0; all ranks give the same", {4},
                 {.typical_bytes_per_cell = rank == 1 ? 0.75 : 0.5});
    grid_refused(
        "typical radius", MPI_ERR_ARG,
        "rank 1: options.typical_radius in direction +x+y+z is 2 here, and 0 on rank 0; all ranks give the same", {4},
        {.typical_radius = radius::faces(1).set(1, 1, 1, 2 * rank)});
    grid_refused("no boxes per rank", MPI_ERR_ARG, "rank 0: options.boxes_per_rank is 0; it is at least 1", {4},
                 {.boxes_per_rank = 0});
    grid_refused("many boxes per rank", MPI_ERR_ARG,
                 "rank 0: options.boxes_per_rank is 2000000000; 2 ranks can have 357913941 boxes together", {4},
                 {.boxes_per_rank = 2000000000});
    grid_refused("too few cells for all boxes", MPI_ERR_ARG,
                 "rank 0: 5 x 1 x 1 cells cannot be cut into 6 boxes (options.shortest: 1 x 1 x 1); use fewer ranks or "
                 "options.boxes_per_rank, or give options.boxes",
                 {5}, {.boxes_per_rank = 3});
    grid_refused("boxes and boxes per rank", MPI_ERR_ARG,
                 "rank 0: options.boxes_per_rank is 2, and options.boxes are given; leave it 1", {4},
                 {.boxes = {{{}, {4, 1, 1}}}, .boxes_per_rank = 2});
    grid_refused("other boxes per rank", MPI_ERR_ARG,
                 "rank 1: options.boxes_per_rank is 2 here, and 1 on rank 0; all ranks give the same", {4},
                 {.boxes_per_rank = 1 + rank});
    grid_refused("owners without boxes", MPI_ERR_ARG,
                 "rank 0: options.owners are those of options.boxes, of which there are none", {4}, {.owners = {0, 1}});
    grid_refused("number of owners", MPI_ERR_ARG, "rank 0: options.owners has 2 entries; options.boxes has 1 boxes",
                 {4}, {.boxes = {{{}, {4, 1, 1}}}, .owners = {0, 1}});
    grid_refused("no such owner", MPI_ERR_ARG, "rank 0: options.owners[0] is 2; there are 2 ranks", {4},
                 {.boxes = {{{}, {4, 1, 1}}}, .owners = {2}});
    grid_refused("other owner", MPI_ERR_ARG,
                 "rank 1: options.owners[0] is 1 here, and 0 on rank 0; all ranks give the same", {4},
                 {.boxes = {{{}, {4, 1, 1}}}, .owners = {rank}});
    refused("no direction", MPI_ERR_ARG,
            "mpix::halo::radius::set: there is no direction (2, 0, 0); each of x, y, z is -1, 0 or 1",
            [] { radius().set(2, 0, 0, 1); });
    refused("an offset without a negative", MPI_ERR_ARG,
            "mpix::halo::radius::of: a number of an offset is -2147483648; it is at least -2147483647", [] {
                radius::of({{0, 0, std::numeric_limits<int>::min()}});
            });
}
