// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges that cannot be used: an MPI call of theirs has failed, they have been moved from, MPI has been finalised,
// or, with MPIX_CHECK=1 and the argument other_thread, the thread may not call MPI. Linked with the library's own parts.
// On one rank.
#include "host/halo_exchange/exchange_state.h"
#include "host/halo/grid_internals.h"
#include "host/halo_exchange/exchange_internals.h"
#include "host/halo_c/handles.h"

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace mpix::halo;

namespace {

int failures = 0;

void expect(bool right, const char *what, const std::string &told = "") {
    if (right) return;
    std::printf("%s: %s\n", what, told.c_str());
    ++failures;
}

void must(int code) { expect(code == MPI_SUCCESS, "an MPI call", std::to_string(code)); }

// Whether the call throws.
template <class Call>
bool refused(Call call) {
    try {
        call();
    } catch (const error &) {
        return true;
    }
    return false;
}

// One message of this process to itself, whose receive may be shorter.
struct faulty {
    explicit faulty(bool is_short) {
        auto made = make_exchange_state(grid_internals::state_of(g, "faulty"), {u}, {});
        x = made.get();
        const std::vector<std::vector<runs>> cells{{x->fields[0].of(0, {{}, {2, 1, 1}})}};
        x->receives.emplace_back(0, cells, direction_bytes{}, transfer::packed, 1, x->packer.get());
        x->sends.emplace_back(0, cells, direction_bytes{}, transfer::packed, 1, x->packer.get());
        const MPI_Comm comm = x->grid->comm;
        x->requests.resize(2);
        const int ints = is_short ? 1 : 2;
        must(MPI_Precv_init(in, 1, ints, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &x->requests[0]));
        must(MPI_Psend_init(out, 1, 2, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &x->requests[1]));
        h = std::make_unique<exchange>(exchange_internals::exchange_of(std::move(made)));
    }
    // Calls that find the exchange failed.
    void check_failed() {
        for (const auto &[name, call] :
             std::vector<std::pair<std::string, void (*)(exchange &)>>{{"start", [](exchange &e) { e.start(); }},
                                                                       {"begin", [](exchange &e) { e.begin(); }},
                                                                       {"ready", [](exchange &e) { e.ready(0); }},
                                                                       {"finish", [](exchange &e) { e.finish(); }}}) {
            std::string told;
            try {
                call(*h);
            } catch (const error &e) {
                told = e.what();
                expect(e.error_class() == MPI_ERR_REQUEST, "the class", e.what());
            }
            expect(told ==
                       "mpix::halo::exchange::" + name + ": an earlier call has failed; the exchange can only be freed",
                   "after a failure", told);
        }
        expect(!h->active(), "active after a failure");
    }

    grid g{MPI_COMM_SELF, {4}};
    array<int> u{g, radius::all(1)};
    int in[2] = {}, out[2] = {};
    exchange_state *x = nullptr;
    std::unique_ptr<exchange> h;
};

// Requests that are active already.
void failed_start() {
    faulty f(false);
    must(MPI_Startall(2, f.x->requests.data()));
    expect(refused([&] { f.h->start(); }), "start");
    f.check_failed();
    // So the exchange's memory would be kept.
    expect(!f.x->free_requests() && f.x->requests.size() == 2, "an active request is freed");
    must(MPI_Pready(0, f.x->requests[1]));
    must(MPI_Waitall(2, f.x->requests.data(), MPI_STATUSES_IGNORE));
    expect(f.x->free_requests() && f.x->requests.empty(), "a request that is complete is not freed");
}

// A partition that is ready already.
void failed_ready() {
    faulty f(false);
    f.h->begin();
    must(MPI_Pready(0, f.x->requests[1]));
    expect(refused([&] { f.h->ready(0); }), "ready");
    f.check_failed();
    must(MPI_Waitall(2, f.x->requests.data(), MPI_STATUSES_IGNORE));
}

// A message that is too long; and the exchange in C.
void failed_finish() {
    faulty f(true);
    f.h->start();
    expect(f.h->active(), "not active");
    expect(refused([&] { f.h->finish(); }), "finish");
    f.check_failed();
    MPI_Waitall(2, f.x->requests.data(), MPI_STATUSES_IGNORE);

    MPIX_Halo_exchange c = new mpix_halo_exchange{std::move(*f.h), std::make_shared<const error_comm>(MPI_COMM_SELF)};
    int flag = -1;
    expect(MPIX_Halo_start(c) == MPI_ERR_REQUEST, "MPIX_Halo_start");
    expect(MPIX_Halo_active(c, &flag) == MPI_SUCCESS && flag == 0, "MPIX_Halo_active");
    expect(MPIX_Halo_exchange_free(&c) == MPI_SUCCESS && c == MPIX_HALO_EXCHANGE_NULL, "MPIX_Halo_exchange_free");
}

void refused_as(const std::string &sentence, int error_class, const std::function<void()> &call) {
    std::string told = "nothing";
    try {
        call();
    } catch (const error &e) {
        told = e.what();
        expect(e.error_class() == error_class, "the class", told);
    }
    expect(told == "mpix::halo::" + sentence, sentence.c_str(), told);
}

// NOLINTBEGIN(bugprone-use-after-move): what has been moved from says so
void moved_from() {
    grid g(MPI_COMM_SELF, {4});
    array<int> u(g, radius::all(1));
    exchange x(g, {u});
    const exchange moved(std::move(x));
    const auto gone = [](const char *function, const std::function<void()> &call) {
        refused_as(std::string("exchange::") + function + ": the exchange has been moved from", MPI_ERR_REQUEST, call);
    };
    gone("start", [&] { x.start(); });
    gone("begin", [&] { x.begin(); });
    gone("ready", [&] { x.ready(0); });
    gone("finish", [&] { x.finish(); });
    gone("swap", [&] { x.swap(0); });
    gone("data", [&] { static_cast<void>(x.data(0)); });
    gone("interior", [&] { static_cast<void>(x.interior()); });
    gone("boundary", [&] { static_cast<void>(x.boundary()); });
    gone("messages_sent", [&] { static_cast<void>(x.messages_sent()); });
    gone("bytes_sent", [&] { static_cast<void>(x.bytes_sent()); });
    expect(!x.active() && moved.interior().lo[0] == 0, "an exchange that has been moved");

    const grid taken = std::move(g);
    const auto no_grid = [](const char *function, const std::function<void()> &call) {
        refused_as(std::string(function) + ": the grid has been moved from", MPI_ERR_ARG, call);
    };
    no_grid("grid::dimensions", [&] { static_cast<void>(g.dimensions()); });
    no_grid("grid::extent", [&] { static_cast<void>(g.extent()); });
    no_grid("grid::periodic", [&] { static_cast<void>(g.periodic()); });
    no_grid("grid::rank", [&] { static_cast<void>(g.rank()); });
    no_grid("grid::ranks", [&] { static_cast<void>(g.ranks()); });
    no_grid("grid::local", [&] { static_cast<void>(g.local()); });
    no_grid("grid::box_of", [&] { static_cast<void>(g.box_of(0)); });
    no_grid("grid::boxes", [&] { static_cast<void>(g.boxes()); });
    no_grid("grid::total_boxes", [&] { static_cast<void>(g.total_boxes()); });
    no_grid("grid::rank_of", [&] { static_cast<void>(g.rank_of(0)); });
    no_grid("grid::points", [&] { static_cast<void>(g.points({}, {})); });
    no_grid("field_bytes", [&] { static_cast<void>(field_bytes(g, u, 0)); });
    no_grid("grid::owner", [&] { static_cast<void>(g.owner({})); });
    no_grid("grid::global_index", [&] { static_cast<void>(g.global_index({})); });
    no_grid("grid::neighbours", [&] { static_cast<void>(g.neighbours(0)); });
    no_grid("exchange", [&] { exchange(g, {u}); });
    no_grid("gather", [&] { gather(g, u, nullptr); });
    no_grid("write_checkpoint", [&] { write_checkpoint(g, "none", {}); });
    no_grid("write_vti", [&] { write_vti(g, "none.pvti", {}); });
    no_grid("write_png", [&] { write_png(g, "none.png", u); });
    no_grid("read_checkpoint", [&] { read_checkpoint(g, "none", {}); });
    expect(taken.ranks() == 1, "a grid that has been moved");
}
// NOLINTEND(bugprone-use-after-move)

// Everything that calls MPI, on objects that were made where that was possible.
struct made_before {
    // Each call throws an error whose sentence ends so, behind the name of the call.
    void all_refused(const std::string &sentence) {
        const auto refused = [&](const char *function, const std::function<void()> &call) {
            refused_as(function + (": " + sentence), MPI_ERR_OTHER, call);
        };
        refused("grid", [] { grid(MPI_COMM_SELF, {4}); });
        refused("exchange", [&] { exchange(g, {u}); });
        refused("kernel_exchange", [&] { kernel_exchange(g, {u}); });
        refused("stream_exchange", [&] { stream_exchange(g, {u}); });
        refused("exchange::start", [&] { by_host.start(); });
        refused("exchange::begin", [&] { by_host.begin(); });
        refused("exchange::ready", [&] { by_host.ready(0); });
        refused("exchange::finish", [&] { by_host.finish(); });
        refused("kernel_exchange::start", [&] { by_kernels.start(1); });
        refused("kernel_exchange::finish", [&] { by_kernels.finish(); });
        refused("stream_exchange::start", [&] { in_stream.start(nullptr); });
        refused("stream_exchange::finish", [&] { in_stream.finish(nullptr); });
        refused("stream_exchange::run", [&] { in_stream.run(nullptr); });
        refused("compare_transfers", [&] { static_cast<void>(compare_transfers(g, {u}, 1)); });
        refused("gather", [&] { gather(g, u, all); });
        refused("write_checkpoint", [&] { write_checkpoint(g, "none", {{"u", u}}); });
        refused("read_checkpoint", [&] { read_checkpoint(g, "none", {{"u", u}}); });
        refused("write_vti", [&] { write_vti(g, "none.pvti", {{"u", u}}); });
        refused("write_png", [&] { write_png(g, "none.png", u); });
        refused("step_report", [&] { step_report(g, {.steps = 1}); });
        expect(!by_host.active() && by_host.interior().lo[0] == 0 && by_host.data(0) != nullptr, "what calls no MPI");
    }

    grid g{MPI_COMM_SELF, {4}};
    array<int> u{g, radius::all(1)};
    int all[4] = {};
    exchange by_host{g, {u}};
    kernel_exchange by_kernels{g, {u}};
    stream_exchange in_stream{g, {u}};
};

// Fields in GPU memory are packed. Host memory stands in for it.
void gpu_fields_by_datatype() {
    grid g{MPI_COMM_SELF, {4}};
    array<int> u{g, radius::all(1)};
    fake_gpu_memory = fake_memory::device;
    std::string told;
    try {
        exchange(g, {u}, {.transfer = transfer::datatype});
    } catch (const error &e) {
        told = e.what();
    }
    expect(told ==
               "mpix::halo::exchange, rank 0: transfer is datatype, and fields[0].data is memory of a GPU; such "
               "fields are packed into host memory",
           "cells in a GPU, by datatype", told);
    expect(exchange(g, {u}, {.transfer = transfer::automatic}).report().transfer == transfer::packed, "automatic");
    // That the CPU can write is as host memory to a datatype.
    fake_gpu_memory = fake_memory::managed;
    const auto of = [&](transfer how) { return exchange(g, {u}, {.transfer = how}).report(); };
    expect(of(transfer::automatic).through_host && !of(transfer::datatype).through_host, "managed memory");
    expect(!exchange(g, {u}, {.ghosts = ghost_storage::in_messages}).report().through_host, "managed, in messages");
    fake_gpu_memory = fake_memory::none;
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    auto made = std::make_unique<made_before>();
    if (argc > 1) {  // with MPIX_CHECK=1
        std::thread([&] {
            made->all_refused(
                "called by another thread than the one that initialised MPI, but the thread level is "
                "MPI_THREAD_SINGLE; ask MPI_Init_thread for MPI_THREAD_MULTIPLE, or for MPI_THREAD_SERIALIZED if no "
                "two threads call at the same time");
        }).join();
        made.reset();
        MPI_Finalize();
        return failures > 0;
    }
    failed_start();
    failed_ready();
    failed_finish();
    moved_from();
    gpu_fields_by_datatype();
    MPI_Finalize();
    made->all_refused("call it between MPI_Init and MPI_Finalize");
    return failures > 0;
}
