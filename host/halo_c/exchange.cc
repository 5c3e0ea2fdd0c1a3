// SPDX-License-Identifier: BSD-3-Clause
//
// Fields and exchanges in C.
#include "host/halo_c/exchange.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/halo/grid_internals.h"
#include "host/halo_c/handles.h"
#include "host/halo_c/types.h"
#include "host/halo_exchange/exchange_internals.h"
#include "host/halo_exchange/exchange_report.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;
using namespace mpix::halo;

namespace mpix::halo {

status convert(const MPIX_Halo_field &f, field &made) {
    made.data = f.data;
    made.other = f.other;
    if (status s = halo::convert(f.type, made.value_bytes, made.type); !s.ok()) return s;
    std::copy_n(f.radius, directions, made.radius.cells.begin());
    const MPIX_Halo_layout &l = f.layout;
    made.layout.components = l.components;
    made.layout.interleaved = l.interleaved != 0;
    made.layout.below = from_c(l.below);
    made.layout.above = from_c(l.above);
    made.layout.staggered = axes_from_c(l.staggered);
    const auto distance = [](int64_t bytes, const char *name, std::size_t &to) {
        to = static_cast<std::size_t>(bytes);
        return bytes >= 0 ? status{} : failure(MPI_ERR_ARG, format("layout.{} is {}; it is at least 0", name, bytes));
    };
    if (f.allocated < 0) return failure(MPI_ERR_ARG, format("allocated is {}; it is at least 0", f.allocated));
    made.allocated = static_cast<std::size_t>(f.allocated);
    if (f.allocation_count < 0 || (f.allocations == nullptr && f.allocation_count > 0))
        return failure(MPI_ERR_ARG, format("allocation_count is {}, and allocations is {}", f.allocation_count,
                                           f.allocations == nullptr ? "null" : "not null"));
    for (int i = 0; i < f.allocation_count; ++i) {
        const MPIX_Halo_allocation &a = f.allocations[i];
        if (a.allocated < 0)
            return failure(MPI_ERR_ARG, format("allocations[{}].allocated is {}; it is at least 0", i, a.allocated));
        made.allocations.push_back({a.data, a.other, static_cast<std::size_t>(a.allocated)});
    }
    status s = distance(l.row_bytes, "row_bytes", made.layout.row_bytes);
    if (s.ok()) s = distance(l.plane_bytes, "plane_bytes", made.layout.plane_bytes);
    if (s.ok()) s = distance(l.component_bytes, "component_bytes", made.layout.component_bytes);
    return s;
}

status convert(int count, const MPIX_Halo_field *fields, std::vector<field> &made) {
    if (count < 0) return failure(MPI_ERR_COUNT, format("count is {}; it is at least 0", count));
    if (count > 0 && fields == nullptr) return failure(MPI_ERR_ARG, "fields is null");
    for (int f = 0; f < count; ++f) {
        made.emplace_back(nullptr, 1, radius{});
        if (status s = convert(fields[f], made.back()); !s.ok()) return s.in_context(format("fields[{}].", f));
    }
    return {};
}

int gather_with(const status &given, const check_of_array &check, MPIX_Halo_grid grid, const MPIX_Halo_field *from,
                void *global, int root) try {
    MPIX_CHECK_THREAD("MPIX_Halo_gather", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_gather", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        field converted(nullptr, 1, radius{});
        status bad = from == nullptr ? failure(MPI_ERR_ARG, "from is null") : convert(*from, converted);
        if (from != nullptr) bad = bad.in_context("from.");
        if (!given.ok()) bad = given;
        gather_checked(g, converted, global, root, bad, check);
    });
}
MPIX_BOUNDARY("MPIX_Halo_gather", of_comm(errors_of(grid)))

void give_text(const std::string &all, char *text, int size) {
    demand_argument(text, "text");
    if (size < 1) throw error(MPI_ERR_ARG, format("size is {}; it is at least 1", size));
    text[all.copy(text, static_cast<std::size_t>(size) - 1)] = '\0';
}

}  // namespace mpix::halo

namespace {

// `bad`: what was wrong before. Collective, unless grid is null.
void create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field *fields, const exchange_options &options, status bad,
            MPIX_Halo_exchange *made) {
    if (made != nullptr) *made = MPIX_HALO_EXCHANGE_NULL;
    const mpix_halo_grid &g = demand_handle(grid, "grid");
    std::vector<field> converted;
    if (made == nullptr) bad = failure(MPI_ERR_ARG, "exchange is null");
    if (bad.ok()) bad = convert(count, fields, converted);
    auto state = make_exchange_state(grid_internals::state_of(g.grid, "mpix::halo::exchange"), converted, options, bad);
    *made = new mpix_halo_exchange{exchange_internals::exchange_of(std::move(state)), g.errors};
}

// Splits `transfer` into C++'s options. A negative number is passed on, to be refused.
status transfer_from_c(int transfer, exchange_options &options) {
    constexpr int automatic = MPIX_HALO_NODE_MESSAGES_AUTOMATIC, always = MPIX_HALO_NODE_MESSAGES_ALWAYS;
    const int flags = transfer < 0 ? 0 : transfer & (MPIX_HALO_IN_MESSAGES | automatic | always);
    options.transfer = static_cast<halo::transfer>(transfer & ~flags);
    if (options.transfer > transfer::automatic)
        return failure(MPI_ERR_ARG,
                       format("transfer is {}; it is 0 (packed), 1 (datatype), 2 (plain) or 3 (automatic), "
                              "and flags, of which the sum is at most {}",
                              transfer, MPIX_HALO_IN_MESSAGES + always));
    if ((flags & MPIX_HALO_IN_MESSAGES) != 0) options.ghosts = ghost_storage::in_messages;
    if ((flags & automatic) != 0) options.node_messages = node_messages::automatic;
    if ((flags & always) != 0) options.node_messages = node_messages::always;
    if ((flags & automatic) == 0 || (flags & always) == 0) return {};
    return failure(MPI_ERR_ARG,
                   "transfer has MPIX_HALO_NODE_MESSAGES_AUTOMATIC and MPIX_HALO_NODE_MESSAGES_ALWAYS; give one");
}

exchange &of(MPIX_Halo_exchange handle) { return demand_handle(handle, "exchange").exchange; }

}  // namespace

MPIX_SYMBOL int MPIX_Halo_field_init(void *data, MPI_Datatype type, const int radius[MPIX_HALO_DIRECTIONS],
                                     MPIX_Halo_field *field) try {
    return answer("MPIX_Halo_field_init", MPI_COMM_NULL, [&] {
        demand_argument(radius, "radius");
        demand_argument(field, "field");
        *field = {};
        field->data = data;
        field->type = type;
        std::copy_n(radius, directions, field->radius);
        field->layout.components = 1;
        std::fill_n(field->layout.below, 3, -1);
        std::fill_n(field->layout.above, 3, -1);
    });
}
MPIX_BOUNDARY("MPIX_Halo_field_init", of_world())

MPIX_SYMBOL int MPIX_Halo_field_bytes(MPIX_Halo_grid grid, int i, const MPIX_Halo_field *field, int64_t *bytes) try {
    return answer("MPIX_Halo_field_bytes", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        demand_argument(field, "field");
        demand_argument(bytes, "bytes");
        halo::field converted(nullptr, 1, radius{});
        if (const status bad = convert(*field, converted); !bad.ok())
            throw error(class_of(bad), format("field.{}", bad.message()));
        *bytes = static_cast<int64_t>(field_bytes(g, converted, i));
    });
}
MPIX_BOUNDARY("MPIX_Halo_field_bytes", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_gather(MPIX_Halo_grid grid, const MPIX_Halo_field *from, void *global, int root) {
    return gather_with({}, nullptr, grid, from, global, root);
}

MPIX_SYMBOL int MPIX_Halo_exchange_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[], int transfer,
                                          MPIX_Halo_exchange *exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_exchange_create", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_exchange_create", errors_of(grid),
                  [&] {
                      exchange_options options;
                      const status bad = transfer_from_c(transfer, options);
                      create(grid, count, fields, options, bad, exchange);
                  },
                  {{"options.ghosts", "the storage of ghost cells (MPIX_HALO_IN_MESSAGES)"},
                   {"options.node_messages", "the choice of node messages (MPIX_HALO_NODE_MESSAGES_)"}});
}
MPIX_BOUNDARY("MPIX_Halo_exchange_create", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_reverse_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[], MPI_Op op,
                                         MPIX_Halo_exchange *exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_reverse_create", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_reverse_create", errors_of(grid),
                  [&] {
                      exchange_options options;
                      const status bad = halo::convert(op, options.reduce);
                      create(grid, count, fields, options, bad, exchange);
                  },
                  {{"options.reduce", "op"}, {"the reduction", "op"}});
}
MPIX_BOUNDARY("MPIX_Halo_reverse_create", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_exchange_free(MPIX_Halo_exchange *exchange) try {
    const MPI_Comm errors = exchange == nullptr ? MPI_COMM_NULL : errors_of(*exchange);
    MPIX_CHECK_THREAD("MPIX_Halo_exchange_free", of_comm(errors));
    return answer("MPIX_Halo_exchange_free", errors, [&] {
        demand_argument(exchange, "exchange");
        if (*exchange != nullptr && (*exchange)->exchange.active())
            throw error(MPI_ERR_REQUEST, "the exchange is active; finish it first");
        delete std::exchange(*exchange, MPIX_HALO_EXCHANGE_NULL);
    });
}
MPIX_BOUNDARY("MPIX_Halo_exchange_free", of_world())

MPIX_SYMBOL int MPIX_Halo_start(MPIX_Halo_exchange exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_start", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_start", errors_of(exchange), [&] { of(exchange).start(); });
}
MPIX_BOUNDARY("MPIX_Halo_start", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_finish(MPIX_Halo_exchange exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_finish", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_finish", errors_of(exchange), [&] { of(exchange).finish(); });
}
MPIX_BOUNDARY("MPIX_Halo_finish", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_begin(MPIX_Halo_exchange exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_begin", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_begin", errors_of(exchange), [&] { of(exchange).begin(); });
}
MPIX_BOUNDARY("MPIX_Halo_begin", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_ready(int field, MPIX_Halo_exchange exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_ready", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_ready", errors_of(exchange), [&] { of(exchange).ready(field); });
}
MPIX_BOUNDARY("MPIX_Halo_ready", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_active(MPIX_Halo_exchange exchange, int *flag) try {
    return answer("MPIX_Halo_active", errors_of(exchange), [&] {
        const bool active = of(exchange).active();
        demand_argument(flag, "flag");
        *flag = active;
    });
}
MPIX_BOUNDARY("MPIX_Halo_active", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_swap(int field, MPIX_Halo_exchange exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_swap", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_swap", errors_of(exchange), [&] { of(exchange).swap(field); });
}
MPIX_BOUNDARY("MPIX_Halo_swap", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_data(int field, int i, MPIX_Halo_exchange exchange, void **data) try {
    return answer("MPIX_Halo_data", errors_of(exchange), [&] {
        const halo::exchange &x = of(exchange);
        demand_argument(data, "data");
        *data = x.data(field, i);
    });
}
MPIX_BOUNDARY("MPIX_Halo_data", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_interior(int i, MPIX_Halo_exchange exchange, MPIX_Halo_box *box) try {
    return answer("MPIX_Halo_interior", errors_of(exchange), [&] {
        const halo::box &inner = of(exchange).interior(i);
        demand_argument(box, "box");
        *box = to_c(inner);
    });
}
MPIX_BOUNDARY("MPIX_Halo_interior", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_boundary(int i, MPIX_Halo_exchange exchange, MPIX_Halo_box boxes[6], int *count) try {
    return answer("MPIX_Halo_boundary", errors_of(exchange), [&] {
        const std::vector<box> &outer = of(exchange).boundary(i);
        demand_argument(boxes, "boxes");
        demand_argument(count, "count");
        std::transform(outer.begin(), outer.end(), boxes, to_c);
        *count = static_cast<int>(outer.size());
    });
}
MPIX_BOUNDARY("MPIX_Halo_boundary", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_ghost_pieces(int field, int i, MPIX_Halo_exchange exchange, int size,
                                       MPIX_Halo_ghost_piece pieces[], int *count) try {
    return answer("MPIX_Halo_ghost_pieces", errors_of(exchange),
                  [&] {
                      const std::vector<ghost_piece> &found = of(exchange).ghost_pieces(field, i);
                      demand_argument(count, "count");
                      if (size < 0) throw error(MPI_ERR_COUNT, format("size is {}; it is at least 0", size));
                      if (size > 0) demand_argument(pieces, "pieces");
                      *count = static_cast<int>(found.size());
                      for (int n = 0; n < std::min(size, *count); ++n) {
                          const ghost_piece &p = found[static_cast<std::size_t>(n)];
                          pieces[n] = {to_c(p.cells), p.direction, p.first, {}, p.component_stride};
                          std::copy_n(p.stride.along, 3, pieces[n].stride);
                      }
                  },
                  {{"options.ghosts = ghost_storage::in_messages", "MPIX_HALO_IN_MESSAGES"}});
}
MPIX_BOUNDARY("MPIX_Halo_ghost_pieces", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_sent(MPIX_Halo_exchange exchange, int *messages, int64_t *bytes) try {
    return answer("MPIX_Halo_sent", errors_of(exchange), [&] {
        const halo::exchange &x = of(exchange);
        if (messages != nullptr) *messages = x.messages_sent();
        if (bytes != nullptr) *bytes = x.bytes_sent();
    });
}
MPIX_BOUNDARY("MPIX_Halo_sent", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_measure(int flag, MPIX_Halo_exchange exchange) try {
    return answer("MPIX_Halo_measure", errors_of(exchange), [&] { of(exchange).measure(flag != 0); });
}
MPIX_BOUNDARY("MPIX_Halo_measure", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_report(MPIX_Halo_exchange exchange, char *text, int size) try {
    return answer("MPIX_Halo_report", errors_of(exchange),
                  [&] { give_text(of(exchange).report().text(), text, size); });
}
MPIX_BOUNDARY("MPIX_Halo_report", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_compare_transfers(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[],
                                            int exchanges, double seconds[3], int *fastest) try {
    MPIX_CHECK_THREAD("MPIX_Halo_compare_transfers", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_compare_transfers", errors_of(grid), [&] {
        const mpix_halo_grid &g = demand_handle(grid, "grid");
        std::vector<field> converted;
        status bad;
        if (seconds == nullptr) bad = failure(MPI_ERR_ARG, "seconds is null");
        if (fastest == nullptr) bad = failure(MPI_ERR_ARG, "fastest is null");
        if (bad.ok()) bad = convert(count, fields, converted);
        const transfer_times times = compare_transfers_checked(g.grid, converted, exchanges, bad);
        std::copy(times.seconds.begin(), times.seconds.end(), seconds);
        *fastest = static_cast<int>(times.fastest);
    });
}
MPIX_BOUNDARY("MPIX_Halo_compare_transfers", of_comm(errors_of(grid)))
