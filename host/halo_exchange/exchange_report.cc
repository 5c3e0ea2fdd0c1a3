// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/exchange_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mpix/mpix.h>

#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo_exchange/exchange_internals.h"
#include "host/profiled_range.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *comparing_call = "mpix::halo::compare_transfers";

message_report report_of(const exchange_state &x, const message &m, MPI_Request request, bool sent) {
    message_report r;
    r.rank = m.peer();
    r.bytes = m.bytes();
    for (int number = 0; number < directions; ++number)
        if (m.directions() >> number & 1) r.directions.push_back(number);
    if (x.how == transfer::plain) {
        r.path = "MPI";
    } else {
        char path[64];
        demand(MPIX_Request_path(request, path, sizeof path), "MPIX_Request_path");
        r.path = path;
    }
    const int from = sent ? x.grid->rank : m.peer(), to = sent ? m.peer() : x.grid->rank;
    if (const double bandwidth = x.grid->bandwidth(from, to); bandwidth > 0)
        r.predicted_seconds = static_cast<double>(m.bytes()) / bandwidth;
    return r;
}

std::string microseconds(double seconds) { return format("{:.1f} us", seconds * 1e6); }

std::string message_line(const message_report &m, const char *to_or_from) {
    std::string where;
    for (const int number : m.directions)
        where += (where.empty() ? "" : ", ") + (number == no_direction ? "within the box" : direction_name(number));
    std::string text = format("{} rank {} ({}): {} bytes by {}", to_or_from, m.rank, where, m.bytes, m.path);
    if (m.predicted_seconds > 0) text += ", predicted " + microseconds(m.predicted_seconds);
    if (m.mean_seconds > 0) text += ", there after " + microseconds(m.mean_seconds);
    return text;
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
    return std::chrono::duration<double>(exchange_clock::now() - since).count() / exchanges;
}

}  // namespace

exchange_report report_of(const exchange_state &x) {
    exchange_report r;
    r.rank = x.grid->rank;
    r.transfer = x.how;
    r.exchanges = x.exchanges;
    const std::size_t receives = x.receives.size();
    const double n = static_cast<double>(std::max<std::int64_t>(x.exchanges, 1));
    for (std::size_t i = 0; i < receives; ++i) {
        r.received.push_back(report_of(x, x.receives[i], x.requests[i], false));
        r.received.back().mean_seconds = x.arrival_seconds[i] / n;
    }
    for (std::size_t i = 0; i < x.sends.size(); ++i)
        r.sent.push_back(report_of(x, x.sends[i], x.requests[receives + i], true));
    for (const std::vector<own_copy> &field : x.own)
        for (const own_copy &c : field) r.own_bytes += c.from.total();
    r.mean_sending_seconds = x.sending_seconds / n;
    r.mean_waiting_seconds = x.waiting_seconds / n;
    return r;
}

std::string exchange_report::text() const {
    std::string all = format("{}, rank {}: {}, {} finished", exchange_call, rank,
                             name_of_transfer(static_cast<std::int64_t>(transfer)), exchanges);
    if (mean_sending_seconds > 0)
        all += format(", {} in start() and {} in finish()", microseconds(mean_sending_seconds),
                      microseconds(mean_waiting_seconds));
    if (own_bytes > 0) all += format("; {} bytes from and to this rank", own_bytes);
    for (const message_report &m : sent) all += "\n  " + message_line(m, "to");
    for (const message_report &m : received) all += "\n  " + message_line(m, "from");
    return all;
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
