// SPDX-License-Identifier: BSD-3-Clause
//
// Kernel exchanges whose kernels are the library's own (device/halo). All their steps are one activation, from the
// constructor to the destructor.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "device/halo/stream_exchange.cuh"
#include "device/halo/launch.h"
#include "host/config.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo/regions.h"
#include "host/halo/usable.h"
#include "host/halo_tables/device_memory.h"
#include "host/halo_host_stream/host_stream_exchange.h"
#include "host/halo_kernels/direct_neighbours.h"
#include "host/halo_kernels/kernel_error.h"
#include "host/halo_kernels/kernel_exchange_state.h"
#include "host/halo_kernels/kernel_report.h"
#include "host/halo_kernels/ranks_of_gpu.h"
#include "host/halo_kernels/stream_exchange_internals.h"
#include "host/halo_tables/tiles.h"
#include "host/profiled_range.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *stream_exchange_call = "mpix::halo::stream_exchange";
// See finish_in_order.
constexpr int sets = 3;

error refusal(int error_class, const char *function, const std::string &what) {
    return {error_class, format("{}::{}: {}", stream_exchange_call, function, what)};
}

}  // namespace

struct stream_exchange_state {
    std::unique_ptr<kernel_exchange_state> kernels;
    std::unique_ptr<host_stream_exchange> by_host;  // if set, only `started` is used besides
    regions areas;
    device_memory words;
    direct_neighbours direct;
    stream_exchange_args ordered{};
    bool run_is_one_kernel = true;
    bool started = false, failed = false;
    stream_exchange_state *kept_before = nullptr;  // see keep()

    // It can only be destroyed now, also between start() and finish().
    void fail() {
        failed = true;
        started = false;
    }
    bool on_gpu() const { return kernels->where.owner != nullptr; }
    // A rank without cells has nothing to do, wherever the others' are.
    bool has_tiles() const { return kernels->device.tiles_count_ != 0; }
    // On a GPU the calls only enqueue, which says nothing of the exchange.
    bool is_timed() const { return kernels->report.timed && !on_gpu(); }
    int requests() const { return static_cast<int>(kernels->requests.size()); }

    void call(stream_call which, CUstream_st *stream, const char *function);
    void wait_for(CUstream_st *stream, const char *function) const;
    // Throws what a kernel's call has returned.
    void demand_no_error(const char *function);
    void drain();
    void drain_messages();
};

namespace {

// The host's thread is the only group, so it takes all parcels in order: see start_in_order.
class single_group_scheduler {
public:
    single_group_scheduler(std::uint64_t *, int count, int, int) : count_(count) {}
    int take() { return next_ < count_ ? next_++ : count_; }

private:
    int next_ = 0, count_;
};

void play(stream_call which, const stream_exchange_args &o) {
    const thread_group group = this_thread();
    const std::int64_t step = next_step(o);
    const device_exchange x = in_phase(o, step);
    switch (which) {
        case stream_call::start:
            return start_in_order<single_group_scheduler>(group, o, x, step, 0, 1);
        case stream_call::finish:
            for (int index = 0; index < 2; ++index) finish_in_order(group, o, x, step, index, 2);
            return end_in_order(group, o, step, 1);
        case stream_call::run:
            for (int index = 0; index < 2; ++index) run_in_order<single_group_scheduler>(group, o, x, step, index, 2);
            return end_in_order(group, o, step, 1);
        case stream_call::drain_sends:
            return drain_sends_in_order(group, x, step, 0, 1);
        case stream_call::drain_receives:
            return drain_receives_in_order(group, x, step, 0, 1);
    }
}

void demand_no_failure(const stream_exchange_state &x, const char *function) {
    if (x.failed)
        throw refusal(MPI_ERR_REQUEST, function, "an earlier call has failed; the exchange can only be destroyed");
}

std::size_t demand_field(const stream_exchange_state &x, const char *function, int field) {
    const auto count = x.kernels->fields.size();
    if (field < 0 || static_cast<std::size_t>(field) >= count)
        throw refusal(MPI_ERR_ARG, function, format("field is {}; there are {}", field, count));
    return static_cast<std::size_t>(field);
}

// Of all ghost cells beyond one cell of a side, at most. The fields have not been checked yet.
std::int64_t depth_bytes(const std::vector<field> &fields) {
    double bytes = 0;
    for (const field &f : fields)
        bytes += static_cast<double>(f.value_bytes) * f.layout.components *
                 *std::max_element(f.radius.cells.begin(), f.radius.cells.end());
    return static_cast<std::int64_t>(std::clamp(bytes, 0.0, 1e9));
}

// Begins the first exchanges, of each set. Waits for the neighbours.
status begin(stream_exchange_state &x) {
    if (x.requests() == 0) return {};
    return outcome_of([&] {
        demand(MPI_Startall(x.requests(), x.kernels->requests.data()), "MPI_Startall");
        demand(MPIX_Pbuf_prepare_all(x.requests(), x.kernels->requests.data()), "MPIX_Pbuf_prepare_all");
    });
}

}  // namespace

void stream_exchange_state::call(stream_call which, CUstream_st *stream, const char *function) {
    if (!has_tiles()) return;
    if (on_gpu()) {
        const gpu::launch_result launched = gpu::enqueue_exchange(which, ordered, kernels->where.device, stream);
        if (launched.problem.empty()) return;
        if (!launched.is_of_stream) fail();
        throw refusal(failed ? MPI_ERR_OTHER : MPI_ERR_ARG, function, launched.problem);
    }
    if (stream != nullptr)
        throw refusal(MPI_ERR_ARG, function, "stream is not null, and the fields are in host memory");
    play(which, ordered);
    demand_no_error(function);
}

// Waits until the stream's earlier work has ended; for an exchange by the host.
void stream_exchange_state::wait_for(CUstream_st *stream, const char *function) const {
    const gpu::launch_result waited = by_host->wait_for(stream);
    if (!waited.problem.empty())
        throw refusal(waited.is_of_stream ? MPI_ERR_ARG : MPI_ERR_OTHER, function, waited.problem);
}

void stream_exchange_state::demand_no_error(const char *function) {
    const auto look = [&] {
        const std::string caller = format("{}::{}", stream_exchange_call, function);
        demand_no_kernel_error(*kernels, caller);
        demand_no_lost_message(*kernels, caller);
    };
    do_or_fail(look, [this](int) { fail(); });
}

// Ends the activation, and waits for kernels that store to this rank.
void stream_exchange_state::drain() {
    if (has_tiles()) drain_messages();
    if (config().explain && direct.has_mapped_memory()) {
        std::uint64_t parcels = 0;
        if (words.read(stream_exchange_args::direct_at * sizeof parcels, &parcels, sizeof parcels).ok())
            say(format("{}, rank {}: {} parcels came directly", stream_exchange_call, kernels->grid->rank, parcels));
    }
    direct.leave(kernels->grid->comm);
}

// The device is waited for even if there is nothing to end: kernels in its streams use the tables.
void stream_exchange_state::drain_messages() {
    if (on_gpu())
        if (const std::string problem = gpu::finish_device(kernels->where.device); !problem.empty())
            throw error(MPI_ERR_OTHER, format("{}: {}", stream_exchange_call, problem));
    demand_no_kernel_error(*kernels, stream_exchange_call);
    if (requests() == 0) return;
    for (const stream_call part : {stream_call::drain_sends, stream_call::drain_receives}) {
        if (!on_gpu()) {
            play(part, ordered);
            continue;
        }
        if (const std::string problem = gpu::run_exchange(part, ordered, kernels->where.device); !problem.empty())
            throw error(MPI_ERR_OTHER, format("{}: {}", stream_exchange_call, problem));
    }
    demand_no_kernel_error(*kernels, stream_exchange_call);
    int error_class = MPI_SUCCESS;
    if (const int code = wait_all(requests(), kernels->requests.data(), error_class); code != MPI_SUCCESS)
        throw error(error_class, format("{}: {}", stream_exchange_call, text_of(code, "MPI_Waitall")));
}

stream_exchange stream_exchange_internals::make(const grid &g, const std::vector<field> &fields,
                                                const stream_exchange_options &options, const status &given) {
    auto made = std::make_unique<stream_exchange_state>();
    const auto &grid = grid_internals::state_of(g, stream_exchange_call);
    stream_exchange_state &x = *made;
    if (const std::optional<transfer> how = stream_transfer()) {
        x.by_host = std::make_unique<host_stream_exchange>(grid, fields, *how, given);
        return stream_exchange(std::move(made));
    }
    x.kernels = make_kernel_exchange_state(
        grid, fields,
        {.tile = choose_tile(grid->domain.boxes, grid->domain.dimensions, options.tile, depth_bytes(fields)),
         .sets = sets},
        ghost_waiters::library, stream_exchange_call, given);
    kernel_exchange_state &k = *x.kernels;
    status s = outcome_of([&] {
        if (x.on_gpu() && !MPIX_HAVE_NVCC)
            throw error(MPI_ERR_OTHER, "the fields are in GPU memory, and this libmpix was built without nvcc");
        std::vector<field_reach> reaches;
        for (const exchanged_field &f : k.fields) reaches.push_back({f.radius, f.staggered});
        x.areas = find_regions(*grid, reaches, find_pieces(*grid, reaches), false);
    });
    if (s.ok()) s = x.words.allocate(k.where, stream_exchange_args::words_count * sizeof(std::uint64_t));
    check_collectively(grid->comm, stream_exchange_call, s);
    k.device.steps_ = std::numeric_limits<std::int64_t>::max() / 2;
    const device_exchange &d = k.device;
    const auto own = std::find_if(k.parcels.begin() + d.received_begin_, k.parcels.begin() + d.received_end_,
                                  [](const parcel_origin &p) { return p.message >= 0; });
    x.ordered = {.x = d,
                 .phase = 0,
                 .words = reinterpret_cast<std::uint64_t *>(x.words.address()),
                 .own_end = static_cast<std::int32_t>(own - k.parcels.begin()),
                 .finish_groups = most_parcel_blocks,
                 .run_groups = 1,  // the host's thread
                 .most_receivers = 1,
                 .direct = {}};
    const int sharing = count_ranks_of_gpu(*grid, k.where);
    s = outcome_of([&] { x.direct.find(k, x.ordered.own_end, options.direct); });
    check_collectively(grid->comm, stream_exchange_call, s);
    x.ordered.direct = x.direct.stores();
    for (report_data::message &m : k.report.sends) {
        const std::vector<int> &ranks = x.direct.sends_directly_to();
        m.direct = std::find(ranks.begin(), ranks.end(), m.peer) != ranks.end();
    }
    if (x.on_gpu()) x.run_is_one_kernel = gpu::plan_run(x.ordered, k.where.device, sharing);
    s = begin(x);
    try {
        check_collectively(grid->comm, stream_exchange_call, s);
    } catch (...) {
        if (!k.free_requests()) keep(std::move(made));  // the active ones; messages may still come
        throw;
    }
    return stream_exchange(std::move(made));
}

bool stream_exchange_internals::is_started(const stream_exchange &x) { return x.state_ && x.state_->started; }

stream_exchange::stream_exchange(std::unique_ptr<stream_exchange_state> made) : state_(std::move(made)) {}

stream_exchange::stream_exchange(const grid &g, const std::vector<field> &fields,
                                 const stream_exchange_options &options)
    : stream_exchange(stream_exchange_internals::make(g, fields, options, {})) {}

stream_exchange::~stream_exchange() {
    if (!state_ || state_->by_host) return;  // the host's exchange reports its own misuse
    int finalized = 0;
    MPI_Finalized(&finalized);
    std::string why = state_->started ? "between start() and finish()"
                      : finalized     ? "after MPI_Finalize"
                                      : "while an exception is thrown";
    if (!state_->started && !finalized && std::uncaught_exceptions() == 0) {
        if (state_->failed) {
            if (state_->on_gpu()) static_cast<void>(gpu::finish_device(state_->kernels->where.device));
            if (!state_->direct.has_mapped_memory() && state_->kernels->free_requests()) return;
            why = "after a failure";
        } else {
            try {
                state_->drain();
                return;
            } catch (const error &e) {
                why = format("and failed: {}", e.what());
            }
        }
    }
    state_->direct.withdraw_clear_to_store();
    say(format(
        "{}: destroyed {}. Its memory is kept{}", stream_exchange_call, why,
        state_->direct.has_mapped_memory() ? ", and neighbours may still write the ghost cells of its fields" : ""));
    keep(std::move(state_));
}

stream_exchange::stream_exchange(stream_exchange &&) noexcept = default;

stream_exchange &stream_exchange::operator=(stream_exchange &&other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

void stream_exchange::start(CUstream_st *stream) {
    const profiled_range shown(range_name::halo_stream_start);
    stream_exchange_state &x = demand_usable(state_, stream_exchange_call, "start");
    demand_no_failure(x, "start");
    if (x.started) throw refusal(MPI_ERR_REQUEST, "start", "the exchange is started; finish it first");
    if (x.by_host) {
        x.wait_for(stream, "start");
        x.by_host->on_host.start();
        x.started = true;
        return;
    }
    x.kernels->demand_arrays(stream_exchange_call, "start", false);
    const stopwatch sending(x.is_timed(), x.kernels->report.sending_seconds);
    x.call(stream_call::start, stream, "start");
    x.started = true;
    x.kernels->memory.set_active(true);
}

void stream_exchange::finish(CUstream_st *stream) {
    const profiled_range shown(range_name::halo_stream_finish);
    stream_exchange_state &x = demand_usable(state_, stream_exchange_call, "finish");
    demand_no_failure(x, "finish");
    if (!x.started) throw refusal(MPI_ERR_REQUEST, "finish", "the exchange is not started");
    if (x.by_host) {
        x.wait_for(stream, "finish");
        do_or_fail([&] { x.by_host->on_host.finish(); }, [&](int) { x.started = x.by_host->on_host.active(); });
        x.started = false;
        return;
    }
    {
        const stopwatch waiting(x.is_timed(), x.kernels->report.waiting_seconds);
        x.call(stream_call::finish, stream, "finish");
    }
    x.started = false;
    count_exchanges(*x.kernels, 1, exchange_kind::stream);
    x.kernels->memory.set_active(false);
    x.kernels->demand_arrays(stream_exchange_call, "finish", true);
}

void stream_exchange::run(CUstream_st *stream) {
    stream_exchange_state &x = demand_usable(state_, stream_exchange_call, "run");
    demand_no_failure(x, "run");
    if (x.started) throw refusal(MPI_ERR_REQUEST, "run", "the exchange is started; finish it first");
    if (x.by_host || x.is_timed() || !x.run_is_one_kernel) {
        start(stream);
        return finish(stream);
    }
    x.kernels->demand_arrays(stream_exchange_call, "run", false);
    const profiled_range shown(range_name::halo_stream_run);
    x.call(stream_call::run, stream, "run");
    count_exchanges(*x.kernels, 1, exchange_kind::stream);
}

void stream_exchange::check() {
    stream_exchange_state &x = demand_state(state_, stream_exchange_call, "check");
    demand_no_failure(x, "check");
    if (x.by_host || !x.has_tiles()) return;
    x.demand_no_error("check");
}

void stream_exchange::measure(bool on) {
    stream_exchange_state &x = demand_state(state_, stream_exchange_call, "measure");
    if (x.started) throw refusal(MPI_ERR_REQUEST, "measure", "the exchange is started; finish it first");
    if (x.by_host) return x.by_host->on_host.measure(on);
    x.kernels->report.measure(on);
}

exchange_report stream_exchange::report() const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "report");
    if (x.started) throw refusal(MPI_ERR_REQUEST, "report", "the exchange is started; finish it first");
    if (x.by_host) return x.by_host->on_host.report();
    return report_of(*x.kernels, exchange_kind::stream);
}

void stream_exchange::swap() {  // NOLINT(bugprone-exception-escape): it does not swap two exchanges
    stream_exchange_state &x = demand_state(state_, stream_exchange_call, "swap");
    demand_no_failure(x, "swap");
    if (x.started) throw refusal(MPI_ERR_REQUEST, "swap", "the exchange is started; finish it first");
    if (x.by_host) return x.by_host->swap();
    x.ordered.phase ^= 1;
}

void *stream_exchange::data(int field) const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "data");
    if (x.by_host) return x.by_host->on_host.data(field);
    return data(field, demand_only_box(*x.kernels->grid, stream_exchange_call, "data"));
}

void *stream_exchange::data(int field, int i) const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "data");
    if (x.by_host) return x.by_host->on_host.data(field, i);
    const std::size_t f = demand_field(x, "data", field);
    const grid_state &g = *x.kernels->grid;
    const auto box = static_cast<std::size_t>(demand_box(g, i, stream_exchange_call, "data"));
    return x.kernels->data[f * g.mine.size() + box][static_cast<std::size_t>(x.ordered.phase)];
}

const box &stream_exchange::interior() const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "interior");
    if (x.by_host) return x.by_host->on_host.interior();
    return interior(demand_only_box(*x.kernels->grid, stream_exchange_call, "interior"));
}

const box &stream_exchange::interior(int i) const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "interior");
    if (x.by_host) return x.by_host->on_host.interior(i);
    return x.areas
        .interior[static_cast<std::size_t>(demand_box(*x.kernels->grid, i, stream_exchange_call, "interior"))];
}

const std::vector<box> &stream_exchange::boundary() const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "boundary");
    if (x.by_host) return x.by_host->on_host.boundary();
    return boundary(demand_only_box(*x.kernels->grid, stream_exchange_call, "boundary"));
}

const std::vector<box> &stream_exchange::boundary(int i) const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "boundary");
    if (x.by_host) return x.by_host->on_host.boundary(i);
    return x.areas
        .boundary[static_cast<std::size_t>(demand_box(*x.kernels->grid, i, stream_exchange_call, "boundary"))];
}

int stream_exchange::boxes() const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "boxes");
    return x.by_host ? x.by_host->on_host.boxes() : static_cast<int>(x.kernels->grid->mine.size());
}

int stream_exchange::messages_sent() const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "messages_sent");
    return x.by_host ? x.by_host->on_host.messages_sent() : x.kernels->device.sends_;
}

std::int64_t stream_exchange::bytes_sent() const {
    const stream_exchange_state &x = demand_state(state_, stream_exchange_call, "bytes_sent");
    return x.by_host ? x.by_host->on_host.bytes_sent() : x.kernels->bytes_sent;
}

}  // namespace mpix::halo
