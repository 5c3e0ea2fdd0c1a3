// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/config.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo_exchange/exchange_internals.h"
#include "host/halo_exchange/exchange_report.h"
#include "host/halo_exchange/exchange_state.h"
#include "host/halo/grid_internals.h"
#include "host/halo/usable.h"
#include "host/halo_report/lifetime_error.h"
#include "host/profiled_range.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

MPI_Request *send_requests(exchange_state &x) { return x.requests.data() + x.receives.size(); }

void wait_for_all(int count, MPI_Request *requests) {
    if (count == 0) return;
    int error_class = MPI_SUCCESS;
    const int code = wait_all(count, requests, error_class);
    demand_completion(code, error_class, "MPI_Waitall");
}

int wait_for_any(int count, MPI_Request *requests) {
    int which = MPI_UNDEFINED, error_class = MPI_SUCCESS;
    const int code = MPI_Waitany(count, requests, &which, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &error_class);
    demand_completion(code, error_class, "MPI_Waitany");
    return which;
}

// What all ghost cells give to this rank's boxes, in the order of the boxes that have them.
void combine_in_order(exchange_state &x) {
    const profiled_range shown(range_name::halo_combine);
    for (const contribution &c : x.contributions) {
        if (c.receive >= 0) {
            x.receives[c.receive].combine(c.field, c.part, c.at, x.combine[c.field]);
            continue;
        }
        const own_copy &mine = x.own[c.field][c.part];
        const auto f = static_cast<std::size_t>(c.field);
        x.packer->pack(f, mine.from, x.room[f].data());
        x.packer->combine(f, x.room[f].data(), mine.to, x.combine[f]);
    }
}

void note_arrival(exchange_state &x, int message) {
    if (x.timed) x.arrival_seconds[message] += seconds_since(x.begun);
}
void note_all_arrivals(exchange_state &x) {
    for (int i = 0; i < static_cast<int>(x.receives.size()); ++i) note_arrival(x, i);
}

// What finish() waits for.
void wait_for_messages(exchange_state &x) {
    const int receives = static_cast<int>(x.receives.size());
    if (x.by_node) x.by_node->carry();  // others wait for it
    if (x.reversed()) {
        // Nothing is combined before all is there: finish() may fail, and be called again.
        wait_for_all(static_cast<int>(x.requests.size()), x.requests.data());
        note_all_arrivals(x);
        combine_in_order(x);
    } else if (x.in_messages() ? x.timed : std::any_of(x.receives.begin(), x.receives.end(), [](const message &m) {
                   return !m.typed();
               })) {
        for (int i = 0; i < receives; ++i) {
            const int which = wait_for_any(receives, x.requests.data());
            if (which == MPI_UNDEFINED) break;  // an earlier finish() has completed some, and failed
            note_arrival(x, which);
            if (!x.in_messages() && !x.receives[which].typed()) x.receives[which].unpack();
        }
    } else {
        wait_for_all(receives, x.requests.data());
        note_all_arrivals(x);
    }
    if (x.by_node)
        x.by_node->take([&](node_exchange::part &p) {
            if (x.timed) p.arrival_seconds += seconds_since(x.begun);
        });
    if (!x.reversed()) wait_for_all(static_cast<int>(x.sends.size()), send_requests(x));
    if (x.by_node) x.by_node->complete_sends();
}

error wrong_state(const char *function, const std::string &what) {
    return {MPI_ERR_REQUEST, format("{}::{}: {}", exchange_call, function, what)};
}

// Throws, if a call has failed, after which nobody knows which requests are active. The caller holds the mutex.
void demand_no_failure(const exchange_state &x, const char *function) {
    if (x.failed) throw wrong_state(function, "an earlier call has failed; the exchange can only be freed");
}

// `active`: the memory was freed while the exchange was active.
error lifetime_error(const exchange_state &x, const char *function, int field, end_of_memory how, bool active) {
    ghosts_under_way ghosts(x.fields[static_cast<std::size_t>(field)].radius());
    for (const message &m : x.receives) ghosts.add(m.peer(), m.by_direction());
    return lifetime_error(format("{}::{}", exchange_call, function), x.grid->rank, field, how,
                          active ? &ghosts : nullptr);
}

// Throws if a field's array has been destroyed.
void demand_arrays(const exchange_state &x, const char *function, bool active) {
    if (const int field = x.memory.destroyed_field(); field >= 0)
        throw lifetime_error(x, function, field, end_of_memory::array_destroyed, active);
}

// With MPIX_CHECK, throws if a field's memory has been unmapped. The caller holds the mutex.
void demand_mapped(exchange_state &x, const char *function) {
    const int field = config().check ? x.memory.unmapped_field() : -1;
    if (field < 0) return;
    x.failed = x.active;
    throw lifetime_error(x, function, field, end_of_memory::unmapped, x.active);
}

// Does `work`, of which MPI_ERR_PENDING is the only error that leaves the exchange as it was.
template <class Work>
void or_failed(exchange_state &x, const Work &work) {
    do_or_fail(work, [&](int error_class) {
        const std::lock_guard lock(x.mutex);
        x.failed = x.failed || error_class != MPI_ERR_PENDING;
    });
}

// Its number, if there is such a field.
std::size_t demand_field(const exchange_state &x, const char *function, int field) {
    if (field < 0 || field >= static_cast<int>(x.fields.size()))
        throw error(MPI_ERR_ARG,
                    format("{}::{}: field is {}; there are {}", exchange_call, function, field, x.fields.size()));
    return static_cast<std::size_t>(field);
}

// Positions of boxes of this rank.
int the_box(const exchange_state &x, const char *function, int i) {
    return demand_box(*x.grid, i, exchange_call, function);
}
int the_box(const exchange_state &x, const char *function) { return demand_only_box(*x.grid, exchange_call, function); }

bool has_cells(const grid_state &g) {
    return std::any_of(g.mine.begin(), g.mine.end(), [&](int number) { return !g.domain.boxes[number].empty(); });
}

// begin(), as `function` calls it.
void begin_for(exchange_state &x, const char *function) {
    const stopwatch sending(x.timed, x.sending_seconds, &x.mutex);
    {
        const std::lock_guard lock(x.mutex);
        demand_no_failure(x, function);
        if (x.active) throw wrong_state(function, "the exchange is active; finish it first");
        demand_arrays(x, function, false);
        demand_mapped(x, function);
        x.active = true;
        x.memory.set_active(true);
        x.ready.assign(x.ready.size(), false);
        x.unready = static_cast<int>(x.ready.size());
        if (x.timed) x.begun = exchange_clock::now();
        for (std::size_t f = 0; f < x.to_read.size(); ++f)
            if (x.read_from_other[f]) read_other(x.to_read[f]), x.read_from_other[f] = false;
    }
    // Plain sends are started when all fields are ready.
    or_failed(x, [&] {
        start_all(x.how == transfer::plain ? x.receives.size() : x.requests.size(), x.requests.data());
        if (x.by_node) x.by_node->begin();
    });
}

}  // namespace

exchange::exchange(const grid &g, const std::vector<field> &fields, const exchange_options &options)
    : state_(make_exchange_state(grid_internals::state_of(g, exchange_call), fields, options)) {}

exchange::exchange(std::unique_ptr<exchange_state> made) : state_(std::move(made)) {}

exchange::~exchange() {
    if (active())
        say("mpix::halo::exchange: destroyed while active; finish() it first. Its memory is kept");
    else if (!state_ || !state_->failed || state_->free_requests())
        return;
    keep(std::move(state_));
}

exchange::exchange(exchange &&) noexcept = default;

exchange &exchange::operator=(exchange &&other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

bool exchange::active() const {
    if (!state_) return false;
    const std::lock_guard lock(state_->mutex);
    return state_->active && !state_->failed;
}

void exchange::begin() {
    const profiled_range shown(range_name::halo_begin);
    begin_for(demand_usable(state_, exchange_call, "begin"), "begin");
}

void exchange::ready(int field) {
    const profiled_range shown(range_name::halo_ready);
    exchange_state &x = demand_usable(state_, exchange_call, "ready");
    const stopwatch sending(x.timed, x.sending_seconds, &x.mutex);
    {
        const std::lock_guard lock(x.mutex);
        demand_no_failure(x, "ready");
        if (!x.active) throw wrong_state("ready", "the exchange is not active; begin it first");
        demand_field(x, "ready", field);
        if (x.ready[field]) throw wrong_state("ready", format("field {} is ready already", field));
        x.ready[field] = true;
    }
    or_failed(x, [&] {
        for (std::size_t i = 0; i < x.sends.size(); ++i) {
            const message &m = x.sends[i];
            if (m.typed()) continue;
            if (x.how == transfer::plain)
                m.pack_field(field);
            else
                m.send(field, send_requests(x)[i]);
        }
        if (x.by_node) x.by_node->pack(field);
        if (!x.reversed())
            for (const own_copy &c : x.own[field])
                x.packer->copy(static_cast<std::size_t>(field), c.from, c.to, x.room[field].data());

        // The mutex orders the other fields' cells, which other threads may have written, before their message.
        const std::lock_guard lock(x.mutex);
        if (--x.unready != 0) return;
        for (std::size_t i = 0; i < x.sends.size(); ++i)
            if (x.sends[i].typed()) demand(MPI_Pready(0, send_requests(x)[i]), "MPI_Pready");
        if (x.how == transfer::plain) start_all(x.sends.size(), send_requests(x));
        if (x.by_node) x.by_node->send();
    });
}

void exchange::start() {
    const profiled_range shown(range_name::halo_start);
    exchange_state &x = demand_usable(state_, exchange_call, "start");
    begin_for(x, "start");
    for (int f = 0; f < static_cast<int>(x.fields.size()); ++f) ready(f);
}

void exchange::finish() {
    const profiled_range shown(range_name::halo_finish);
    exchange_state &x = demand_usable(state_, exchange_call, "finish");
    {
        const std::lock_guard lock(x.mutex);
        demand_no_failure(x, "finish");
        if (!x.active) throw wrong_state("finish", "the exchange is not active; start it first");
        if (x.unready > 0)
            throw wrong_state("finish", format("field {} is not ready",
                                               std::find(x.ready.begin(), x.ready.end(), false) - x.ready.begin()));
        demand_mapped(x, "finish");
    }
    {
        const stopwatch waiting(x.timed, x.waiting_seconds, &x.mutex);
        or_failed(x, [&] { wait_for_messages(x); });
    }
    const std::lock_guard lock(x.mutex);
    x.active = false;
    ++x.exchanges;
    if (!std::exchange(x.first_is_over, true) && config().explain) explain(x);
    x.memory.set_active(false);
    demand_arrays(x, "finish", true);
}

void exchange::swap(int field) {  // NOLINT(bugprone-exception-escape): it does not swap two exchanges
    exchange_state &x = demand_state(state_, exchange_call, "swap");
    const auto which = demand_field(x, "swap", field);
    if (!x.fields[which].has_second_allocation() && has_cells(*x.grid))
        throw error(MPI_ERR_ARG,
                    format("{}::swap: field {} has no second allocation; give its `other`", exchange_call, field));
    const std::lock_guard lock(x.mutex);
    demand_no_failure(x, "swap");
    if (x.active) throw wrong_state("swap", "the exchange is active; finish it first");
    for (auto &[now, other] : x.data[which]) std::swap(now, other);
    if (x.in_messages()) x.read_from_other[which].flip();
    for (std::vector<message> *const messages : {&x.receives, &x.sends})
        for (message &m : *messages) m.swap(field);
    if (x.by_node) x.by_node->swap(field);
    for (own_copy &c : x.own[which]) {
        std::swap(c.from.first, c.from.other);
        std::swap(c.to.first, c.to.other);
    }
}

std::size_t field_bytes(const grid &g, const field &f, int i, ghost_storage ghosts) {
    constexpr const char *here = "mpix::halo::field_bytes";
    const grid_state &state = *grid_internals::state_of(g, here);
    const box points = points_of(state.domain, state.local(demand_box(state, i, here)), f.layout.staggered);
    field_view view;
    const status bad =
        field_view::measure(f, {&points, 1}, state.domain.dimensions, view,
                            ghosts == ghost_storage::in_messages ? ghost_room::any : ghost_room::demanded);
    if (!bad.ok())
        throw error(class_of(bad),
                    format("{}: field{}{}", here, class_of(bad) == MPI_ERR_COUNT ? ": " : ".", bad.message()));
    return static_cast<std::size_t>(view.bytes(0));
}

std::size_t field_bytes(const grid &g, const field &f, ghost_storage ghosts) {
    constexpr const char *here = "mpix::halo::field_bytes";
    return field_bytes(g, f, demand_only_box(*grid_internals::state_of(g, here), here), ghosts);
}

void *exchange::data(int field) const {
    const exchange_state &x = demand_state(state_, exchange_call, "data");
    const std::size_t f = demand_field(x, "data", field);
    return x.data[f][the_box(x, "data")][0];
}

void *exchange::data(int field, int i) const {
    const exchange_state &x = demand_state(state_, exchange_call, "data");
    const std::size_t f = demand_field(x, "data", field);
    return x.data[f][the_box(x, "data", i)][0];
}

const box &exchange::interior() const {
    const exchange_state &x = demand_state(state_, exchange_call, "interior");
    return x.areas.interior[the_box(x, "interior")];
}

const box &exchange::interior(int i) const {
    const exchange_state &x = demand_state(state_, exchange_call, "interior");
    return x.areas.interior[the_box(x, "interior", i)];
}

const std::vector<box> &exchange::boundary() const {
    const exchange_state &x = demand_state(state_, exchange_call, "boundary");
    return x.areas.boundary[the_box(x, "boundary")];
}

const std::vector<box> &exchange::boundary(int i) const {
    const exchange_state &x = demand_state(state_, exchange_call, "boundary");
    return x.areas.boundary[the_box(x, "boundary", i)];
}

namespace {

// Of a box, or the only one.
const box_to_read &find_box(const exchange_state &x, const char *function, int field, std::optional<int> i) {
    const std::size_t f = demand_field(x, function, field);
    if (!x.in_messages())
        throw error(MPI_ERR_ARG, format("{}::{}: the ghost cells are in the fields; make the exchange with "
                                        "options.ghosts = ghost_storage::in_messages",
                                        exchange_call, function));
    return x.to_read[f][i ? the_box(x, function, *i) : the_box(x, function)];
}

}  // namespace

const std::vector<ghost_piece> &exchange::ghost_pieces(int field) const {
    return find_box(demand_state(state_, exchange_call, "ghost_pieces"), "ghost_pieces", field, {}).pieces;
}

const std::vector<ghost_piece> &exchange::ghost_pieces(int field, int i) const {
    return find_box(demand_state(state_, exchange_call, "ghost_pieces"), "ghost_pieces", field, i).pieces;
}

const detail::cells_to_read &detail::find_cells(const exchange &x, int field, std::optional<int> i,
                                                std::size_t value_bytes, value_type type) {
    const exchange_state &state = demand_state(exchange_internals::state_of(x), exchange_call, "ghost_pieces");
    const box_to_read &found = find_box(state, "ghost_pieces", field, i);
    const field_view &view = state.fields[static_cast<std::size_t>(field)];
    const bool both_known = type != value_type::bytes && view.type() != value_type::bytes;
    if (value_bytes != static_cast<std::size_t>(view.value_bytes()) || (both_known && type != view.type()))
        throw error(MPI_ERR_TYPE,
                    format("mpix::halo::ghost_reader: it reads values of {} bytes ({}), and those of field {} "
                           "have {} bytes ({})",
                           value_bytes, name_of(type), field, view.value_bytes(), name_of(view.type())));
    return found.cells;
}

void exchange::measure(bool on) {
    exchange_state &x = demand_state(state_, exchange_call, "measure");
    const std::lock_guard lock(x.mutex);
    if (x.active && !x.failed) throw wrong_state("measure", "the exchange is active; finish it first");
    x.timed = on;
    x.exchanges = 0;
    x.sending_seconds = x.waiting_seconds = 0;
    x.arrival_seconds.assign(x.receives.size(), 0);
    if (x.by_node)
        for (node_exchange::part &p : x.by_node->parts_received()) p.arrival_seconds = 0;
}

exchange_report exchange::report() const {
    exchange_state &x = demand_state(state_, exchange_call, "report");
    const std::lock_guard lock(x.mutex);
    if (x.active && !x.failed) throw wrong_state("report", "the exchange is active; finish it first");
    return report_of(x);
}

int exchange::boxes() const { return static_cast<int>(demand_state(state_, exchange_call, "boxes").grid->mine.size()); }

int exchange::messages_sent() const {
    const exchange_state &x = demand_state(state_, exchange_call, "messages_sent");
    return static_cast<int>(x.sends.size()) + (x.by_node ? x.by_node->messages_sent() : 0);
}

std::int64_t exchange::bytes_sent() const {
    std::int64_t bytes = 0;
    const exchange_state &x = demand_state(state_, exchange_call, "bytes_sent");
    for (const message &m : x.sends) bytes += m.bytes();
    if (x.by_node)
        for (const node_exchange::part *p : x.by_node->parts_sent()) bytes += p->cells.bytes();
    return bytes;
}

}  // namespace mpix::halo
