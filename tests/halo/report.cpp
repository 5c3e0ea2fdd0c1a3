// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange tells of itself, the comparison of transfers, and lines on a long run. On two ranks; with
// MPIX_HALO_TRANSFER=plain what changes is checked.
//
//   report [plain]
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::radius;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

namespace {

void expect_text(const std::string &text, const std::string &pattern) {
    expect(std::regex_match(text, std::regex(pattern)), "\"" + text + "\" is not \"" + pattern + "\"");
}

// What `work` writes to standard error, which leads into a file, or to a terminal.
std::string errors_of(bool to_terminal, const std::function<void()> &work) {
    const int before = dup(STDERR_FILENO), near = posix_openpt(O_RDWR | O_NOCTTY);
    expect(near >= 0 && grantpt(near) == 0 && unlockpt(near) == 0, "no terminal");
    std::FILE *const file = std::tmpfile();
    const int far = to_terminal ? open(ptsname(near), O_RDWR | O_NOCTTY) : fileno(file);
    dup2(far, STDERR_FILENO);
    work();
    dup2(before, STDERR_FILENO);
    char text[1000];
    if (!to_terminal) lseek(far, 0, SEEK_SET);
    // A terminal has what was written to it until the other end is closed, and would wait if that is nothing.
    pollfd waiting{near, POLLIN, 0};
    const bool any = !to_terminal || poll(&waiting, 1, 0) == 1;
    const ssize_t length = any ? read(to_terminal ? near : far, text, sizeof text) : 0;
    if (to_terminal) close(far);
    std::fclose(file);
    close(near);
    close(before);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

// One box above the other. From rank 0 to rank 1 a byte takes a microsecond, back half of that.
halo::grid two_boxes() {
    return {MPI_COMM_WORLD,
            {16, 12},
            {.periodic = {true, false, false}, .links = {.within_node = {1e9, 1e6, 2e6, 1e9}, .network = 0}}};
}

void reports(bool plain) {
    const halo::grid g = two_boxes();
    halo::array<double> u(g, radius::faces(2));
    halo::exchange untimed(g, {u}), timed(g, {u});
    timed.measure(true);
    const int other = 1 - rank;
    const bool below = g.local().lo[1] == 0;
    const std::string early = untimed.report().sent.at(0).path;  // it may be matched already
    expect(plain ? early == "MPI" : early == "unmatched" || early == "shm", "before the first exchange: " + early);
    for (int i = 0; i < 3; ++i)
        for (halo::exchange *const x : {&untimed, &timed}) {
            x->start();
            refused("report", MPI_ERR_REQUEST, "mpix::halo::exchange::report: the exchange is active; finish it first",
                    [&] { static_cast<void>(x->report()); });
            refused("measure", MPI_ERR_REQUEST,
                    "mpix::halo::exchange::measure: the exchange is active; finish it first",
                    [&] { x->measure(false); });
            x->finish();
        }
    for (halo::exchange *const x : {&untimed, &timed}) {
        const halo::exchange_report r = x->report();
        expect(r.rank == rank && r.exchanges == 3, "rank and exchanges");
        expect(r.transfer == (plain ? halo::transfer::plain : halo::transfer::automatic), "the transfer");
        expect(r.own_bytes == 2 * 2 * 6 * 8, "bytes from and to this rank");
        expect(r.sent.size() == 1 && r.received.size() == 1, "one message each way");
        for (const halo::message_report &m : {r.sent.at(0), r.received.at(0)}) {
            expect(m.rank == other && m.bytes == 2 * 16 * 8, "a message's rank and bytes");
            expect(m.directions == std::vector<int>{halo::direction_number(0, below ? 1 : -1, 0)}, "its directions");
            expect(m.direction_bytes == std::vector<std::int64_t>{m.bytes}, "all bytes are for that");
            expect(m.path == (plain ? "MPI" : "shm"), "its path: " + m.path);
        }
        const double slow = 256e-6, fast = 128e-6;
        expect(r.sent[0].predicted_seconds == (rank == 0 ? slow : fast), "predicted for what is sent");
        expect(r.received[0].predicted_seconds == (rank == 0 ? fast : slow), "predicted for what is received");
        const bool times = x == &timed;
        expect((r.received[0].mean_seconds > 0) == times && r.sent[0].mean_seconds == 0, "the time of a message");
        expect((r.mean_sending_seconds > 0) == times && (r.mean_waiting_seconds > 0) == times, "the times of calls");
        if (times) expect(r.received[0].mean_seconds < 60, "a message does not take a minute");
        const std::string n = std::to_string(rank), o = std::to_string(other), us = "[0-9.]+ us";
        const std::string message =
            "(" + std::string(below ? "\\+y" : "-y") + "\\): 256 bytes by " + (plain ? "MPI" : "shm, packed");
        expect_text(r.text(),
                    "mpix::halo::exchange, rank " + n + ": " + (plain ? "plain" : "automatic") + ", 3 finished" +
                        (times ? ", " + us + " in start\\(\\) and " + us + " in finish\\(\\)" : "") +
                        "; 192 bytes from and to this rank\n  to rank " + o + " \\" + message + ", predicted " +
                        (rank == 0 ? "256" : "128") + "\\.0 us\n  from rank " + o + " \\" + message + ", predicted " +
                        (rank == 0 ? "128" : "256") + "\\.0 us" + (times ? ", there after " + us : ""));
    }
}

// Of an automatic exchange, which messages are packed.
void says_the_transfer() {
    for (const int rows : {31, 32}) {  // 64 * 32 * 4 bytes are the least that go by a datatype
        const halo::grid g(MPI_COMM_WORLD, {64, rows, 80});
        halo::array<float> u(g, halo::radius::faces(1));
        halo::exchange x(g, {u});
        x.start();
        x.finish();
        const halo::exchange_report r = x.report();
        expect(r.sent.at(0).bytes == 64 * rows * 4, "one face");
        const bool typed = rows == 32;
        expect(typed == (r.sent[0].transfer == halo::transfer::datatype), "the transfer of a message sent");
        expect(r.sent[0].transfer == r.received.at(0).transfer, "the transfer of a message received");
        expect(r.text().find(typed ? "by shm, datatype" : "by shm, packed") != std::string::npos, r.text());
    }
}

void measures_anew() {
    const halo::grid g = two_boxes();
    halo::array<double> u(g, radius::faces(2));
    halo::exchange x(g, {u});
    for (const bool on : {true, false}) {
        x.measure(on);
        x.start();
        x.finish();
        const halo::exchange_report r = x.report();
        expect(r.exchanges == 1 && (r.mean_waiting_seconds > 0) == on && (r.received.at(0).mean_seconds > 0) == on,
               "what was measured before is forgotten");
    }
}

// Fields in one message that lies in several directions; no measured links; a reverse exchange.
void directions() {
    const halo::grid g(MPI_COMM_WORLD, {8}, {.periodic = {true, false, false}});
    halo::array<int> u(g, radius::all(1));
    for (const halo::reduction reduce : {halo::reduction::none, halo::reduction::sum}) {
        halo::exchange x(g, {u}, {.reduce = reduce});
        const halo::exchange_report r = x.report();
        const std::vector<int> both{halo::direction_number(-1, 0, 0), halo::direction_number(1, 0, 0)};
        expect(r.sent.at(0).directions == both && r.received.at(0).directions == both, "both directions");
        expect(r.sent[0].bytes == 2 * 4 && r.sent[0].predicted_seconds == 0, "two cells, nothing predicted");
        expect(r.sent[0].direction_bytes == std::vector<std::int64_t>{4, 4}, "one for each direction");
        expect(r.text().find(" (-x 4, +x 4): 8 bytes by ") != std::string::npos, "both in the text");
    }
    const halo::grid open(MPI_COMM_WORLD, {8});
    halo::array<int> v(open, radius::faces(0).set(-1, 0, 0, 1));
    for (const halo::reduction reduce : {halo::reduction::none, halo::reduction::sum}) {
        // Rank 0 has the ghost cells of rank 1, below it.
        const halo::exchange_report r = halo::exchange(open, {v}, {.reduce = reduce}).report();
        const bool sends = (rank == 0) == (reduce == halo::reduction::none);
        expect(r.sent.size() == (sends ? 1U : 0U) && r.received.size() == (sends ? 0U : 1U), "who sends");
        const int towards = halo::direction_number(rank == 0 ? 1 : -1, 0, 0);
        for (const auto &all : {r.sent, r.received})
            for (const halo::message_report &m : all) expect(m.directions == std::vector{towards}, "the other's side");
    }
}

// An exchange in the order of a stream whose fields are in host memory. With MPIX_EXPLAIN the first one is explained.
void in_stream(bool explained) {
    const halo::grid g = two_boxes();
    halo::array<double> u(g, radius::faces(2));
    halo::stream_exchange x(g, {u});
    const std::string of = "mpix::halo::stream_exchange";
    const bool below = g.local().lo[1] == 0;
    for (const bool on : {false, true}) {
        x.measure(on);
        std::string told;
        for (int i = 0; i < 3; ++i) {
            x.start();
            refused("report", MPI_ERR_REQUEST, of + "::report: the exchange is started; finish it first",
                    [&] { static_cast<void>(x.report()); });
            refused("measure", MPI_ERR_REQUEST, of + "::measure: the exchange is started; finish it first",
                    [&] { x.measure(true); });
            told += errors_of(false, [&] { x.finish(); });
        }
        const halo::exchange_report r = x.report();
        expect(r.kind == halo::exchange_kind::stream && r.rank == rank && r.exchanges == 3, "kind, rank, exchanges");
        expect(r.own_bytes == 2 * 2 * 6 * 8 && r.sent.size() == 1 && r.received.size() == 1, "its bytes and messages");
        for (const halo::message_report &m : {r.sent.at(0), r.received.at(0)}) {
            expect(m.rank == 1 - rank && m.bytes == 2 * 16 * 8 && m.path == "shm", "a message");
            expect(m.directions == std::vector<int>{halo::direction_number(0, below ? 1 : -1, 0)},
                   "where the other lies");
        }
        expect((r.mean_sending_seconds > 0) == on && (r.mean_waiting_seconds > 0) == on, "the times of calls");
        expect(r.advice.kind == halo::exchange_kind::host && r.advice.bytes == 256, "what is advised");
        const std::string message = std::string(" \\(") + (below ? "\\+y" : "-y") + "\\): 256 bytes by shm, predicted ",
                          us = "[0-9.]+ us";
        const std::string lines = "; 192 bytes from and to this rank\n  to rank [01]" + message + us +
                                  "\n  from rank [01]" + message + us +
                                  "\n  not measured: when each message is there, since the host does not look for it"
                                  "\n  advised for host memory: mpix::halo::exchange";
        const std::string begin = of + ", rank " + std::to_string(rank) + ": ";
        expect_text(r.text(), begin + "3 finished" +
                                  (on ? ", " + us + " in start\\(\\) and " + us + " in finish\\(\\)" : "") + lines);
        if (explained && !on)
            expect_text(told, "mpix: world rank " + std::to_string(rank) + ": " + begin + "1 finished" + lines + "\n");
        else
            expect(told.empty(), "what the later ones print: \"" + told + "\"");
    }
}

void comparison() {
    const halo::grid g = two_boxes();
    halo::array<double> u(g, radius::faces(2)), other(g, radius::faces(2));
    const halo::box &local = g.local();
    for (auto y = local.lo[1]; y < local.hi[1]; ++y)
        for (auto x = local.lo[0]; x < local.hi[0]; ++x) u(x, y) = static_cast<double>(100 * y + x);
    const std::vector<halo::field> fields{u};
    const halo::transfer_times times = halo::compare_transfers(g, fields, 5);
    double least = std::numeric_limits<double>::max();
    for (const double seconds : times.seconds) {
        expect(seconds > 0, "each has a time");
        least = std::min(least, seconds);
    }
    expect(times.seconds[static_cast<std::size_t>(times.fastest)] == least, "the fastest");
    halo::transfer_times of_0 = times;
    MPI_Bcast(of_0.seconds.data(), 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    expect(of_0.seconds == times.seconds, "all ranks have the same times");
    expect_text(times.text(), "packed [0-9.]+ us, datatype [0-9.]+ us, plain [0-9.]+ us");
    const auto beyond = local.lo[1] == 0 ? local.hi[1] : local.lo[1] - 1;
    for (auto x = local.lo[0]; x < local.hi[0]; ++x)
        expect(u(x, beyond) == static_cast<double>(100 * beyond + x), "ghost cells are filled");

    const halo::transfer_times two = halo::compare_transfers(g, {halo::double_buffered(u, other)}, 1);
    expect(two.seconds[1] == 0 && two.fastest != halo::transfer::datatype, "two allocations go by no datatype");
    expect_text(two.text(), "packed [0-9.]+ us, datatype not possible, plain [0-9.]+ us");
    refused("exchanges", MPI_ERR_ARG, "mpix::halo::compare_transfers, rank 0: exchanges is 0; it is at least 1",
            [&] { halo::compare_transfers(g, fields, 0); });
    refused("other exchanges", MPI_ERR_ARG,
            "mpix::halo::compare_transfers, rank 1: exchanges is 2 here, and 1 on rank 0; all ranks give the same",
            [&] { halo::compare_transfers(g, fields, 1 + rank); });
}

void example(const halo::grid &g, const std::vector<halo::field> &fields, int steps) {
    const halo::transfer_times times = halo::compare_transfers(g, fields);
    if (g.rank() == 0) std::printf("%s\n", times.text().c_str());
    halo::exchange h(g, fields, {.transfer = times.fastest});
    h.measure(true);
    halo::step_report report(g, {.steps = steps, .bytes_sent = h.bytes_sent()});
    for (int step = 0; step < steps; ++step) {
        h.start();
        h.finish();
        report.done();
    }
    std::printf("%s\n", h.report().text().c_str());
}

// Lines on a run of many steps; what they say at which time, unit.step_line checks.
void step_lines() {
    const halo::grid g = two_boxes();
    halo::array<double> u(g, radius::faces(2));
    halo::exchange h(g, {u});
    for (const bool to_terminal : {false, true}) {
        const std::string told = errors_of(to_terminal, [&] {
            constexpr std::int64_t steps = 20;
            halo::step_report report(g, {.steps = steps, .bytes_sent = h.bytes_sent()});
            for (std::int64_t step = 0; step < steps; ++step) {
                h.start();
                h.finish();
                report.done();
            }
        });
        const std::string rates = "[0-9.]+ [kMG]?steps/s, [0-9.]+ [kMG]?cells/s, [0-9.]+ [kMG]?B/s",
                          last = "20 steps in [0-9.]+ s, " + rates;
        // In between there is a line in each second, if it takes so long.
        const std::string line = "step [0-9]+ of 20 \\([0-9]+ %\\), " + rates + "(, [0-9hmins ]+ left)?";
        if (rank == 1)
            expect(told.empty(), "rank 1 writes \"" + told + "\"");
        else if (to_terminal)
            expect_text(told, "(\r" + line + "\x1b\\[K)*\r" + last + "\x1b\\[K\r\n");
        else
            expect_text(told, "(" + line + "\n)*" + last + "\n");
    }
    const std::string nothing = errors_of(false, [&] {
        halo::step_report none(g);
        halo::step_report moved = std::move(none);
        refused("moved", MPI_ERR_REQUEST, "mpix::halo::step_report::done: the report has been moved from",
                [&] { none.done(); });  // NOLINT(bugprone-use-after-move): that is what is tested
        refused("done", MPI_ERR_ARG, "mpix::halo::step_report::done: steps is -1; it is at least 0",
                [&] { moved.done(-1); });
        refused("steps", MPI_ERR_ARG, "mpix::halo::step_report, rank 1: options.steps is -1; it is at least 0",
                [&] { halo::step_report(g, {.steps = -rank}); });
        refused("bytes", MPI_ERR_ARG, "mpix::halo::step_report, rank 1: options.bytes_sent is -1; it is at least 0",
                [&] { halo::step_report(g, {.bytes_sent = -rank}); });
        refused("other steps", MPI_ERR_ARG,
                "mpix::halo::step_report, rank 1: options.steps is 1 here, and 0 on rank 0; all ranks give the same",
                [&] { halo::step_report(g, {.steps = rank}); });
    });
    expect(nothing.empty(), "without a step: \"" + nothing + "\"");
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const bool plain = argc > 1 && std::strcmp(argv[1], "plain") == 0;
    reports(plain);
    measures_anew();
    if (!plain) says_the_transfer();
    if (!plain) directions();
    in_stream(!plain);
    if (plain) step_lines();  // MPIX_EXPLAIN would write, too
    comparison();
    {
        const halo::grid g(MPI_COMM_WORLD, {64, 64, 64}, {.periodic = {true, true, true}});
        halo::array<double> u(g, radius::faces(1));
        example(g, {u}, 10);
    }
    const int status = halo_test::any_failures();
    MPI_Finalize();
    return status;
}
