// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/kernel_report.h"

#include <algorithm>
#include <array>
#include <utility>

#include "host/config.h"
#include "host/halo_report/advice.h"
#include "host/report.h"

namespace mpix::halo {

exchange_report report_of(const kernel_exchange_state &x, exchange_kind kind) {
    const report_data &of = x.report;
    const bool on_gpu = x.where.owner != nullptr;
    exchange_report r;
    r.kind = kind;
    r.rank = x.grid->rank;
    r.exchanges = of.exchanges;
    r.own_bytes = of.own_bytes;
    // The requests of the first set, which tell for all.
    auto request = x.requests.begin();
    for (const report_data::message &m : of.receives)
        r.received.push_back(report_of(*x.grid, m.peer, m.by_direction, false, path_of(*request++)));
    std::int64_t bytes = 0;
    for (const report_data::message &m : of.sends) {
        r.sent.push_back(report_of(*x.grid, m.peer, m.by_direction, true, path_of(*request++)));
        r.sent.back().direct = m.direct;
        bytes += r.sent.back().bytes;
    }
    const double n = static_cast<double>(std::max<std::int64_t>(of.exchanges, 1));
    r.mean_active_seconds = of.active_seconds / n;
    r.mean_sending_seconds = of.sending_seconds / n;
    r.mean_waiting_seconds = of.waiting_seconds / n;
    r.not_measured = kind == exchange_kind::stream && on_gpu
                         ? "how long it takes, since start() and finish() return before the GPU exchanges"
                         : "when each message is there, since the host does not look for it";
    const bool beyond_faces = std::any_of(x.fields.begin(), x.fields.end(), [](const exchanged_field &f) {
        for (int number = 0; number < directions; ++number) {
            const std::array<int, 3> at = direction(number);
            if (std::count(at.begin(), at.end(), 0) < 2 && f.radius.cells[static_cast<std::size_t>(number)] > 0)
                return true;
        }
        return false;
    });
    r.advice = advise(on_gpu, bytes, beyond_faces);
    return r;
}

void count_exchanges(kernel_exchange_state &x, std::int64_t finished, exchange_kind kind) {
    x.report.exchanges += finished;
    if (finished > 0 && !std::exchange(x.report.first_is_over, true) && config().explain)
        say(report_of(x, kind).text());
}

}  // namespace mpix::halo
