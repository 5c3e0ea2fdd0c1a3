// SPDX-License-Identifier: BSD-3-Clause
#include "host/statistics/end_report.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string_view>

#include "host/config.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/report.h"
#include "host/statistics/counters.h"

namespace mpix {
namespace {

bool agreed = false;

// At once, so that other ranks' lines do not come in between.
void print(std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
        if (n < 0 && errno != EINTR) return;
        if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    }
}

std::string shown_value(const counter &what, std::uint64_t value) {
    return what.kind == counter_kind::timer ? format("{:.3f}", static_cast<double>(value) / 1e6) : format("{}", value);
}

}  // namespace

std::string report_table(const counters_of_ranks &values, int ranks) {
    std::string table =
        format("mpix report: {:<28}{:>20}{:>20}{:>20}\n", format("{} rank{}", ranks, ranks == 1 ? "" : "s"), "sum",
               "least of a rank", "most of a rank");
    for (std::size_t i = 0; i < counters().size(); ++i) {
        const counter &what = counters()[i];
        if (values.sum[i] == 0) continue;
        table += format("mpix report: {:<28}{:>20}{:>20}{:>20}\n", what.label, shown_value(what, values.sum[i]),
                        shown_value(what, values.least[i]), shown_value(what, values.most[i]));
    }
    if (std::all_of(values.sum.begin(), values.sum.end(), [](std::uint64_t v) { return v == 0; }))
        table += "mpix report: nothing was sent or received by partitioned requests\n";
    return table;
}

void agree_on_report() {
    int wanted = config().report;
    agreed = PMPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS && wanted != 0;
    if (agreed) time_waits(+1);
}

void report_at_end() {
    if (!agreed) return;
    // All ranks take part, whatever fails in one of them.
    const std::size_t n = counters().size();
    std::vector<std::uint64_t> mine = read_counters();
    counters_of_ranks all{std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n)};
    const auto combine = [&](std::vector<std::uint64_t> &out, MPI_Op how) {
        return PMPI_Reduce(mine.data(), out.data(), static_cast<int>(n), MPI_UINT64_T, how, 0, MPI_COMM_WORLD) ==
               MPI_SUCCESS;
    };
    const bool combined = combine(all.sum, MPI_SUM) && combine(all.least, MPI_MIN) && combine(all.most, MPI_MAX);
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (combined && this_world_rank() == 0) print(report_table(all, ranks));
}

}  // namespace mpix
