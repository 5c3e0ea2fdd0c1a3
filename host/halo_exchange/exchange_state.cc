// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/exchange_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "host/config.h"
#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/exchanged_fields.h"
#include "host/halo/regions.h"
#include "host/halo_report/report_text.h"
#include "host/report.h"
#include "host/request/user_memory.h"
#include "transport/select.h"

namespace mpix::halo {
namespace {

// What MPIX_HALO_TRANSFER asks for, if `choice` lets it and the fields can be exchanged so; otherwise what the program
// does. `must_pack`: a datatype cannot be used.
transfer transfer_in_use(const exchange_state &x, bool must_pack, transfer_choice choice) {
    if (x.reversed()) return x.how;
    if (x.to_nodes == node_messages::always) return transfer::packed;
    const transfer given = must_pack && x.how == transfer::automatic ? transfer::packed : x.how;
    if (choice == transfer_choice::as_given) return given;
    switch (config().transfer) {
        case halo_transfer::program:
            break;
        case halo_transfer::packed:
            return transfer::packed;
        case halo_transfer::datatype:
            return must_pack ? given : transfer::datatype;
        case halo_transfer::plain:
            return transfer::plain;
    }
    return given;
}

// Whether some rank's fields exclude a datatype: ghost cells in messages, GPU memory, or a field of two allocations.
// Collective, since a rank without boxes does not know the others' fields.
bool must_pack(const exchange_state &x) {
    int any =
        x.in_messages() || x.packer->has_gpu_fields() ||
        std::any_of(x.fields.begin(), x.fields.end(), [](const field_view &f) { return f.has_second_allocation(); });
    demand(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, x.grid->comm), "MPI_Allreduce");
    return any != 0;
}

const char *name_of_reduction(std::int64_t how) {
    constexpr const char *names[] = {"none", "sum", "min", "max"};
    return names[how];
}

const char *name_of_storage(std::int64_t where) {
    constexpr const char *names[] = {"in_fields", "in_messages"};
    return names[where];
}

status check_storage(const exchange_state &x) {
    if (x.ghosts < ghost_storage::in_fields || x.ghosts > ghost_storage::in_messages)
        return failure(MPI_ERR_ARG, format("options.ghosts is {}; it is in_fields or in_messages (0 or 1)",
                                           static_cast<int>(x.ghosts)));
    if (!x.in_messages()) return {};
    if (x.reversed())
        return failure(MPI_ERR_ARG,
                       format("options.reduce is {}, and options.ghosts is in_messages; a reverse exchange sends ghost "
                              "cells of the fields",
                              name_of_reduction(static_cast<std::int64_t>(x.reduce))));
    if (x.how == transfer::datatype)
        return failure(MPI_ERR_ARG,
                       "transfer is datatype, and options.ghosts is in_messages; a datatype receives into the fields");
    return {};
}

const char *name_of_node_messages(std::int64_t how) {
    constexpr const char *names[] = {"never", "automatic", "always"};
    return names[how];
}

status check_node_messages(exchange_state &x) {
    if (x.to_nodes < node_messages::never || x.to_nodes > node_messages::always)
        return failure(MPI_ERR_ARG, format("options.node_messages is {}; it is never, automatic or always (0 to 2)",
                                           static_cast<int>(x.to_nodes)));
    if (x.to_nodes != node_messages::always) return {};
    if (x.reversed())
        return failure(MPI_ERR_ARG, format("options.node_messages is always, and options.reduce is {}; a reverse "
                                           "exchange has no node messages",
                                           name_of_reduction(static_cast<std::int64_t>(x.reduce))));
    if (x.in_messages())
        return failure(MPI_ERR_ARG,
                       "options.node_messages is always, and options.ghosts is in_messages; the memory of a node "
                       "message is used again");
    if (x.how == transfer::automatic) x.how = transfer::packed;
    if (x.how == transfer::packed) return {};
    return failure(MPI_ERR_ARG, format("options.node_messages is always, and transfer is {}; node messages are packed",
                                       name_of_transfer(static_cast<std::int64_t>(x.how))));
}

bool is_in_gpu(const exchange_state &x, const field &f) {
    if (!f.allocations.empty() && f.allocations.size() != x.grid->mine.size()) return false;  // an error, found later
    if (fake_gpu_memory == fake_memory::device) return !x.in_messages();
    // What takes host memory only takes managed memory, too, which the CPU can write.
    const bool only_host = x.in_messages() || x.how == transfer::datatype;
    for (std::size_t i = 0; i < x.grid->mine.size(); ++i) {
        void *const at = allocation_of(f, i).data;
        const bool of_gpu = fake_gpu_memory == fake_memory::managed || transport::locate(at).owner != nullptr;
        if (at != nullptr && of_gpu && !(only_host && can_write(at))) return true;
    }
    return false;
}

status check_gpu_fields(const exchange_state &x) {
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        if (!x.packer->is_in_gpu(f)) continue;
        if (x.in_messages())
            return failure(MPI_ERR_ARG, format("fields[{}].data: it is memory of a GPU, and options.ghosts is "
                                               "in_messages; such messages are in host memory",
                                               f));
        if (x.how == transfer::datatype)
            return failure(MPI_ERR_ARG, format("transfer is datatype, and fields[{}].data is memory of a GPU; such "
                                               "fields are packed into host memory",
                                               f));
    }
    return {};
}

status make_fields(exchange_state &x, const std::vector<field> &fields) {
    if (x.how < transfer::packed || x.how > transfer::automatic)
        return failure(MPI_ERR_ARG, format("transfer is {}; it is 0 (packed), 1 (datatype), 2 (plain) or 3 (automatic)",
                                           static_cast<int>(x.how)));
    if (x.reduce < reduction::none || x.reduce > reduction::max)
        return failure(MPI_ERR_ARG, format("options.reduce is {}; it is none, sum, min or max (0 to 3)",
                                           static_cast<int>(x.reduce)));
    if (x.reversed() && x.how == transfer::automatic) x.how = transfer::packed;
    if (x.reversed() && x.how != transfer::packed)
        return failure(MPI_ERR_ARG, format("transfer is {}; a reverse exchange is packed",
                                           name_of_transfer(static_cast<std::int64_t>(x.how))));
    if (status s = check_storage(x); !s.ok()) return s;
    if (const status bad = check_node_messages(x); !bad.ok()) return bad;
    std::vector<bool> in_gpu;
    for (const field &f : fields) in_gpu.push_back(is_in_gpu(x, f));
    x.packer = std::make_unique<cell_packer>(x.grid->comm, in_gpu);
    for (std::size_t f = 0; f < fields.size(); ++f) {
        x.fields.emplace_back();
        const status s =
            field_view::make(fields[f], x.grid->local_points(fields[f].layout.staggered), x.grid->domain.dimensions,
                             x.fields.back(), in_gpu[f], x.in_messages() ? ghost_room::any : ghost_room::demanded);
        if (!s.ok()) return s.in_context(format("fields[{}]{}", f, class_of(s) == MPI_ERR_COUNT ? ": " : "."));
        if (!x.reversed()) continue;
        x.combine.push_back(combine_function_of(fields[f].type, x.reduce));
        if (x.combine.back() == nullptr)
            return failure(
                MPI_ERR_TYPE,
                format("fields[{}].type has no arithmetic; a reverse exchange needs integers or real numbers", f));
    }
    for (std::size_t f = 0; f < fields.size(); ++f)
        if (x.fields[f].has_second_allocation() && x.how == transfer::datatype)
            return failure(
                MPI_ERR_ARG,
                format("transfer is datatype, and fields[{}].other is given; a field of two allocations is packed", f));
    if (const status bad = check_gpu_fields(x); !bad.ok()) return bad;
    return check_memory(*x.grid, x.fields, fields);
}

template <class Enum>
argument named(std::string name, Enum value, const char *(*name_of)(std::int64_t)) {
    return {.name = std::move(name), .values = {static_cast<std::int64_t>(value)}, .name_of = name_of};
}

const char *name_of_type(std::int64_t type) { return name_of(static_cast<value_type>(type)); }

std::vector<argument> arguments(const exchange_state &x) {
    std::vector<argument> all{as_argument(collective_call::exchange),
                              {"the number of fields", {static_cast<std::int64_t>(x.fields.size())}},
                              named("the reduction", x.reduce, name_of_reduction),
                              named("transfer", x.how, name_of_transfer),
                              named("options.ghosts", x.ghosts, name_of_storage),
                              named("options.node_messages", x.to_nodes, name_of_node_messages)};
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        append_field(all, f, x.fields[f]);
        if (x.reversed()) all.push_back(named(format("fields[{}].type", f), x.fields[f].type(), name_of_type));
    }
    return all;
}

// A message to be: of each field, its parts.
struct gathered {
    std::vector<std::vector<runs>> parts;
    direction_bytes by_direction{};
};
using gathered_by_rank = std::map<int, gathered>;

void add(gathered_by_rank &all, exchange_state &x, int rank, std::size_t field, const runs &part, int direction) {
    x.packer->prepare(field, part);
    gathered &of_rank = all[rank];
    of_rank.parts.resize(x.fields.size());
    of_rank.parts[field].push_back(part);
    of_rank.by_direction[static_cast<std::size_t>(direction)] += part.total();
}

// Where ghost cells are unpacked; or, if they are not, only how many bytes they are: the field may have no room.
runs received(const exchange_state &x, std::size_t field, const piece &p) {
    const field_view &view = x.fields[field];
    if (x.in_messages()) return {.bytes = p.ghosts.cells() * view.components() * view.value_bytes()};
    return view.of(x.grid->position_of(p.receiver), p.ghosts);
}

void make_messages(exchange_state &x, const std::vector<field_pieces> &pieces) {
    const grid_state &g = *x.grid;
    gathered_by_rank ghosts, sources;
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        for (const piece &p : pieces[f].ghosts)
            if (const int rank = g.domain.owners[p.owner]; rank != g.rank)
                add(ghosts, x, rank, f, received(x, f, p), p.direction);
        for (const piece &p : pieces[f].sources)
            if (const int rank = g.domain.owners[p.receiver]; rank != g.rank)
                add(sources, x, rank, f, x.fields[f].of(g.position_of(p.owner), p.source), opposite(p.direction));
    }
    const std::int64_t alignment = x.in_messages() ? alignment_of(x.fields) : 1;
    const auto made = [&x, alignment](int rank, gathered &its) {
        const std::int64_t bytes = std::accumulate(its.by_direction.begin(), its.by_direction.end(), std::int64_t{0});
        return message(rank, std::move(its.parts), its.by_direction,
                       x.how == transfer::automatic ? transfer_of(bytes) : x.how, alignment, x.packer.get());
    };
    for (auto &[rank, its] : x.reversed() ? sources : ghosts) x.receives.push_back(made(rank, its));
    for (auto &[rank, its] : x.reversed() ? ghosts : sources) x.sends.push_back(made(rank, its));
    // The longest are sent first.
    std::vector<std::size_t> order(x.sends.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return x.sends[a].bytes() > x.sends[b].bytes(); });
    std::vector<message> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(x.sends[i]));
    x.sends.swap(sorted);
}

void make_requests(exchange_state &x) {
    const grid_state &g = *x.grid;
    x.arrival_seconds.resize(x.receives.size());
    for (const message &m : x.receives) x.requests.push_back(m.request_for_receive(g.comm));
    for (const message &m : x.sends) x.requests.push_back(m.request_for_send(g.comm));
}

void make_own_copies(exchange_state &x, const std::vector<field_pieces> &pieces) {
    const grid_state &g = *x.grid;
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        x.own.emplace_back();
        std::int64_t most = 0;
        for (const piece &p : pieces[f].sources) {
            if (g.domain.owners[p.receiver] != g.rank || x.in_messages()) continue;
            own_copy c{x.fields[f].of(g.position_of(p.owner), p.source),
                       x.fields[f].of(g.position_of(p.receiver), p.ghosts)};
            if (x.reversed()) std::swap(c.from, c.to);
            x.packer->prepare(f, c.from);
            x.packer->prepare(f, c.to);
            most = std::max(most, c.from.total());
            x.own.back().push_back(c);
        }
        x.room.emplace_back(static_cast<std::size_t>(most));
    }
}

// After make_messages(), of the same pieces, which are in the order of the boxes that have the ghost cells.
void list_contributions(exchange_state &x, const std::vector<field_pieces> &pieces) {
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        std::map<int, std::size_t> seen;  // parts from each rank
        for (const piece &p : pieces[f].sources) {
            const int rank = x.grid->domain.owners[p.receiver];
            contribution c{.field = static_cast<int>(f), .part = seen[rank]++};
            if (rank != x.grid->rank) {
                const auto m = std::partition_point(x.receives.begin(), x.receives.end(),
                                                    [&](const message &some) { return some.peer() < rank; });
                c.receive = static_cast<int>(m - x.receives.begin());
                c.at = m->offset_of(c.field, c.part);
            }
            x.contributions.push_back(c);
        }
    }
}

}  // namespace

std::unique_ptr<exchange_state> make_exchange_state(std::shared_ptr<const grid_state> grid,
                                                    const std::vector<field> &fields, const exchange_options &options,
                                                    const status &given, transfer_choice choice) {
    auto made = std::make_unique<exchange_state>();
    exchange_state &x = *made;
    x.grid = std::move(grid);
    x.how = options.transfer;
    x.reduce = options.reduce;
    x.ghosts = options.ghosts;
    x.to_nodes = options.node_messages;
    const MPI_Comm comm = x.grid->comm;
    const status made_fields = given.ok() ? make_fields(x, fields) : given;
    check_collectively(comm, exchange_call, made_fields, arguments(x));
    x.how = transfer_in_use(x, must_pack(x), choice);
    const status s = outcome_of([&] {
        x.ready.resize(fields.size());
        for (std::size_t f = 0; f < fields.size(); ++f) {
            x.data.emplace_back();
            for (std::size_t i = 0; i < x.grid->mine.size(); ++i) {
                const allocation memory = allocation_of(fields[f], i);
                x.data.back().push_back({memory.data, memory.other});
                for (void *const first : x.data.back().back())
                    x.memory.add(static_cast<int>(f), first, static_cast<std::size_t>(x.fields[f].bytes(i)),
                                 x.packer->is_in_gpu(f));
            }
        }
        std::vector<field_reach> reaches;
        for (const field_view &field : x.fields) reaches.push_back({field.radius(), field.staggered()});
        const std::vector<field_pieces> pieces = find_pieces(*x.grid, reaches);
        x.areas = find_regions(*x.grid, reaches, pieces, x.reversed());
        make_own_copies(x, pieces);
        make_messages(x, pieces);
        if (!x.may_go_by_node()) make_requests(x);
        if (x.reversed()) list_contributions(x, pieces);
        if (!x.in_messages()) return;
        x.read_from_other.resize(fields.size());
        for (std::size_t f = 0; f < fields.size(); ++f)
            x.to_read.push_back(boxes_to_read(*x.grid, static_cast<int>(f), x.fields[f], pieces[f].ghosts, x.receives));
    });
    check_collectively(comm, exchange_call, s);
    if (x.may_go_by_node()) {
        x.by_node = make_node_exchange(comm, x.grid->nodes, x.to_nodes, x.receives, x.sends);
        check_collectively(comm, exchange_call, outcome_of([&] { make_requests(x); }));
    }
    return made;
}

bool exchange_state::free_requests() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return true;
    if (how == transfer::plain && failed) return false;  // MPI would free active ones, which use the memory
    // It refuses those that are active, which return errors, as the grid's communicator does.
    std::erase_if(requests, [](MPI_Request &request) { return MPI_Request_free(&request) == MPI_SUCCESS; });
    return (!by_node || by_node->free_requests()) && requests.empty();
}

exchange_state::~exchange_state() { free_requests(); }

}  // namespace mpix::halo
