// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/exchange_state.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *where = "mpix::halo::exchange";

status make_fields(exchange_state &x, const std::vector<field> &fields) {
    if (x.how != transfer::packed && x.how != transfer::datatype)
        return failure(MPI_ERR_ARG,
                       format("transfer is {}; it is 0 (packed) or 1 (datatype)", static_cast<int>(x.how)));
    if (x.reduce < reduction::none || x.reduce > reduction::max)
        return failure(MPI_ERR_ARG, format("options.reduce is {}; it is none, sum, min or max (0 to 3)",
                                           static_cast<int>(x.reduce)));
    if (x.reversed() && x.how != transfer::packed)
        return failure(MPI_ERR_ARG, "transfer is datatype; a reverse exchange is packed");
    const domain &d = x.grid->domain;
    const box &local = d.boxes[x.grid->rank];
    for (std::size_t f = 0; f < fields.size(); ++f) {
        x.fields.emplace_back();
        const status s =
            field_view::make(fields[f], points_of(d, local, fields[f].layout.staggered), d.dimensions, x.fields.back());
        if (!s.ok()) return s.in_context(format("fields[{}]{}", f, class_of(s) == MPI_ERR_COUNT ? ": " : "."));
        if (!x.reversed()) continue;
        x.combine.push_back(combine_function_of(fields[f].type, x.reduce));
        if (x.combine.back() == nullptr)
            return failure(
                MPI_ERR_TYPE,
                format("fields[{}].type has no arithmetic; a reverse exchange needs integers or real numbers", f));
    }
    if (local.empty()) return {};
    struct allocation {
        std::string name;
        runs cells;
    };
    std::vector<allocation> seen;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        if (x.fields[f].has_second_allocation() && x.how != transfer::packed)
            return failure(
                MPI_ERR_ARG,
                format("transfer is datatype, and fields[{}].other is given; a field of two allocations is packed", f));
        const runs cells = x.fields[f].allocated();
        std::vector<allocation> mine{{format("fields[{}].data", f), cells}};
        if (cells.other != nullptr) {
            mine.push_back({format("fields[{}].other", f), cells});
            mine.back().cells.first = cells.other;
        }
        for (const allocation &one : mine) {
            for (const allocation &earlier : seen)
                if (overlap(earlier.cells, one.cells))
                    return failure(MPI_ERR_ARG, format("{} overlaps {}", one.name, earlier.name));
            seen.push_back(one);
        }
    }
    return {};
}

template <class Enum>
argument named(std::string name, Enum value, const char *(*name_of)(std::int64_t)) {
    return {.name = std::move(name), .values = {static_cast<std::int64_t>(value)}, .name_of = name_of};
}

const char *name_of_transfer(std::int64_t how) { return how == 0 ? "packed" : "datatype"; }

const char *name_of_reduction(std::int64_t how) {
    constexpr const char *names[] = {"none", "sum", "min", "max"};
    return names[how];
}

const char *name_of_type(std::int64_t type) { return name_of(static_cast<value_type>(type)); }

std::vector<argument> arguments(const exchange_state &x) {
    std::vector<argument> all{{"the number of fields", {static_cast<std::int64_t>(x.fields.size())}},
                              named("transfer", x.how, name_of_transfer),
                              named("the reduction", x.reduce, name_of_reduction)};
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        const field_view &field = x.fields[f];
        all.push_back({.name = format("fields[{}]: values", f),
                       .values = {field.value_bytes()},
                       .verb = "have",
                       .counted = " bytes"});
        if (x.reversed()) all.push_back(named(format("fields[{}].type", f), field.type(), name_of_type));
        all.push_back({format("fields[{}].layout.components", f), {field.components()}});
        all.push_back({format("fields[{}].layout.interleaved", f), {field.interleaved()}});
        all.push_back({format("fields[{}].layout.staggered", f), {field.staggered().begin(), field.staggered().end()}});
        append_radius(all, format("fields[{}].radius", f), field.radius());
    }
    return all;
}

// Of each field, who fills whose ghost cells.
using domains = std::vector<domain>;

// Of each field, what `receiver` gets from `owner`: the source cells, or the ghost cells. Empty if it gets nothing.
std::vector<std::vector<runs>> parts(const exchange_state &x, const domains &of, int receiver, int owner,
                                     box piece::*side) {
    std::vector<std::vector<runs>> all;
    bool some = false;
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        all.emplace_back();
        for (const piece &p : pieces_between(of[f], receiver, owner, x.fields[f].radius()))
            all.back().push_back(x.fields[f].of(p.*side));
        some = some || !all.back().empty();
    }
    if (!some) all.clear();
    return all;
}

void make_messages(exchange_state &x, const domains &of) {
    const int me = x.grid->rank;
    for (int peer = 0; peer < x.grid->ranks; ++peer) {
        if (peer == me) continue;
        if (auto ghosts = parts(x, of, me, peer, &piece::ghosts); !ghosts.empty())
            (x.reversed() ? x.sends : x.receives).emplace_back(peer, std::move(ghosts), x.how);
        if (auto cells = parts(x, of, peer, me, &piece::source); !cells.empty())
            (x.reversed() ? x.receives : x.sends).emplace_back(peer, std::move(cells), x.how);
    }
    // The longest are sent first.
    std::vector<std::size_t> order(x.sends.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return x.sends[a].bytes() > x.sends[b].bytes(); });
    std::vector<message> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(x.sends[i]));
    x.sends.swap(sorted);

    for (const message &m : x.receives) x.requests.push_back(m.request_for_receive(x.grid->comm));
    for (const message &m : x.sends) x.requests.push_back(m.request_for_send(x.grid->comm));
}

void make_own_copies(exchange_state &x, const domains &of) {
    const int me = x.grid->rank;
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        const field_view &field = x.fields[f];
        x.own.emplace_back();
        std::int64_t most = 0;
        for (const piece &p : pieces_between(of[f], me, me, field.radius())) {
            x.own.back().push_back({field.of(p.source), field.of(p.ghosts)});
            if (x.reversed()) std::swap(x.own.back().back().from, x.own.back().back().to);
            most = std::max(most, x.own.back().back().from.total());
        }
        x.room.emplace_back(static_cast<std::size_t>(most));
    }
}

// Each side on which somebody owns ghost cells is as deep as the field's radius, whichever of them are filled: a
// stencil that reaches far in the direction of a corner reads ghost cells of the faces, too. Where a staggered field has
// a point beyond the last cell, nobody owns ghost cells: the domain ends there.
void find_interior(exchange_state &x, const domains &of) {
    const domain &d = x.grid->domain;
    const box &local = d.boxes[x.grid->rank];
    std::array<index3, 2> depth{};
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        const field_view &field = x.fields[f];
        const std::array<index3, 2> most = ghost_depth(field.radius(), d.dimensions);
        for (int other = 0; other < x.grid->ranks; ++other) {
            const auto &[receiver, owner] =
                x.reversed() ? std::pair(other, x.grid->rank) : std::pair(x.grid->rank, other);
            for (const piece &p : pieces_between(of[f], receiver, owner, field.radius()))
                for (int a = 0; a < 3; ++a)
                    if (const int step = direction(p.direction)[a]; step != 0) {
                        // Ghost cells above a box are cells at the lower side of their owner's.
                        std::int64_t &here = depth[x.reversed() ? step < 0 : step > 0][a];
                        here = std::max(here, most[step > 0][a]);
                    }
        }
    }
    x.interior = shrunk(local, depth);
    x.boundary = difference(local, x.interior);
}

}  // namespace

std::unique_ptr<exchange_state> make_exchange_state(std::shared_ptr<const grid_state> grid,
                                                    const std::vector<field> &fields, const exchange_options &options,
                                                    const status &given) {
    auto made = std::make_unique<exchange_state>();
    exchange_state &x = *made;
    x.grid = std::move(grid);
    x.how = options.transfer;
    x.reduce = options.reduce;
    const MPI_Comm comm = x.grid->comm;
    const status made_fields = given.ok() ? make_fields(x, fields) : given;
    check_collectively(comm, where, made_fields, arguments(x));
    x.ready.resize(fields.size());
    for (const field &f : fields) x.data.push_back({f.data, f.other});
    domains of;
    for (const field_view &field : x.fields) of.push_back(points_of(x.grid->domain, field.staggered()));
    find_interior(x, of);
    make_own_copies(x, of);
    status s;
    try {
        make_messages(x, of);
    } catch (const error &e) {
        s = failure(e.error_class(), e.what());
    }
    check_collectively(comm, where, s);
    return made;
}

bool exchange_state::free_requests() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return true;
    // It refuses those that are active, which return errors, as the grid's communicator does.
    std::erase_if(requests, [](MPI_Request &request) { return MPI_Request_free(&request) == MPI_SUCCESS; });
    return requests.empty();
}

exchange_state::~exchange_state() { free_requests(); }

}  // namespace mpix::halo
