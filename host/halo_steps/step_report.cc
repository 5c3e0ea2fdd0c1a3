// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo_steps/step_line.h"
#include "host/halo_steps/step_report_internals.h"

namespace mpix::halo {
namespace {

constexpr const char *report_call = "mpix::halo::step_report";

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void write_line(const std::string &line) {
    if (!line.empty()) std::fputs(line.c_str(), stderr);
}

status check(const step_report_options &o) {
    if (o.steps < 0) return failure(MPI_ERR_ARG, format("options.steps is {}; it is at least 0", o.steps));
    if (o.bytes_sent < 0)
        return failure(MPI_ERR_ARG, format("options.bytes_sent is {}; it is at least 0", o.bytes_sent));
    return {};
}

}  // namespace

struct step_report_state {
    std::optional<step_line> line;  // on rank 0
};

namespace {

std::unique_ptr<step_report_state> make_state(const grid &g, const step_report_options &options, const status &given) {
    auto made = std::make_unique<step_report_state>();
    const grid_state &of = *grid_internals::state_of(g, report_call);
    check_collectively(of.comm, report_call, given.ok() ? check(options) : given, {{"options.steps", {options.steps}}});
    const auto mine = static_cast<double>(options.bytes_sent);
    double all = 0;
    demand(MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, of.comm), "MPI_Reduce");
    if (of.rank != 0) return made;
    const box whole{{}, of.domain.extent};
    made->line.emplace(step_line::run{.steps = options.steps,
                                      .cells = static_cast<double>(whole.cells()),
                                      .bytes = all,
                                      .on_terminal = ::isatty(STDERR_FILENO) == 1},
                       now());
    return made;
}

}  // namespace

step_report step_report_internals::make(const grid &g, const step_report_options &options, const status &given) {
    return step_report(make_state(g, options, given));
}

step_report::step_report(const grid &g, const step_report_options &options) : state_(make_state(g, options, {})) {}

step_report::step_report(std::unique_ptr<step_report_state> made) : state_(std::move(made)) {}

step_report::~step_report() {
    try {
        if (state_ && state_->line) write_line(state_->line->end(now()));
    } catch (const std::exception &) {  // no memory for the line, which is no loss
    }
}

step_report::step_report(step_report &&) noexcept = default;

step_report &step_report::operator=(step_report &&other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

void step_report::done(std::int64_t steps) {
    if (steps < 0) throw error(MPI_ERR_ARG, format("{}::done: steps is {}; it is at least 0", report_call, steps));
    if (!state_) throw error(MPI_ERR_REQUEST, format("{}::done: the report has been moved from", report_call));
    if (state_->line) write_line(state_->line->after(steps, now()));
}

}  // namespace mpix::halo
