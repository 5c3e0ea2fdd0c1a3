// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/exchange_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo_exchange/exchange_internals.h"
#include "host/halo_report/message_report.h"
#include "host/halo_report/report_text.h"
#include "host/profiled_range.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *comparing_call = "mpix::halo::compare_transfers";

message_report report_of(const exchange_state &x, const message &m, MPI_Request request, bool sent) {
    message_report r =
        report_of(*x.grid, m.peer(), m.by_direction(), sent, x.how == transfer::plain ? "MPI" : path_of(request));
    r.transfer = m.typed() ? transfer::datatype : x.how == transfer::plain ? transfer::plain : transfer::packed;
    return r;
}

// `sent`: to another node. Only a carrier knows what has moved what it receives.
message_report report_of(const grid_state &g, const node_exchange::part &p, bool sent) {
    message_report r = report_of(g, p.cells.peer(), p.cells.by_direction(), sent,
                                 p.request != MPI_REQUEST_NULL ? path_of(p.request) : "shared memory");
    r.carrier = p.carrier;
    return r;
}

// Of one exchange, of the slowest rank; nothing, if the fields cannot be exchanged so, or are not known to be.
std::optional<double> time_of(const grid &g, const std::vector<field> &fields, transfer how, int exchanges) {
    std::optional<exchange> x;
    try {
        x.emplace(exchange_internals::exchange_of(make_exchange_state(
            grid_internals::state_of(g, comparing_call), fields, {.transfer = how}, {}, transfer_choice::as_given)));
    } catch (const error &) {
        if (how == transfer::packed) throw;
        return {};  // of all ranks
    }
    const int warm_up = 1 + exchanges / 10;
    exchange_clock::time_point since;
    for (int i = -warm_up; i < exchanges; ++i) {
        if (i == 0) since = exchange_clock::now();
        x->start();
        x->finish();
    }
    return seconds_since(since) / exchanges;
}

}  // namespace

exchange_report report_of(const exchange_state &x) {
    exchange_report r;
    r.rank = x.grid->rank;
    r.transfer = x.how;
    r.ghosts = x.ghosts;
    r.through_host = x.packer->has_gpu_fields();
    r.exchanges = x.exchanges;
    const std::size_t receives = x.receives.size();
    const double n = static_cast<double>(std::max<std::int64_t>(x.exchanges, 1));
    for (std::size_t i = 0; i < receives; ++i) {
        r.received.push_back(report_of(x, x.receives[i], x.requests[i], false));
        r.received.back().mean_seconds = x.arrival_seconds[i] / n;
    }
    for (std::size_t i = 0; i < x.sends.size(); ++i)
        r.sent.push_back(report_of(x, x.sends[i], x.requests[receives + i], true));
    if (x.by_node) {
        for (const node_exchange::part *p : x.by_node->parts_sent()) r.sent.push_back(report_of(*x.grid, *p, true));
        for (const node_exchange::part &p : std::as_const(*x.by_node).parts_received()) {
            r.received.push_back(report_of(*x.grid, p, false));
            r.received.back().mean_seconds = p.arrival_seconds / n;
        }
    }
    for (const std::vector<own_copy> &field : x.own)
        for (const own_copy &c : field) r.own_bytes += c.from.total();
    r.mean_sending_seconds = x.sending_seconds / n;
    r.mean_waiting_seconds = x.waiting_seconds / n;
    return r;
}

void explain(const exchange_state &x) { say(report_of(x).text()); }

transfer_times compare_transfers(const grid &g, const std::vector<field> &fields, int exchanges) {
    return compare_transfers_checked(g, fields, exchanges, {});
}

transfer_times compare_transfers_checked(const grid &g, const std::vector<field> &fields, int exchanges,
                                         const status &given) {
    const profiled_range shown(range_name::halo_compare_transfers);
    const grid_state &state = *grid_internals::state_of(g, comparing_call);
    status bad = given;
    if (bad.ok() && exchanges < 1) bad = failure(MPI_ERR_ARG, format("exchanges is {}; it is at least 1", exchanges));
    check_collectively(state.comm, comparing_call, bad, {{"exchanges", {exchanges}}});
    transfer_times times;
    for (std::size_t how = 0; how < times.seconds.size(); ++how)
        times.seconds[how] = time_of(g, fields, static_cast<transfer>(how), exchanges).value_or(0);
    std::array<double, 3> &mine = times.seconds;
    demand(MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, state.comm),
           "MPI_Allreduce");
    for (std::size_t how = 0; how < mine.size(); ++how)
        if (mine[how] > 0 && mine[how] < mine[static_cast<std::size_t>(times.fastest)])
            times.fastest = static_cast<transfer>(how);
    return times;
}

std::string transfer_times::text() const {
    std::string all;
    for (std::size_t how = 0; how < seconds.size(); ++how)
        all += format("{}{} {}", all.empty() ? "" : ", ", name_of_transfer(static_cast<std::int64_t>(how)),
                      seconds[how] > 0 ? microseconds(seconds[how]) : "not possible");
    return all;
}

}  // namespace mpix::halo
