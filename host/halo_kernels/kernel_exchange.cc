// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo/usable.h"
#include "host/halo_kernels/kernel_error.h"
#include "host/halo_kernels/kernel_exchange_internals.h"
#include "host/halo_kernels/kernel_exchange_state.h"
#include "host/halo_kernels/kernel_report.h"
#include "host/profiled_range.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *kernel_exchange_call = "mpix::halo::kernel_exchange";

error wrong(int error_class, const char *function, const std::string &what) {
    return {error_class, format("{}::{}: {}", kernel_exchange_call, function, what)};
}

void demand_no_failure(const kernel_exchange_state &x, const char *function) {
    if (x.failed)
        throw wrong(MPI_ERR_REQUEST, function, "an earlier call has failed; the exchange can only be destroyed");
}

// Does `work`; if it throws, the exchange has failed.
template <class Work>
void or_failed(kernel_exchange_state &x, const Work &work) {
    do_or_fail(work, [&](int) { x.failed = true; });
}

// No arrivals, and no failure.
void reset_words(kernel_exchange_state &x) {
    const std::uint64_t words[device_exchange::begun_at] = {};
    if (const status s = x.tables.write(0, words, sizeof words); !s.ok())
        throw wrong(class_of(s), "start", s.message());
}

}  // namespace

kernel_exchange kernel_exchange_internals::make(const grid &g, const std::vector<field> &fields,
                                                const kernel_exchange_options &options, const status &given) {
    return kernel_exchange(make_kernel_exchange_state(
        grid_internals::state_of(g, kernel_exchange_call), fields, options,
        options.box_waits ? ghost_waiters::tiles_and_boxes : ghost_waiters::tiles, kernel_exchange_call, given));
}

kernel_exchange::kernel_exchange(std::unique_ptr<kernel_exchange_state> made) : state_(std::move(made)) {}

kernel_exchange::kernel_exchange(const grid &g, const std::vector<field> &fields,
                                 const kernel_exchange_options &options)
    : kernel_exchange(kernel_exchange_internals::make(g, fields, options, {})) {}

kernel_exchange::~kernel_exchange() {
    if (active())
        say("mpix::halo::kernel_exchange: destroyed while active; finish() it first. Its memory is kept");
    else if (!state_ || !state_->failed || state_->free_requests())
        return;
    keep(std::move(state_));
}

kernel_exchange::kernel_exchange(kernel_exchange &&) noexcept = default;

kernel_exchange &kernel_exchange::operator=(kernel_exchange &&other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

bool kernel_exchange::active() const { return state_ && (state_->active || state_->starting) && !state_->failed; }

device_exchange kernel_exchange::start(std::int64_t steps) {
    const profiled_range shown(range_name::halo_kernel_start);
    kernel_exchange_state &x = demand_usable(state_, kernel_exchange_call, "start");
    demand_no_failure(x, "start");
    if (x.active) throw wrong(MPI_ERR_REQUEST, "start", "the exchange is active; finish it first");
    if (steps < 0) throw wrong(MPI_ERR_ARG, "start", format("steps is {}; it is at least 0", steps));
    x.demand_arrays(kernel_exchange_call, "start", x.starting);
    if (x.starting && steps != x.device.steps_)
        throw wrong(MPI_ERR_ARG, "start",
                    format("steps is {}; the activation of {} steps is under way", steps, x.device.steps_));
    const int count = x.requests_of(steps);
    if (!x.starting) {
        x.memory.set_active(true);
        or_failed(x, [&] {
            reset_words(x);
            if (count != 0) demand(MPI_Startall(count, x.requests.data()), "MPI_Startall");
        });
        x.device.steps_ = steps;
        x.starting = true;
    }
    if (count != 0)
        if (const int code = MPIX_Pbuf_prepare_all(count, x.requests.data()); code != MPI_SUCCESS) {
            int error_class = MPI_SUCCESS;
            MPI_Error_class(code, &error_class);
            x.failed = error_class != MPI_ERR_PENDING;
            throw wrong(error_class, "start", text_of(code, "MPIX_Pbuf_prepare_all"));
        }
    x.starting = false;
    x.active = true;
    if (x.report.timed) x.report.begun = exchange_clock::now();
    return x.device;
}

void kernel_exchange::finish() {
    const profiled_range shown(range_name::halo_kernel_finish);
    kernel_exchange_state &x = demand_usable(state_, kernel_exchange_call, "finish");
    demand_no_failure(x, "finish");
    if (!x.active) throw wrong(MPI_ERR_REQUEST, "finish", "the exchange is not active; start it first");
    const double active_seconds = x.report.timed ? seconds_since(x.report.begun) : 0;
    or_failed(x, [&] {
        demand_no_kernel_error(x, format("{}::finish", kernel_exchange_call));
        const int count = x.requests_of(x.device.steps_);
        int error_class = MPI_SUCCESS;
        const int code = count == 0 ? MPI_SUCCESS : wait_all(count, x.requests.data(), error_class);
        if (code != MPI_SUCCESS) throw wrong(error_class, "finish", text_of(code, "MPI_Waitall"));
    });
    x.device.done_ += x.device.steps_;
    x.device.phase_ = static_cast<std::int32_t>((x.device.phase_ + x.device.steps_) & 1);
    x.active = false;
    x.report.active_seconds += active_seconds;
    count_exchanges(x, x.device.steps_, exchange_kind::kernel);
    x.memory.set_active(false);
    x.demand_arrays(kernel_exchange_call, "finish", true);
}

void kernel_exchange::measure(bool on) {
    kernel_exchange_state &x = demand_state(state_, kernel_exchange_call, "measure");
    if (active()) throw wrong(MPI_ERR_REQUEST, "measure", "the exchange is active; finish it first");
    x.report.measure(on);
}

exchange_report kernel_exchange::report() const {
    const kernel_exchange_state &x = demand_state(state_, kernel_exchange_call, "report");
    if (active()) throw wrong(MPI_ERR_REQUEST, "report", "the exchange is active; finish it first");
    return report_of(x, exchange_kind::kernel);
}

void *kernel_exchange::data(int field) const {
    const kernel_exchange_state &x = demand_state(state_, kernel_exchange_call, "data");
    return data(field, demand_only_box(*x.grid, kernel_exchange_call, "data"));
}

void *kernel_exchange::data(int field, int i) const {
    const kernel_exchange_state &x = demand_state(state_, kernel_exchange_call, "data");
    if (field < 0 || field >= static_cast<int>(x.fields.size()))
        throw wrong(MPI_ERR_ARG, "data", format("field is {}; there are {}", field, x.fields.size()));
    demand_box(*x.grid, i, kernel_exchange_call, "data");
    return x.data[static_cast<std::size_t>(field) * x.grid->mine.size() + static_cast<std::size_t>(i)]
                 [static_cast<std::size_t>(x.device.phase_)];
}

int kernel_exchange::messages_sent() const {
    return demand_state(state_, kernel_exchange_call, "messages_sent").device.sends_;
}

std::int64_t kernel_exchange::bytes_sent() const {
    return demand_state(state_, kernel_exchange_call, "bytes_sent").bytes_sent;
}

}  // namespace mpix::halo
