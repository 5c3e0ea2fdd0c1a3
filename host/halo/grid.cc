// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/decomposition/decompose.h"
#include "host/decomposition/predict.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_state.h"
#include "host/halo/internals.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *where = "mpix::halo::grid";

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
    for (std::size_t i = 0; i < o.links.within_node.size(); ++i)
        if (const double bandwidth = o.links.within_node[i]; !(bandwidth > 0) || !std::isfinite(bandwidth))
            return failure(MPI_ERR_ARG,
                           format("options.links.within_node[{}] is {}; it is above 0 and finite", i, bandwidth));
    if (!(o.links.network >= 0) || !std::isfinite(o.links.network))
        return failure(MPI_ERR_ARG,
                       format("options.links.network is {}; it is at least 0 and finite", o.links.network));
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
    const std::vector<double> &within = o.links.within_node;
    all.push_back(
        {.name = "options.links.within_node", .values = count(within.size()), .verb = "has", .counted = " entries"});
    for (std::size_t i = 0; i < within.size(); ++i)
        all.push_back(argument::real(format("options.links.within_node[{}]", i), within[i]));
    all.push_back(argument::real("options.links.network", o.links.network));
    append_radius(all, "options.typical_radius", o.typical_radius);
    all.push_back(argument::real("options.typical_bytes_per_cell", o.typical_bytes_per_cell));
    return all;
}

// The ranks of each node, both in the order of ranks. Collective.
std::vector<std::vector<int>> nodes_of(const grid_state &g) {
    MPI_Comm node = MPI_COMM_NULL;
    demand(MPI_Comm_split_type(g.comm, MPI_COMM_TYPE_SHARED, g.rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    int lowest = g.rank;
    const int code = MPI_Bcast(&lowest, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    demand(code, "MPI_Bcast");
    std::vector<int> all(static_cast<std::size_t>(g.ranks));
    demand(MPI_Allgather(&lowest, 1, MPI_INT, all.data(), 1, MPI_INT, g.comm), "MPI_Allgather");
    std::vector<std::vector<int>> nodes, by_lowest(all.size());
    for (int r = 0; r < g.ranks; ++r) by_lowest[all[r]].push_back(r);
    std::copy_if(by_lowest.begin(), by_lowest.end(), std::back_inserter(nodes),
                 [](const auto &n) { return !n.empty(); });
    return nodes;
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
        machine m{.nodes = count, .bandwidth = matrix(per_node), .network = o.links.network};
        for (int i = 0; i < per_node; ++i)
            for (int j = 0; j < per_node; ++j) m.bandwidth(i, j) = within[static_cast<std::size_t>(i) * per_node + j];
        chosen = plan_by_time(g.domain.extent, m, {o.typical_radius, o.typical_bytes_per_cell, g.domain.periodic},
                              o.shortest);
    } else if (const auto d = decompose(g.domain.extent, count, per_node, o.shortest)) {
        chosen = plan{*d, trivial_placement(per_node)};
    }
    const index3 &e = g.domain.extent;
    if (!chosen)
        return failure(MPI_ERR_ARG,
                       format("{} x {} x {} cells cannot be cut into {} boxes (options.shortest: {} x {} x {}); use "
                              "fewer ranks, or give options.boxes",
                              e[0], e[1], e[2], g.ranks, o.shortest[0], o.shortest[1], o.shortest[2]));
    for (int node = 0; node < count; ++node)
        for (int i = 0; i < per_node; ++i)
            g.domain.boxes[nodes[node][chosen->gpu_of[i]]] = chosen->boxes.at(node * per_node + i);
    return {};
}

// For a function of the grid.
const grid_state &state_of(const grid &g, const char *function) { return *internals::state_of(g, where, function); }

}  // namespace

const std::shared_ptr<const grid_state> &internals::state_of(const grid &g, const char *caller, const char *function) {
    if (!g.state_)
        throw error(MPI_ERR_ARG, format("{}{}{}: the grid has been moved from", caller, function != nullptr ? "::" : "",
                                        function != nullptr ? function : ""));
    return g.state_;
}

grid_state::~grid_state() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (comm != MPI_COMM_NULL && !finalized) MPI_Comm_free(&comm);
}

void check_communicator(MPI_Comm comm) {
    int initialized = 0, finalized = 0, inter = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        throw error(MPI_ERR_OTHER, format("{}: call it between MPI_Init and MPI_Finalize", where));
    if (comm == MPI_COMM_NULL) throw error(MPI_ERR_COMM, format("{}: comm is MPI_COMM_NULL", where));
    demand(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
    if (inter) throw error(MPI_ERR_COMM, format("{}: comm is an intercommunicator", where));
}

std::shared_ptr<const grid_state> make_grid_state(MPI_Comm comm, const std::vector<std::int64_t> &extent,
                                                  const grid_options &options, const status &given) {
    check_communicator(comm);
    const auto g = std::make_shared<grid_state>();
    demand(MPI_Comm_dup(comm, &g->comm), "MPI_Comm_dup");
    demand(MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    demand(MPI_Comm_rank(g->comm, &g->rank), "MPI_Comm_rank");
    demand(MPI_Comm_size(g->comm, &g->ranks), "MPI_Comm_size");

    status s = given;
    if (s.ok()) s = check_extent(extent);
    if (s.ok()) s = check_options(options, static_cast<int>(extent.size()));
    check_collectively(g->comm, where, s, arguments(extent, options));

    domain &d = g->domain;
    d.dimensions = static_cast<int>(extent.size());
    std::copy(extent.begin(), extent.end(), d.extent.along);
    d.periodic = options.periodic;
    d.boxes = options.boxes;
    if (options.boxes.empty()) {
        d.boxes.resize(static_cast<std::size_t>(g->ranks));
        const std::vector<std::vector<int>> nodes = nodes_of(*g);
        if (g->rank == 0) s = compute_boxes(*g, options, nodes);
    } else if (options.boxes.size() != static_cast<std::size_t>(g->ranks)) {
        s = failure(MPI_ERR_ARG, format("options.boxes has {} boxes; there are {} ranks", d.boxes.size(), g->ranks));
    } else if (const std::string why = why_not_a_cover(d); !why.empty()) {
        s = failure(MPI_ERR_ARG, format("options.boxes do not cover the domain once: {}", why));
    }
    check_collectively(g->comm, where, s);
    // Computed once, so that predictions in floating point decide the same on all nodes.
    static_assert(sizeof(box) == 6 * sizeof(std::int64_t));
    if (options.boxes.empty()) demand(MPI_Bcast(d.boxes.data(), 6 * g->ranks, MPI_INT64_T, 0, g->comm), "MPI_Bcast");
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

const box &grid::local() const {
    const grid_state &g = state_of(*this, "local");
    return g.domain.boxes[g.rank];
}

const box &grid::box_of(int rank) const {
    const grid_state &g = state_of(*this, "box_of");
    if (rank < 0 || rank >= g.ranks)
        throw error(MPI_ERR_RANK, format("mpix::halo::grid::box_of: rank is {}; there are {}", rank, g.ranks));
    return g.domain.boxes[rank];
}

box grid::points(const box &cells, const std::array<bool, 3> &staggered) const {
    const domain &d = state_of(*this, "points").domain;
    if (const status bad = check_staggered(staggered, d.dimensions, "staggered"); !bad.ok())
        throw error(class_of(bad), format("{}::points: {}", where, bad.message()));
    return points_of(d, cells, staggered);
}

int grid::owner(const index3 &cell) const {
    const grid_state &g = state_of(*this, "owner");
    const box one{cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1}};
    for (int r = 0; r < g.ranks; ++r)
        if (!intersection(g.domain.boxes[r], one).empty()) return r;
    throw error(MPI_ERR_ARG,
                format("mpix::halo::grid::owner: [{}, {}, {}] is not in the domain", cell[0], cell[1], cell[2]));
}

index3 grid::global_index(const index3 &local) const {
    const grid_state &g = state_of(*this, "global_index");
    const domain &d = g.domain;
    index3 global = d.boxes[g.rank].lo;
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
    for (int r = 0; r < g.ranks; ++r)
        if (!pieces_between(g.domain, g.rank, r, only).empty()) owners.push_back(r);
    return owners;
}

}  // namespace mpix::halo
