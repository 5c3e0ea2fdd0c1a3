// SPDX-License-Identifier: BSD-3-Clause
//
// What the calls of an exchange by kernels answer, and what is wrong gets a sentence that names it. On two ranks; host
// threads play the kernels.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>
#include <mpix/host_group.hpp>

#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::radius;
using halo_test::expect;
using halo_test::rank;

namespace {

// The sentence, after "mpix::halo::kernel_exchange".
void refused(const char *what, int error_class, const std::string &sentence, const std::function<void()> &call) {
    halo_test::refused(what, error_class, "mpix::halo::kernel_exchange" + sentence, call);
}

void construction(const halo::grid &g) {
    std::vector<double> u(36), v(36);
    const auto made = [&](const halo::kernel_exchange_options &options, void *data) {
        halo::field f(u.data(), radius::faces(1));
        f.data = data;
        halo::kernel_exchange(g, {f}, options);
    };
    refused("tile", MPI_ERR_ARG, ", rank 0: options.tile[1] is -1; it is at least 0", [&] {
        made({.tile = {0, -1, 0}}, u.data());
    });
    refused("axis", MPI_ERR_ARG, ", rank 0: options.tile[2] is 2; the domain has 2 axes", [&] {
        made({.tile = {0, 0, 2}}, u.data());
    });
    for (const int sets : {1, 65, 1000000})
        refused("sets", MPI_ERR_ARG, ", rank 0: options.sets is " + std::to_string(sets) + "; it is 2 to 64",
                [&] { made({.sets = sets}, u.data()); });
    made({.sets = halo::kernel_exchange_options::most_sets}, u.data());
    refused("tiles differ", MPI_ERR_ARG,
            ", rank 1: options.tile is 2, 0, 0 here, and 0, 0, 0 on rank 0; all ranks give the same", [&] {
                made({.tile = {2 * rank, 0, 0}}, u.data());
            });
    refused("one field twice", MPI_ERR_ARG, ", rank 0: fields[1].data overlaps fields[0].data", [&] {
        const halo::field f(u.data(), radius::faces(1));
        halo::kernel_exchange(g, {f, f});
    });
    refused("both allocations", MPI_ERR_ARG, ", rank 0: fields[0].other overlaps fields[0].data", [&] {
        const halo::field f(u.data(), radius::faces(1));
        halo::kernel_exchange(g, {halo::double_buffered(f, f)});
    });
    refused("no fields", MPI_ERR_ARG, ", rank 0: fields is empty", [&] { halo::kernel_exchange(g, {}); });
    refused("many tiles", MPI_ERR_COUNT, ", rank 0: options.tile: 4295032832 tiles; use larger ones", [&] {
        const halo::grid large(MPI_COMM_WORLD, {65536, 2 * 65537});
        halo::kernel_exchange(large, {halo::field(u.data(), radius::faces(1))}, {.tile = {1, 1, 0}});
    });
    refused("null", MPI_ERR_BUFFER, ", rank 1: fields[0].data is null",
            [&] { made({}, rank == 1 ? nullptr : u.data()); });
}

// Of one exchange of four cells with the other rank.
void reports(const halo::kernel_exchange &h, bool timed) {
    const halo::exchange_report r = h.report();
    expect(r.kind == halo::exchange_kind::kernel && r.rank == rank && r.exchanges == 1, "kind, rank, exchanges");
    expect(r.sent.size() == 1 && r.received.size() == 1 && r.own_bytes == 0, "one message each way");
    for (const halo::message_report &m : {r.sent.at(0), r.received.at(0)}) {
        expect(m.rank == 1 - rank && m.bytes == 4 * 8 && m.path == "shm", "a message");
        expect(m.directions == std::vector{halo::direction_number(0, rank == 0 ? 1 : -1, 0)} &&
                   m.direction_bytes == std::vector<std::int64_t>{4 * 8},
               "the other's side");
    }
    expect((r.mean_active_seconds > 0) == timed && r.mean_sending_seconds == 0, "the time of an exchange");
    const std::string text = r.text(),
                      begin = "mpix::halo::kernel_exchange, rank " + std::to_string(rank) + ": 1 finished";
    expect(text.starts_with(begin + (timed ? ", " : "\n")), "its text: " + text);
    expect(
        (text.find(" us for each between start() and finish(), with what the kernels compute\n") != text.npos) == timed,
        "the time in the text: " + text);
    expect(text.ends_with("\n  not measured: when each message is there, since the host does not look for it"
                          "\n  advised for host memory: mpix::halo::exchange"),
           "what is said of times, and advised: " + text);
}

void states(const halo::grid &g) {
    std::vector<double> u(36), v(36);
    const radius faces = radius::faces(1);
    const halo::field both = halo::double_buffered(halo::field(u.data(), faces), halo::field(v.data(), faces));
    halo::kernel_exchange h(g, {both});
    refused("finish", MPI_ERR_REQUEST, "::finish: the exchange is not active; start it first", [&] { h.finish(); });
    refused("steps", MPI_ERR_ARG, "::start: steps is -1; it is at least 0", [&] { h.start(-1); });
    refused("field", MPI_ERR_ARG, "::data: field is 1; there are 1", [&] { h.data(1); });
    expect(h.messages_sent() == 1 && h.bytes_sent() >= 4 * 8 && h.bytes_sent() < 64, "one message of four cells");
    expect(h.data(0) == u.data() && !h.active(), "before the first activation");
    h.start(0);
    expect(h.active(), "active");
    refused("twice", MPI_ERR_REQUEST, "::start: the exchange is active; finish it first", [&] { h.start(1); });
    refused("measure", MPI_ERR_REQUEST, "::measure: the exchange is active; finish it first", [&] { h.measure(true); });
    refused("report", MPI_ERR_REQUEST, "::report: the exchange is active; finish it first",
            [&] { static_cast<void>(h.report()); });
    h.finish();
    expect(h.data(0) == u.data() && !h.active(), "after no exchange");
    halo::kernel_exchange moved = std::move(h);
    refused("moved", MPI_ERR_REQUEST, "::start: the exchange has been moved from", [&] { h.start(1); });
    // One exchange, by one group.
    const halo::device_exchange x = moved.start(1);
    expect(x.tiles() == 1 && x.boundary_tiles() == 1 && x.tile(0) == g.local() && x.steps() == 1, "one tile");
    expect(x.data<double>(0, 0) == u.data() && x.data<double>(0, 1) == v.data() && x.data<double>(0, 2) == u.data(),
           "allocations take turns");
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) {
        expect(halo::send(block, x, 0, 0) == MPI_SUCCESS && halo::send(block, x, 0, 1) == MPI_SUCCESS, "send");
        expect(halo::wait(block, x, 0, 0) == MPI_SUCCESS && halo::wait(block, x, 0, 1) == MPI_SUCCESS, "wait");
        expect(halo::next(block, x, 0) == MPI_SUCCESS, "next");
    });
    moved.finish();
    expect(moved.data(0) == v.data(), "after one exchange");
    reports(moved, false);
    moved.measure(true);

    // As a kernel sees it that was compiled with other headers: it does nothing, and waits for nobody.
    const halo::device_exchange again = moved.start(1);
    halo::device_exchange other = again;
    other.version_ += 1;
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) {
        halo::sync_blocks(block, other, 2);
        expect(halo::send(block, other, 0, 0) == MPI_ERR_REQUEST, "send of another version");
        expect(halo::wait(block, other, 0, 0) == MPI_ERR_REQUEST, "wait of another version");
        expect(halo::next(block, other, 0) == MPI_ERR_REQUEST, "next of another version");
        expect(halo::run_next(block, other, 1, 0, 1) == MPI_ERR_REQUEST, "run_next of another version");
        expect(halo::send(block, again, 0, 0) == MPI_SUCCESS && halo::wait(block, again, 0, 0) == MPI_SUCCESS,
               "the same version");
    });
    moved.finish();
    reports(moved, true);
}

// Boxes wait for what their cells read, and for nothing else. Rank 1 lies above rank 0, and beyond the periodic boundary
// below.
void waits_for_boxes() {
    const halo::grid g(MPI_COMM_WORLD, {4, 6}, {.periodic = {false, true, false}});
    std::vector<double> u(6 * 5, -1), v(6 * 5, -1);
    const box &local = g.local();
    const auto at = [&](std::int64_t i, std::int64_t j) -> double & {
        return u[static_cast<std::size_t>((j - local.lo[1] + 1) * 6 + i + 1)];
    };
    const auto row = [&](std::int64_t n) { return box{{0, local.lo[1] + n, 0}, {4, local.lo[1] + n + 1, 1}}; };
    for (auto j = local.lo[1]; j < local.hi[1]; ++j)
        for (std::int64_t i = 0; i < 4; ++i) at(i, j) = static_cast<double>(10 * j + i);
    {
        halo::kernel_exchange h(g, {halo::field(u.data(), radius::faces(1))}, {.tile = {2, 0, 0}, .box_waits = true});
        const halo::device_exchange x = h.start(1);
        const auto by_one = [&](const auto &body) { mpix::host_launch(1, 1, body); };
        const auto send_all = [&] {
            by_one([&](const mpix::host_group &block) {
                for (int t = 0; t < x.tiles(); ++t) expect(halo::send(block, x, t, 0) == MPI_SUCCESS, "send");
            });
        };
        if (rank == 1) send_all();
        if (rank == 0)
            by_one([&](const mpix::host_group &block) {
                expect(halo::wait(block, x, box{}, 0) == MPI_SUCCESS, "no cells");
                expect(halo::wait(block, x, row(0), 1) == MPI_SUCCESS, "no such exchange");
            });
        if (rank == 1)
            by_one([&](const mpix::host_group &block) {  // before rank 0 sends
                expect(halo::wait(block, x, row(1), 0, 0) == MPI_SUCCESS, "cells that read no ghost cells");
                expect(halo::wait(block, x, row(0), 0, 0) == MPI_ERR_PENDING, "the lowest row reads ghost cells");
                expect(halo::wait(block, x, row(2), 0, 0) == MPI_ERR_PENDING, "the highest row reads ghost cells");
            });
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) send_all();
        by_one([&](const mpix::host_group &block) {
            expect(halo::wait(block, x, row(2), 0) == MPI_SUCCESS, "the highest row");
            expect(at(1, local.hi[1]) == static_cast<double>(10 * (local.hi[1] % 6) + 1), "the ghost cells above");
            expect(at(1, local.lo[1] - 1) == -1, "those below are not there yet");
            // Next to the cells that are copies of the other tile's.
            expect(halo::wait(block, x, box{{2, local.lo[1], 0}, {3, local.lo[1] + 1, 1}}, 0) == MPI_SUCCESS, "a cell");
            expect(at(2, local.lo[1] - 1) == static_cast<double>(10 * ((local.lo[1] + 5) % 6) + 2), "the cell below");
            expect(at(1, local.lo[1] - 1) == -1, "the cell beside it");
            expect(halo::wait(block, x, local, 0) == MPI_SUCCESS && halo::wait(block, x, 0, 0) == MPI_SUCCESS, "again");
            expect(at(1, local.lo[1] - 1) == static_cast<double>(10 * ((local.lo[1] + 5) % 6) + 1), "all are there");
        });
        h.finish();
    }
    halo::kernel_exchange h(g, {halo::field(v.data(), radius::faces(1))});
    const halo::device_exchange x = h.start(1);
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) {
        expect(halo::send(block, x, 0, 0) == MPI_SUCCESS && halo::wait(block, x, 0, 0) == MPI_SUCCESS, "by tiles");
        expect(halo::wait(block, x, local, 0) == MPI_ERR_ARG, "a box without the option");
    });
    refused("no boxes", MPI_ERR_ARG,
            "::finish: rank " + std::to_string(rank) + ": exchange 0: a kernel waits for a box; set options.box_waits",
            [&] { h.finish(); });
}

// On one rank that is its own neighbour. A box of 8 x 8 cells in tiles of 2 x 2, with one ghost cell around it.
struct own_neighbour {
    explicit own_neighbour(int sets) : h(g, {both()}, {.tile = {2, 2, 0}, .sets = sets}) {}
    halo::field both() {
        const radius all = radius::all(1);
        return halo::double_buffered(halo::field(u.data(), all), halo::field(v.data(), all));
    }
    // How many ghost cells of an allocation have not been written.
    static int unfilled(const std::vector<double> &memory) {
        return static_cast<int>(std::count(memory.begin(), memory.end(), -1.0));
    }

    halo::grid g{MPI_COMM_SELF, {8, 8}, {.periodic = {true, true, false}}};
    std::vector<double> u = cells(), v = cells();
    halo::kernel_exchange h;

private:
    static std::vector<double> cells() {
        std::vector<double> all(100, -1.0);
        for (std::size_t y = 1; y < 9; ++y) std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(10 * y + 1), 8, 1.0);
        return all;
    }
};

// Waits for two exchanges that are under way at the same time, the later one first.
void out_of_order() {
    own_neighbour o(4);
    const halo::device_exchange x = o.h.start(2);
    mpix::host_launch(1, 2, [&](const mpix::host_group &block) {
        for (int step = 0; step < 2; ++step)
            for (int t = 0; t < x.tiles(); ++t) halo::send(block, x, t, step);
        halo::sync_blocks(block, x, 1);
        for (int step = 1; step >= 0; --step)
            for (int t = 0; t < x.tiles(); ++t)
                expect(halo::wait(block, x, t, step) == MPI_SUCCESS, "a wait for exchanges under way");
    });
    o.h.finish();
    expect(own_neighbour::unfilled(o.u) == 0 && own_neighbour::unfilled(o.v) == 0, "all ghost cells are filled");
}

// next(0) is not called, and one group stays away from a barrier.
void forgotten() {
    {
        own_neighbour o(2);
        const halo::device_exchange x = o.h.start(3);
        mpix::host_launch(1, 2, [&](const mpix::host_group &block) {
            expect(halo::wait(block, x, 0, 2, 0) == MPI_ERR_PENDING, "a wait that asks once");
            expect(halo::wait(block, x, 0, 2) == MPI_ERR_PENDING, "the wait ends");
        });
        refused("no next", MPI_ERR_PENDING,
                "::finish: rank 0: exchange 2 has not begun: next of exchange 0 was not called, or has not returned",
                [&] { o.h.finish(); });
    }
    own_neighbour o(2);
    const halo::device_exchange x = o.h.start(1);
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) { halo::sync_blocks(block, x, 2); });
    refused("a barrier", MPI_ERR_PENDING, "::finish: rank 0: not all groups have come to sync_blocks",
            [&] { o.h.finish(); });
    own_neighbour late(2);
    const halo::device_exchange y = late.h.start(3);
    mpix::host_launch(1, 2, [&](const mpix::host_group &block) {
        expect(halo::run_next(block, y, 1, 0, 1) == MPI_ERR_PENDING, "run_next ends");
        expect(halo::run_next(block, y, 1, 1, 1) == MPI_SUCCESS, "exchange 1 needs no next");
        expect(halo::run_next(block, y, 1, 0, 1) == MPI_ERR_OTHER, "run_next after a failure");
    });
    refused("run_next", MPI_ERR_PENDING, "::finish: rank 0: not all groups have come to sync_blocks",
            [&] { late.h.finish(); });
}

// Rank 1 starts when rank 0 has given up once.
void late_start(const halo::grid &g) {
    std::vector<double> u(36);
    halo::kernel_exchange h(g, {halo::field(u.data(), radius::faces(1))});
    if (rank == 0) {
        refused("a late neighbour", MPI_ERR_PENDING, "::start: *", [&] { h.start(1); });
        refused("other steps", MPI_ERR_ARG, "::start: steps is 2; the activation of 1 steps is under way",
                [&] { h.start(2); });
        expect(h.active(), "active while it starts");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const halo::device_exchange x = h.start(1);
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) {
        expect(halo::send(block, x, 0, 0) == MPI_SUCCESS && halo::wait(block, x, 0, 0) == MPI_SUCCESS, "late exchange");
    });
    h.finish();
}

// Rank 1 does not send its tile of exchange 1.
void stalls(const halo::grid &g) {
    std::vector<double> u(36);
    halo::kernel_exchange h(g, {halo::field(u.data(), radius::faces(1))}, {.sets = 2});
    const halo::device_exchange x = h.start(2);
    int later = MPI_SUCCESS;
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) {
        expect(halo::send(block, x, 0, 0) == MPI_SUCCESS && halo::wait(block, x, 0, 0) == MPI_SUCCESS, "exchange 0");
        if (rank == 1) return;
        expect(halo::send(block, x, 0, 1) == MPI_SUCCESS, "send of exchange 1");
        // A bounded wait may be repeated.
        expect(halo::wait(block, x, 0, 1, 1000) == MPI_ERR_PENDING, "a bounded wait");
        later = halo::wait(block, x, 0, 1);
    });
    if (rank == 0) {
        expect(later == MPI_ERR_PENDING, "the wait ends");
        const std::string cells = "[0, 2, 0] to [4, 3, 1]";
        refused("a tile that is not sent", MPI_ERR_PENDING,
                "::finish: rank 0: exchange 1: tile 0, [0, 0, 0] to [4, 2, 1], waits for the ghost cells " + cells +
                    " of fields[0], from rank 1: *",
                [&] { h.finish(); });
        refused("start after that", MPI_ERR_REQUEST,
                "::start: an earlier call has failed; the exchange can only be destroyed", [&] { h.start(1); });
    }
    // Rank 1 makes up for it, so that all requests can be freed.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        mpix::host_launch(1, 1, [&](const mpix::host_group &block) {
            expect(halo::send(block, x, 0, 1) == MPI_SUCCESS && halo::wait(block, x, 0, 1) == MPI_SUCCESS,
                   "exchange 1");
        });
        h.finish();
    }
}

}  // namespace

// calls [stall]
int main(int argc, char **argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    {
        const halo::grid g(MPI_COMM_WORLD, {4, 4});  // [0, 0] to [4, 2], and the rest
        if (argc > 1) {
            stalls(g);
            late_start(g);
            if (rank == 0) forgotten();
        } else {
            construction(g);
            states(g);
            waits_for_boxes();
            out_of_order();
        }
    }
    const int status = halo_test::any_failures();
    MPI_Finalize();
    return status;
}
