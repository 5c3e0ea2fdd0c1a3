// SPDX-License-Identifier: BSD-3-Clause
//
// What requests cost in memory and setup, by number: of requests, of partitions, of peers. Between ranks 0 and 1,
// sender and receiver apart; then, on 27 or more ranks, for every rank with its 26 neighbours in a periodic grid, what
// the job uses in all, and what follows on paper for very many ranks. By mpix, or by the MPI library's own calls.
#include <mpi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"
#include "tests/bench/partitioned_calls.hpp"
#include "tests/bench/usage.hpp"

namespace {

using bench::look;
using bench::median;
using bench::usage;
using wall = std::chrono::steady_clock;
// Of this process, all its threads.
double cpu_us() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}
double us_since(wall::time_point start) {
    return std::chrono::duration<double, std::micro>(wall::now() - start).count();
}

constexpr int neighbours = 26;
constexpr double control_bytes = 960, control_messages = 4;  // OFFER, ACCEPT, CONNECT, STARTED: host/control/message.h

struct options {
    int requests = 10000;   // at most, between two ranks
    double ranks = 100000;  // on paper
    int partitions = 64;    // on paper, of each request
    bool library = false;
    bool pair = true;
    const char *csv = nullptr;
};

int rank, size;
bench::partitioned_calls calls = bench::mpix_calls;
bool by_mpix() { return calls.psend_init == bench::mpix_calls.psend_init; }

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "bench.scale: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}
void must(int code, const char *call) {
    if (code != MPI_SUCCESS) fail(call);
}

// All of a communicator are here; who waits sleeps, for there may be many ranks to a core.
void meet(MPI_Comm comm) {
    MPI_Request all;
    must(MPI_Ibarrier(comm, &all), "MPI_Ibarrier");
    for (int here = 0;;) {
        must(MPI_Test(&all, &here, MPI_STATUS_IGNORE), "MPI_Test");
        if (here) return;
        usleep(comm == MPI_COMM_WORLD && size > 2 ? 2000 : 50);
    }
}

// What the peers' answers still hold comes back as they are taken in.
void settle(MPI_Comm comm, int rounds) {
    if (!by_mpix()) return meet(comm);
    for (int round = 0; round < rounds; ++round) {
        MPI_Request none;
        char path[16];
        meet(comm);
        must(MPI_Psend_init(nullptr, 1, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &none), "MPI_Psend_init");
        must(MPIX_Request_path(none, path, sizeof path), "MPIX_Request_path");  // which makes progress
        must(MPI_Request_free(&none), "MPI_Request_free");
    }
}

void free_all(std::vector<MPI_Request> &all) {
    for (MPI_Request &r : all) must(calls.request_free(&r), "MPI_Request_free");
}

// ---- output ------------------------------------------------------------------------------------------------

std::FILE *csv, *text;

// One figure: CSV as it is, text with a heading of the caller's.
void record(const char *side, int requests, int partitions, const char *quantity, double value) {
    if (csv != nullptr)
        std::fprintf(csv, "%d,%s,%d,%d,%s,%.10g,%s,%s,%s\n", size, side, requests, partitions, quantity, value,
                     calls.name, bench::library_name().c_str(), bench::today().c_str());
}
void record(const char *side, int requests, int partitions, const char *prefix, const usage &u) {
    const std::string p = prefix;
    record(side, requests, partitions, (p + "heap_bytes").c_str(), u.heap);
    record(side, requests, partitions, (p + "shared_bytes").c_str(), u.shared);
    record(side, requests, partitions, (p + "private_bytes").c_str(), u.resident);
    record(side, requests, partitions, (p + "descriptors").c_str(), u.descriptors);
    record(side, requests, partitions, (p + "mappings").c_str(), u.mappings);
    record(side, requests, partitions, (p + "proportional_bytes").c_str(), u.proportional);
}

// ---- between ranks 0 and 1 -----------------------------------------------------------------------------------

MPI_Comm pair;

// Requests without a byte in them, so that what is counted is what a request costs whatever it carries.
void make(std::vector<MPI_Request> &all, int partitions) {
    static char nothing;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const int tag = static_cast<int>(i);
        must(rank == 0 ? calls.psend_init(&nothing, partitions, 0, MPI_BYTE, 1, tag, pair, MPI_INFO_NULL, &all[i])
                       : calls.precv_init(&nothing, partitions, 0, MPI_BYTE, 0, tag, pair, MPI_INFO_NULL, &all[i]),
             "an init call");
    }
}

void start(std::vector<MPI_Request> &all, int partitions) {
    must(calls.startall(static_cast<int>(all.size()), all.data()), "MPI_Startall");
    for (MPI_Request r : all)
        if (rank == 0) must(calls.pready_range(0, partitions - 1, r), "MPI_Pready_range");
}

void epoch(std::vector<MPI_Request> &all, int partitions) {
    start(all, partitions);
    must(calls.waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

struct point {
    usage held;
    // Microseconds per request: the init calls, of this rank; then of the slower one: those and the first epoch,
    // another epoch, to free them, to free them unstarted, and setup when the receiver comes only after all was
    // readied. And this rank's processor time of setup.
    double init, setup, next, free, unstarted, late, setup_cpu;
};

// The slower rank's time, per request.
double slower(wall::time_point start, int requests) {
    double us = us_since(start) / requests;
    meet(pair);
    must(MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, pair), "MPI_Allreduce");
    return us;
}

// `before`: what was held before the first request of all. Memory files and the heap's pages are not given back, so
// that of the points measured so far this should be the largest.
point measure(const usage &before, int requests, int partitions) {
    std::vector<double> init, setup, next, free, unstarted, late, setup_cpu;
    std::vector<MPI_Request> all(static_cast<std::size_t>(requests));
    point p{};
    const int repeats = std::clamp(2000 / requests, 3, 11);
    for (int r = 0; r < repeats; ++r) {
        meet(pair);
        const double cpu = cpu_us();
        const auto begin = wall::now();
        make(all, partitions);
        init.push_back(us_since(begin) / requests);
        epoch(all, partitions);
        setup_cpu.push_back((cpu_us() - cpu) / requests);
        setup.push_back(slower(begin, requests));
        meet(pair);
        const auto again = wall::now();
        epoch(all, partitions);
        next.push_back(slower(again, requests));
        if (r == repeats - 1) p.held = look() - before;
        meet(pair);
        const auto end = wall::now();
        free_all(all);
        free.push_back(slower(end, requests));
        settle(pair, 10);
        make(all, partitions);
        meet(pair);
        const auto withdrawn = wall::now();
        free_all(all);
        unstarted.push_back(slower(withdrawn, requests));
        settle(pair, 10);
        const auto early = wall::now();
        if (rank == 1) meet(pair);
        make(all, partitions);
        start(all, partitions);
        if (rank == 0) meet(pair);
        must(calls.waitall(requests, all.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        late.push_back(slower(early, requests));
        free_all(all);
        settle(pair, 10);
    }
    p.init = median(init), p.setup = median(setup), p.next = median(next);
    p.free = median(free), p.unstarted = median(unstarted), p.late = median(late), p.setup_cpu = median(setup_cpu);
    return p;
}

struct costs {
    usage request, partition;
};

// Rank 1's figures to rank 0, which prints both.
point of_rank_1(point p) {
    if (rank == 1) must(MPI_Send(&p, sizeof p, MPI_BYTE, 0, 0, pair), "MPI_Send");
    if (rank == 0) must(MPI_Recv(&p, sizeof p, MPI_BYTE, 1, 0, pair, MPI_STATUS_IGNORE), "MPI_Recv");
    return p;
}

void report(const char *side, int requests, int partitions, const point &p) {
    if (text != nullptr)
        std::fprintf(text, "%9s %9d %10d %11.0f %11.0f %12.0f %5.0f %5.0f %8.2f %8.2f %8.2f %8.2f %8.2f %9.2f %8.2f\n",
                     side, requests, partitions, p.held.heap, p.held.shared, p.held.resident, p.held.descriptors,
                     p.held.mappings, p.init, p.setup, p.setup_cpu, p.next, p.free, p.unstarted, p.late);
    record(side, requests, partitions, "", p.held);
    record(side, requests, partitions, "init_us_per_request", p.init);
    record(side, requests, partitions, "setup_us_per_request", p.setup);
    record(side, requests, partitions, "setup_cpu_us_per_request", p.setup_cpu);
    record(side, requests, partitions, "next_epoch_us_per_request", p.next);
    record(side, requests, partitions, "free_us_per_request", p.free);
    record(side, requests, partitions, "free_unstarted_us_per_request", p.unstarted);
    record(side, requests, partitions, "late_setup_us_per_request", p.late);
}

void report_costs(const char *side, const costs &c) {
    if (text != nullptr)
        std::fprintf(
            text, "%9s: %.0f bytes of heap and %.0f shared per request of one partition; %.1f and %.1f per partition\n",
            side, c.request.heap, c.request.shared, c.partition.heap, c.partition.shared);
    record(side, 1, 1, "per_request_", c.request);
    record(side, 1, 1, "per_partition_", c.partition);
}

// The costs of a send and of a receive, on rank 0; the time to set one pair up, with its first epoch.
double between_two(const options &o, costs (&out)[2]) {
    if (text != nullptr)
        std::fprintf(text, "%9s %9s %10s %11s %11s %12s %5s %5s %8s %8s %8s %8s %8s %9s %8s\n", "side", "requests",
                     "partitions", "heap B", "shared B", "private B", "fds", "maps", "init us", "setup us", "cpu us",
                     "epoch us", "free us", "undone us", "late us");
    constexpr int many_partitions = 65;
    const usage before = look();
    point few[2]{}, wide[2]{}, most[2]{};
    const auto both = [&](point *sides, int requests, int partitions) {
        sides[0] = measure(before, requests, partitions);
        sides[1] = of_rank_1(sides[0]);
        if (rank != 0) return;
        report("send", requests, partitions, sides[0]);
        report("receive", requests, partitions, sides[1]);
    };
    const int n = o.requests, fewer = n / 10;
    for (int i = 10; i < fewer; i *= 10) both(few, i, 1);
    both(few, fewer, 1);
    both(wide, fewer, many_partitions);
    both(most, n, 1);
    if (rank != 0) return 0;
    for (int side = 0; side < 2; ++side) {
        out[side].request = (most[side].held - few[side].held) / (n - fewer);
        out[side].partition = (wide[side].held - few[side].held) / fewer / (many_partitions - 1);
        report_costs(side == 0 ? "send" : "receive", out[side]);
    }
    const double ratio = most[0].setup / few[0].setup;
    if (text != nullptr) std::fprintf(text, "setup per request, %d requests against %d: %.2f times\n", n, fewer, ratio);
    record("both", n, 1, "setup_ratio_to_a_tenth", ratio);
    return most[0].setup;
}

// ---- every rank with its neighbours --------------------------------------------------------------------------

struct grid {
    int peers[neighbours];  // in a fixed order of directions; the opposite one is at neighbours - 1 - i
    int distinct = 0;
};

grid make_grid() {
    int dims[3] = {0, 0, 0}, at[3], periods[3] = {1, 1, 1};
    MPI_Comm cartesian;
    must(MPI_Dims_create(size, 3, dims), "MPI_Dims_create");
    must(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cartesian), "MPI_Cart_create");
    must(MPI_Cart_coords(cartesian, rank, 3, at), "MPI_Cart_coords");
    grid g;
    int n = 0;
    for (int x = -1; x <= 1; ++x)
        for (int y = -1; y <= 1; ++y)
            for (int z = -1; z <= 1; ++z) {
                if (x == 0 && y == 0 && z == 0) continue;
                const int there[3] = {at[0] + x, at[1] + y, at[2] + z};
                must(MPI_Cart_rank(cartesian, there, &g.peers[n++]), "MPI_Cart_rank");
            }
    g.distinct = static_cast<int>(std::set<int>(g.peers, g.peers + neighbours).size());
    must(MPI_Comm_free(&cartesian), "MPI_Comm_free");
    return g;
}

struct halo {
    usage held, job;           // of these requests, and all in all
    double init, setup, free;  // microseconds, of all requests together
};

// One send and one receive per direction, of `partitions` 8-byte partitions; the directions of `g`, or all with the
// peers of one.
halo exchange(const grid &g, int partitions, bool two_peers) {
    const auto bytes = static_cast<std::size_t>(partitions) * 8;
    std::vector<char> out(bytes * neighbours), in(bytes * neighbours);
    std::vector<MPI_Request> all(2 * neighbours);
    halo h{};
    const usage before = look();
    meet(MPI_COMM_WORLD);
    const auto start = wall::now();
    for (int d = 0; d < neighbours; ++d) {
        const int to = two_peers ? g.peers[0] : g.peers[d], from = g.peers[neighbours - 1 - (two_peers ? 0 : d)];
        const auto i = static_cast<std::size_t>(d);
        must(calls.psend_init(&out[i * bytes], partitions, 8, MPI_BYTE, to, d, MPI_COMM_WORLD, MPI_INFO_NULL, &all[i]),
             "MPI_Psend_init");
        must(calls.precv_init(&in[i * bytes], partitions, 8, MPI_BYTE, from, d, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &all[i + neighbours]),
             "MPI_Precv_init");
    }
    h.init = us_since(start);
    must(calls.startall(2 * neighbours, all.data()), "MPI_Startall");
    for (int d = 0; d < neighbours; ++d)
        must(calls.pready_range(0, partitions - 1, all[static_cast<std::size_t>(d)]), "MPI_Pready_range");
    must(calls.waitall(2 * neighbours, all.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    h.setup = us_since(start);
    meet(MPI_COMM_WORLD);
    h.job = look();
    h.held = h.job - before;
    meet(MPI_COMM_WORLD);
    const auto end = wall::now();
    free_all(all);
    h.free = us_since(end);
    settle(MPI_COMM_WORLD, 5);
    return h;
}

halo mean_of_all(halo h) {
    must(MPI_Allreduce(MPI_IN_PLACE, &h.held, bench::usage_figures, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
         "MPI_Allreduce");
    must(MPI_Allreduce(MPI_IN_PLACE, &h.init, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
    h.held = h.held / size;
    return h;
}

void report(const char *name, int partitions, const halo &h) {
    if (rank != 0) return;
    if (text != nullptr)
        std::fprintf(text, "%24s %10d %9.0f %9.0f %10.0f %6.1f %6.1f %9.2f %9.2f %9.2f\n", name, partitions,
                     h.held.heap, h.held.shared, h.held.resident, h.held.descriptors, h.held.mappings, h.init * 1e-3,
                     h.setup * 1e-3, h.free * 1e-3);
    record(name, 2 * neighbours, partitions, "", h.held);
    record(name, 2 * neighbours, partitions, "slowest_init_ms", h.init * 1e-3);
    record(name, 2 * neighbours, partitions, "slowest_setup_ms", h.setup * 1e-3);
    record(name, 2 * neighbours, partitions, "slowest_free_ms", h.free * 1e-3);
}

struct fixed_costs {
    usage process, peer;
};

// What all processes together hold.
void report_job(const char *when, int requests, int partitions, usage all) {
    must(MPI_Allreduce(MPI_IN_PLACE, &all, bench::usage_figures, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    if (rank != 0) return;
    if (text != nullptr)
        std::fprintf(text,
                     "the job, %-17s: %.1f MiB of memory, %.1f of it in mpix's memory files; heaps %.1f MiB; %.0f "
                     "descriptors, %.0f mappings\n",
                     when, all.proportional / (1 << 20), all.shared / (1 << 20), all.heap / (1 << 20), all.descriptors,
                     all.mappings);
    record(when, requests, partitions, "job_", all);
}

fixed_costs with_neighbours() {
    const usage at_first = look();
    const grid g = make_grid();
    if (text != nullptr)
        std::fprintf(
            text,
            "\n%d ranks, each with 26 sends and 26 receives of 8-byte partitions; means of all ranks, times of "
            "the slowest\n%24s %10s %9s %9s %10s %6s %6s %9s %9s %9s\n",
            size, "", "partitions", "heap B", "shared B", "private B", "fds", "maps", "init ms", "setup ms", "free ms");
    const halo first = mean_of_all(exchange(g, 1, true)), again = mean_of_all(exchange(g, 1, true));
    const halo all = mean_of_all(exchange(g, 1, false)), warm = mean_of_all(exchange(g, 1, false));
    const halo many = exchange(g, 64, false);
    const halo wide = mean_of_all(many);
    report("two peers (first)", 1, first);
    report("two peers", 1, again);
    report("all neighbours (first)", 1, all);
    report("all neighbours", 1, warm);
    report("all neighbours", 64, wide);
    report_job("before requests", 0, 0, at_first);
    report_job("all neighbours", 2 * neighbours, 64, many.job);
    fixed_costs c;
    c.process = first.held - again.held;
    c.peer = (all.held - warm.held) / std::max(1, g.distinct - 2);
    if (rank == 0) {
        record("all", 0, 0, "distinct_neighbours", g.distinct);
        record("all", 0, 0, "per_process_", c.process);
        record("all", 0, 0, "per_peer_", c.peer);
    }
    return c;
}

// ---- on paper ------------------------------------------------------------------------------------------------

void estimate(const options &o, const costs (&side)[2], const fixed_costs &c, double setup_us) {
    const auto both = [](const usage &u) { return u.heap + u.shared; };
    const double requests = neighbours * (both(side[0].request) + both(side[1].request));
    const double partitions = neighbours * (o.partitions - 1) * (both(side[0].partition) + both(side[1].partition));
    const double peers = neighbours * both(c.peer), process = both(c.process);
    const double members = 4 * o.ranks;  // one int for each member of the communicator that is used
    const double messages = neighbours * control_messages;
    const struct {
        const char *quantity, *unit;
        double value;
    } rows[] = {
        {"requests_bytes", "bytes, its 26 sends and 26 receives", requests},
        {"partitions_bytes", "bytes, their other partitions", partitions},
        {"peers_bytes", "bytes, its 26 peers", peers},
        {"process_bytes", "bytes, the first request of all", process},
        {"members_bytes", "bytes, the list of the communicator's members", members},
        {"total_bytes", "bytes in all, without the messages' own", requests + partitions + peers + process + members},
        {"setup_messages", "setup messages that it sends", messages},
        {"setup_message_bytes", "bytes in them", messages * control_bytes},
        {"setup_us", "us to set up, and for the first epoch", 2 * neighbours * setup_us}};
    if (text != nullptr)
        std::fprintf(text,
                     "\non paper, from these: one of %.0f ranks, 26 neighbours, one send and one receive each of %d "
                     "partitions\n",
                     o.ranks, o.partitions);
    for (const auto &row : rows) {
        if (text != nullptr) std::fprintf(text, "%14.0f %s\n", row.value, row.unit);
        record("paper", 2 * neighbours, o.partitions, row.quantity, row.value);
    }
}

bool parse(int argc, char **argv, options &o) {
    bench::command_line line(
        "mpirun -n N ",
        "[--requests N] [--ranks N] [--partitions N] [--without-pair] [--library] [--csv FILE|-]\n"
        "  --requests N    between ranks 0 and 1: 10, 100, ... N / 10, and N (10000)\n"
        "  --ranks N, --partitions N   of the estimate on paper (100000, 64); with more than two ranks only\n"
        "  --without-pair  only the neighbours\n"
        "  --library       by the MPI library's own calls, where it has them");
    line.value("requests", o.requests);
    line.value("ranks", o.ranks);
    line.value("partitions", o.partitions);
    line.without("without-pair", o.pair);
    line.with("library", o.library);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] { return o.requests >= 100 && o.ranks >= 1 && o.partitions >= 1; });
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) fail("two ranks are needed");
#if MPIX_LIBRARY_IS_PARTITIONED
    if (o.library) calls = bench::library_calls;
#else
    if (o.library) fail("this MPI library has no partitioned calls");
#endif
    const bench::csv_file file(rank == 0 ? o.csv : nullptr);
    if (rank == 0) {
        text = file.text();
        csv = file.get();
        if (csv != nullptr) std::fprintf(csv, "ranks,side,requests,partitions,quantity,value,way,mpi,date\n");
    }
    // The others sleep until the two are done, and the other way round.
    fixed_costs fixed{};
    if (size > 2) fixed = with_neighbours();
    must(MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair), "MPI_Comm_split");
    costs side[2]{};
    double setup_us = 0;
    if (rank < 2 && o.pair) setup_us = between_two(o, side);
    if (rank == 0 && size > 2 && o.pair) estimate(o, side, fixed, setup_us);
    if (rank < 2) must(MPI_Comm_free(&pair), "MPI_Comm_free");
    meet(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
