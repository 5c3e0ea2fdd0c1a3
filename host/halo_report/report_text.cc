// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_report/report_text.h"

#include <string_view>

#include "host/field/neighbours.h"
#include "host/format.h"

namespace mpix::halo {
namespace {

std::string message_line(const exchange_report &r, const message_report &m, const char *to_or_from) {
    std::string where;
    for (std::size_t i = 0; i < m.directions.size(); ++i) {
        const int number = m.directions[i];
        where += (where.empty() ? "" : ", ") + (number == no_direction ? "within the box" : direction_name(number));
        if (m.directions.size() > 1) where += format(" {}", m.direction_bytes[i]);
    }
    std::string text = format("{} rank {} ({}): {} bytes by {}", to_or_from, m.rank, where, m.bytes, m.path);
    if (r.kind == exchange_kind::host && r.transfer == transfer::automatic)
        text += format(", {}", name_of_transfer(static_cast<std::int64_t>(m.transfer)));
    if (m.direct) text += ", directly where it can be";
    if (m.carrier >= 0)
        text += format(", in one message to {} node by rank {}", to_or_from == std::string_view("to") ? "its" : "this",
                       m.carrier);
    if (m.predicted_seconds > 0) text += ", predicted " + microseconds(m.predicted_seconds);
    if (m.mean_seconds > 0) text += ", there after " + microseconds(m.mean_seconds);
    return text;
}

// What the host knows of the times of its exchanges.
std::string times_of(const exchange_report &r) {
    if (r.mean_sending_seconds > 0)
        return format(", {} in start() and {} in finish()", microseconds(r.mean_sending_seconds),
                      microseconds(r.mean_waiting_seconds));
    if (r.mean_active_seconds > 0)
        return format(", {} for each between start() and finish(), with what the kernels compute",
                      microseconds(r.mean_active_seconds));
    return "";
}

std::string advice_line(const exchange_advice &a) {
    if (a.kind == exchange_kind::host) return format("advised for host memory: {}", name_of_kind(a.kind));
    return format(
        "advised: {}; measured between two H200, {} bytes took {} in a kernel and {} in a stream, which is ahead {}",
        name_of_kind(a.kind), a.bytes, microseconds(a.kernel_seconds), microseconds(a.stream_seconds),
        a.crossover_bytes == 0 ? std::string("at all sizes") : format("from {} bytes on", a.crossover_bytes));
}

}  // namespace

const char *name_of_kind(exchange_kind kind) {
    constexpr const char *names[] = {"mpix::halo::exchange", "mpix::halo::stream_exchange",
                                     "mpix::halo::kernel_exchange"};
    return names[static_cast<int>(kind)];
}

const char *name_of_transfer(std::int64_t how) {
    constexpr const char *names[] = {"packed", "datatype", "plain", "automatic"};
    return names[how];
}

std::string microseconds(double seconds) { return format("{:.1f} us", seconds * 1e6); }

std::string exchange_report::text() const {
    std::string all = format("{}, rank {}: ", name_of_kind(kind), rank);
    if (kind == exchange_kind::host) all += name_of_transfer(static_cast<std::int64_t>(transfer)) + std::string(", ");
    all += format("{} finished{}", exchanges, times_of(*this));
    if (through_host) all += "; fields in GPU memory, by way of host memory";
    if (ghosts == ghost_storage::in_messages) all += "; messages are not unpacked";
    if (own_bytes > 0) all += format("; {} bytes from and to this rank", own_bytes);
    for (const message_report &m : sent) all += "\n  " + message_line(*this, m, "to");
    for (const message_report &m : received) all += "\n  " + message_line(*this, m, "from");
    if (!not_measured.empty()) all += "\n  not measured: " + not_measured;
    const bool any = own_bytes > 0 || !sent.empty() || !received.empty();
    if (kind != exchange_kind::host && any) all += "\n  " + advice_line(advice);
    return all;
}

}  // namespace mpix::halo
