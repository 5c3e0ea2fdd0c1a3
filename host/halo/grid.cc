// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/decomposition/decompose.h"
#include "host/decomposition/predict.h"
#include "host/field/box_index.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_state.h"
#include "host/halo/grid_internals.h"
#include "host/halo/usable.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr std::int64_t most_cells = std::int64_t{1} << 60;

status check_extent(const std::vector<std::int64_t> &extent) {
    if (extent.empty() || extent.size() > 3)
        return failure(MPI_ERR_DIMS, format("extent has {} axes; it has 1 to 3", extent.size()));
    std::int64_t cells = 1;
    for (std::size_t a = 0; a < extent.size(); ++a) {
        if (extent[a] < 1) return failure(MPI_ERR_DIMS, format("extent[{}] is {}; it is at least 1", a, extent[a]));
        if (extent[a] > most_cells / cells) return failure(MPI_ERR_DIMS, "extent: more than 2^60 cells");
        cells *= extent[a];
    }
    return {};
}

status check_options(const grid_options &o, int dimensions) {
    for (int a = 0; a < 3; ++a) {
        if (o.shortest[a] < 1)
            return failure(MPI_ERR_ARG, format("options.shortest[{}] is {}; it is at least 1", a, o.shortest[a]));
        if (a >= dimensions && (o.periodic[a] || o.shortest[a] != 1))
            return failure(MPI_ERR_ARG, format("options.{}[{}]: the domain has {} axes",
                                               o.periodic[a] ? "periodic" : "shortest", a, dimensions));
    }
    for (std::size_t i = 0; i < o.boxes.size(); ++i)
        for (int a = 0; a < 3; ++a)
            if (o.boxes[i].hi[a] < o.boxes[i].lo[a])
                return failure(MPI_ERR_ARG,
                               format("options.boxes[{}] is {}: hi is below lo; an empty box has hi equal to lo", i,
                                      text_of(o.boxes[i])));
    if (o.boxes_per_rank < 1)
        return failure(MPI_ERR_ARG, format("options.boxes_per_rank is {}; it is at least 1", o.boxes_per_rank));
    if (!o.boxes.empty() && o.boxes_per_rank != 1)
        return failure(MPI_ERR_ARG, format("options.boxes_per_rank is {}, and options.boxes are given; leave it 1",
                                           o.boxes_per_rank));
    if (o.boxes.empty() && !o.owners.empty())
        return failure(MPI_ERR_ARG, "options.owners are those of options.boxes, of which there are none");
    for (std::size_t i = 0; i < o.links.within_node.size(); ++i)
        if (const double bandwidth = o.links.within_node[i]; !(bandwidth > 0) || !std::isfinite(bandwidth))
            return failure(MPI_ERR_ARG,
                           format("options.links.within_node[{}] is {}; it is above 0 and finite", i, bandwidth));
    if (!(o.links.network >= 0) || !std::isfinite(o.links.network))
        return failure(MPI_ERR_ARG,
                       format("options.links.network is {}; it is at least 0 and finite", o.links.network));
    if (!(o.links.run_seconds >= 0) || !std::isfinite(o.links.run_seconds))
        return failure(MPI_ERR_ARG,
                       format("options.links.run_seconds is {}; it is at least 0 and finite", o.links.run_seconds));
    if (!(o.typical_bytes_per_cell > 0) || !std::isfinite(o.typical_bytes_per_cell))
        return failure(MPI_ERR_ARG, format("options.typical_bytes_per_cell is {}; it is above 0 and finite",
                                           o.typical_bytes_per_cell));
    for (const int depth : o.typical_radius.cells)
        if (depth < 0) return failure(MPI_ERR_ARG, format("options.typical_radius has {}; it is at least 0", depth));
    return {};
}

std::vector<argument> arguments(const std::vector<std::int64_t> &extent, const grid_options &o) {
    const auto whole = [](const index3 &i) { return std::vector<std::int64_t>(i.along, i.along + 3); };
    const auto count = [](std::size_t n) { return std::vector<std::int64_t>{static_cast<std::int64_t>(n)}; };
    std::vector<argument> all{
        {"extent", extent},
        {"options.periodic", {o.periodic.begin(), o.periodic.end()}},
        {"options.shortest", whole(o.shortest)},
        {.name = "options.boxes", .values = count(o.boxes.size()), .verb = "has", .counted = " boxes"}};
    for (std::size_t i = 0; i < o.boxes.size(); ++i) {
        all.push_back({format("options.boxes[{}].lo", i), whole(o.boxes[i].lo)});
        all.push_back({format("options.boxes[{}].hi", i), whole(o.boxes[i].hi)});
    }
    all.push_back({.name = "options.owners", .values = count(o.owners.size()), .verb = "has", .counted = " entries"});
    for (std::size_t i = 0; i < o.owners.size(); ++i) all.push_back({format("options.owners[{}]", i), {o.owners[i]}});
    all.push_back({"options.boxes_per_rank", {o.boxes_per_rank}});
    const std::vector<double> &within = o.links.within_node;
    all.push_back(
        {.name = "options.links.within_node", .values = count(within.size()), .verb = "has", .counted = " entries"});
    for (std::size_t i = 0; i < within.size(); ++i)
        all.push_back(argument::real(format("options.links.within_node[{}]", i), within[i]));
    all.push_back(argument::real("options.links.network", o.links.network));
    all.push_back(argument::real("options.links.run_seconds", o.links.run_seconds));
    append_radius(all, "options.typical_radius", o.typical_radius);
    all.push_back(argument::real("options.typical_bytes_per_cell", o.typical_bytes_per_cell));
    return all;
}

// Whether there are as many boxes and owners as there must be.
status check_counts(const grid_state &g, const grid_options &o) {
    constexpr int most = INT_MAX / 6;  // the boxes' numbers are in one message
    if (o.boxes.empty()) {
        if (o.boxes_per_rank <= most / g.ranks) return {};
        return failure(MPI_ERR_ARG, format("options.boxes_per_rank is {}; {} ranks can have {} boxes together",
                                           o.boxes_per_rank, g.ranks, most));
    }
    if (o.owners.empty() && o.boxes.size() != static_cast<std::size_t>(g.ranks))
        return failure(MPI_ERR_ARG, format("options.boxes has {} boxes; there are {} ranks, and no options.owners",
                                           o.boxes.size(), g.ranks));
    if (!o.owners.empty() && o.owners.size() != o.boxes.size())
        return failure(MPI_ERR_ARG, format("options.owners has {} entries; options.boxes has {} boxes", o.owners.size(),
                                           o.boxes.size()));
    for (std::size_t i = 0; i < o.owners.size(); ++i)
        if (o.owners[i] < 0 || o.owners[i] >= g.ranks)
            return failure(MPI_ERR_ARG,
                           format("options.owners[{}] is {}; there are {} ranks", i, o.owners[i], g.ranks));
    return {};
}

// The boxes of all ranks.
status compute_boxes(grid_state &g, const grid_options &o, std::vector<std::vector<int>> nodes) {
    const bool alike =
        std::all_of(nodes.begin(), nodes.end(), [&](const auto &n) { return n.size() == nodes[0].size(); });
    if (!alike) {  // one level, in which a node's ranks still follow each other
        for (std::size_t n = 1; n < nodes.size(); ++n)
            nodes[0].insert(nodes[0].end(), nodes[n].begin(), nodes[n].end());
        nodes.resize(1);
    }
    const int per_node = static_cast<int>(nodes[0].size()), count = static_cast<int>(nodes.size());
    std::optional<plan> chosen;
    if (const std::vector<double> &within = o.links.within_node; !within.empty()) {
        if (!alike) return failure(MPI_ERR_ARG, "options.links: nodes have different numbers of ranks; leave it empty");
        if (within.size() != static_cast<std::size_t>(per_node) * per_node)
            return failure(MPI_ERR_ARG, format("options.links.within_node has {} entries; {} ranks of a node need {}",
                                               within.size(), per_node, per_node * per_node));
        if (count > 1 && !(o.links.network > 0))
            return failure(MPI_ERR_ARG, "options.links.network is not above 0, and there are several nodes");
        machine m{.nodes = count,
                  .bandwidth = matrix(per_node),
                  .network = o.links.network,
                  .run_seconds = o.links.run_seconds};
        for (int i = 0; i < per_node; ++i)
            for (int j = 0; j < per_node; ++j) m.bandwidth(i, j) = within[static_cast<std::size_t>(i) * per_node + j];
        chosen = plan_by_time(g.domain.extent, m, {o.typical_radius, o.typical_bytes_per_cell, g.domain.periodic},
                              o.shortest);
    } else if (const auto d = decompose(g.domain.extent, count, per_node, o.shortest)) {
        chosen = plan{*d, trivial_placement(per_node)};
    }
    const index3 &e = g.domain.extent;
    const std::optional<count3> more = chosen ? cut_further(chosen->boxes, o.boxes_per_rank, o.shortest) : std::nullopt;
    if (!more)
        return failure(MPI_ERR_ARG,
                       format("{} x {} x {} cells cannot be cut into {} boxes (options.shortest: {} x {} x {}); use "
                              "fewer {}, or give options.boxes",
                              e[0], e[1], e[2], g.domain.boxes.size(), o.shortest[0], o.shortest[1], o.shortest[2],
                              o.boxes_per_rank > 1 ? "ranks or options.boxes_per_rank" : "ranks"));
    for (int node = 0; node < count; ++node)
        for (int i = 0; i < per_node; ++i) {
            const std::vector<box> boxes = cut(chosen->boxes.at(node * per_node + i), *more);
            const std::ptrdiff_t first = std::ptrdiff_t{nodes[node][chosen->gpu_of[i]]} * o.boxes_per_rank;
            std::copy(boxes.begin(), boxes.end(), g.domain.boxes.begin() + first);
        }
    return {};
}

std::string name_of(const char *caller, const char *function) {
    return function != nullptr ? format("{}::{}", caller, function) : caller;
}

int demand_number(const grid_state &g, const char *function, int number) {
    if (number < 0 || number >= static_cast<int>(g.domain.boxes.size()))
        throw error(MPI_ERR_ARG, format("{}::{}: number is {}; there are {} boxes", grid_call, function, number,
                                        g.domain.boxes.size()));
    return number;
}

// For a function of the grid.
const grid_state &state_of(const grid &g, const char *function) {
    return *grid_internals::state_of(g, grid_call, function);
}

}  // namespace

const std::shared_ptr<const grid_state> &grid_internals::state_of(const grid &g, const char *caller,
                                                                  const char *function) {
    if (!g.state_) throw error(MPI_ERR_ARG, format("{}: the grid has been moved from", name_of(caller, function)));
    return g.state_;
}

grid_state::~grid_state() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (comm != MPI_COMM_NULL && !finalized) MPI_Comm_free(&comm);
}

std::vector<box> grid_state::local_points(const std::array<bool, 3> &staggered) const {
    std::vector<box> points;
    for (const int number : mine) points.push_back(points_of(domain, domain.boxes[number], staggered));
    return points;
}

double grid_state::bandwidth(int from, int to) const {
    if (links.within_node.empty()) return 0;
    const int node = nodes.node_of(from);
    if (node != nodes.node_of(to)) return links.network;
    const std::size_t per_node = nodes.ranks_of(node).size();
    return links.within_node[static_cast<std::size_t>(nodes.place_of(from)) * per_node + nodes.place_of(to)];
}

int grid_state::position_of(int number) const {
    return static_cast<int>(std::lower_bound(mine.begin(), mine.end(), number) - mine.begin());
}

int demand_box(const grid_state &g, int i, const char *caller, const char *function) {
    if (i < 0 || i >= static_cast<int>(g.mine.size()))
        throw error(MPI_ERR_ARG,
                    format("{}: i is {}; this rank has {} boxes", name_of(caller, function), i, g.mine.size()));
    return i;
}

int demand_only_box(const grid_state &g, const char *caller, const char *function) {
    if (g.mine.size() != 1)
        throw error(MPI_ERR_ARG,
                    format("{}: this rank has {} boxes; say which is meant", name_of(caller, function), g.mine.size()));
    return 0;
}

void check_communicator(MPI_Comm comm, const char *caller) {
    int inter = 0;
    demand_mpi_for(caller);
    if (comm == MPI_COMM_NULL) throw error(MPI_ERR_COMM, format("{}: comm is MPI_COMM_NULL", caller));
    demand(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
    if (inter) throw error(MPI_ERR_COMM, format("{}: comm is an intercommunicator", caller));
}

std::shared_ptr<const grid_state> make_grid_state(MPI_Comm comm, const std::vector<std::int64_t> &extent,
                                                  const grid_options &options, const status &given) {
    check_communicator(comm, grid_call);
    const auto g = std::make_shared<grid_state>();
    demand(MPI_Comm_dup(comm, &g->comm), "MPI_Comm_dup");
    demand(MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    demand(MPI_Comm_set_name(g->comm, "mpix::halo"), "MPI_Comm_set_name");  // in MPIX_EXPLAIN and stall reports
    demand(MPI_Comm_rank(g->comm, &g->rank), "MPI_Comm_rank");
    demand(MPI_Comm_size(g->comm, &g->ranks), "MPI_Comm_size");

    status s = given;
    if (s.ok()) s = check_extent(extent);
    if (s.ok()) s = check_options(options, static_cast<int>(extent.size()));
    check_collectively(g->comm, grid_call, s, arguments(extent, options));

    g->nodes = node_map(g->comm);
    domain &d = g->domain;
    d.dimensions = static_cast<int>(extent.size());
    std::copy(extent.begin(), extent.end(), d.extent.along);
    d.periodic = options.periodic;
    d.boxes = options.boxes;
    d.owners = options.owners;
    const int per_rank = options.boxes_per_rank;
    if (s = check_counts(*g, options); s.ok() && options.boxes.empty()) {
        d.boxes.resize(static_cast<std::size_t>(g->ranks) * per_rank);
        if (g->rank == 0) s = compute_boxes(*g, options, g->nodes.nodes());
        g->links = options.links;
    } else if (s.ok()) {
        if (const std::string why = why_not_a_cover(d); !why.empty())
            s = failure(MPI_ERR_ARG, format("options.boxes do not cover the domain once: {}", why));
    }
    check_collectively(g->comm, grid_call, s);
    // Computed once, so that predictions in floating point decide the same on all nodes.
    static_assert(sizeof(box) == 6 * sizeof(std::int64_t));
    if (options.boxes.empty())
        demand(MPI_Bcast(d.boxes.data(), 6 * g->ranks * per_rank, MPI_INT64_T, 0, g->comm), "MPI_Bcast");
    if (d.owners.empty())
        for (std::size_t i = 0; i < d.boxes.size(); ++i) d.owners.push_back(static_cast<int>(i) / per_rank);
    for (std::size_t i = 0; i < d.boxes.size(); ++i)
        if (d.owners[i] == g->rank) g->mine.push_back(static_cast<int>(i));
    return g;
}

grid::grid(MPI_Comm comm, const std::vector<std::int64_t> &extent, const grid_options &options)
    : state_(make_grid_state(comm, extent, options)) {}

grid::grid(std::shared_ptr<const grid_state> made) : state_(std::move(made)) {}

int grid::dimensions() const { return state_of(*this, "dimensions").domain.dimensions; }
const index3 &grid::extent() const { return state_of(*this, "extent").domain.extent; }
const std::array<bool, 3> &grid::periodic() const { return state_of(*this, "periodic").domain.periodic; }
int grid::rank() const { return state_of(*this, "rank").rank; }
int grid::ranks() const { return state_of(*this, "ranks").ranks; }

const std::vector<int> &grid::boxes() const { return state_of(*this, "boxes").mine; }
int grid::total_boxes() const { return static_cast<int>(state_of(*this, "total_boxes").domain.boxes.size()); }

const box &grid::local() const {
    const grid_state &g = state_of(*this, "local");
    return g.local(demand_only_box(g, grid_call, "local"));
}

const box &grid::local(int i) const {
    const grid_state &g = state_of(*this, "local");
    return g.local(demand_box(g, i, grid_call, "local"));
}

const box &grid::box_of(int number) const {
    const grid_state &g = state_of(*this, "box_of");
    return g.domain.boxes[demand_number(g, "box_of", number)];
}

int grid::rank_of(int number) const {
    const grid_state &g = state_of(*this, "rank_of");
    return g.domain.owners[demand_number(g, "rank_of", number)];
}

box grid::points(const box &cells, const std::array<bool, 3> &staggered) const {
    const domain &d = state_of(*this, "points").domain;
    if (const status bad = check_staggered(staggered, d.dimensions, "staggered"); !bad.ok())
        throw error(class_of(bad), format("{}::points: {}", grid_call, bad.message()));
    return points_of(d, cells, staggered);
}

int grid::owner(const index3 &cell) const {
    const grid_state &g = state_of(*this, "owner");
    const box one{cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1}};
    for (std::size_t i = 0; i < g.domain.boxes.size(); ++i)
        if (!intersection(g.domain.boxes[i], one).empty()) return g.domain.owners[i];
    throw error(MPI_ERR_ARG,
                format("mpix::halo::grid::owner: [{}, {}, {}] is not in the domain", cell[0], cell[1], cell[2]));
}

index3 grid::global_index(const index3 &local) const {
    const grid_state &g = state_of(*this, "global_index");
    return global_index(local, demand_only_box(g, grid_call, "global_index"));
}

index3 grid::global_index(const index3 &local, int i) const {
    const grid_state &g = state_of(*this, "global_index");
    const domain &d = g.domain;
    index3 global = g.local(demand_box(g, i, grid_call, "global_index")).lo;
    for (int a = 0; a < 3; ++a) {
        global[a] += local[a];
        if (d.periodic[a]) global[a] = (global[a] % d.extent[a] + d.extent[a]) % d.extent[a];
    }
    return global;
}

std::vector<int> grid::neighbours(int direction, int depth) const {
    const grid_state &g = state_of(*this, "neighbours");
    constexpr const char *here = "mpix::halo::grid::neighbours";
    if (direction < 0 || direction >= directions || direction == no_direction)
        throw error(MPI_ERR_ARG, format("{}: direction is {}; it is 0 to 26, and not 13", here, direction));
    if (depth < 0) throw error(MPI_ERR_ARG, format("{}: depth is {}; it is at least 0", here, depth));
    for (int a = dimensions(); a < 3; ++a)
        if (halo::direction(direction)[a] != 0)
            throw error(MPI_ERR_ARG, format("{}: direction is {} ({}); the domain has {} axes", here, direction,
                                            direction_name(direction), dimensions()));
    radius only;
    only.cells[direction] = depth;
    std::vector<int> owners;
    for (const piece &p : pieces_to(g.domain, box_index(g.domain), g.mine, only))
        owners.push_back(g.domain.owners[p.owner]);
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    return owners;
}

}  // namespace mpix::halo
