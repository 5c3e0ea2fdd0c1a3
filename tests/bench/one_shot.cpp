// SPDX-License-Identifier: BSD-3-Clause
//
// A message that is sent once: the requests are made, started, marked ready, waited for and freed, one pair after the
// other. One rank sends to itself; two ranks send to each other.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"
#include "tests/bench/partitioned_calls.hpp"
#include "tests/bench/table.hpp"

namespace {

void must(int code, const char *call) {
    if (code == MPI_SUCCESS) return;
    std::fprintf(stderr, "bench.one_shot: %s failed\n", call);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

struct partner {
    MPI_Comm comm;
    int peer;
};

constexpr int bytes = 8;
char out[bytes], in[bytes];

// Message i carries i in both directions, so what is received can be checked.
void write_number(int number) { std::memcpy(out, &number, sizeof number); }
void check_number(int number) {
    int received = 0;
    std::memcpy(&received, in, sizeof received);
    if (received == number) return;
    std::fprintf(stderr, "bench.one_shot: message %d came in place of %d\n", received, number);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void by_partitions(const bench::partitioned_calls &calls, const partner &e) {
    MPI_Request both[2];
    must(calls.psend_init(out, 1, bytes, MPI_BYTE, e.peer, 1, e.comm, MPI_INFO_NULL, &both[0]), "Psend_init");
    must(calls.precv_init(in, 1, bytes, MPI_BYTE, e.peer, 1, e.comm, MPI_INFO_NULL, &both[1]), "Precv_init");
    must(calls.startall(2, both), "Startall");
    must(calls.pready(0, both[0]), "Pready");
    must(calls.waitall(2, both, MPI_STATUSES_IGNORE), "Waitall");
    for (MPI_Request &r : both) must(calls.request_free(&r), "Request_free");
}
void by_mpix(const partner &e) { by_partitions(bench::mpix_calls, e); }
#if MPIX_LIBRARY_IS_PARTITIONED
void by_library(const partner &e) { by_partitions(bench::library_calls, e); }
#endif

// By the library alone (PMPI_).
void by_persistent(const partner &e) {
    MPI_Request both[2];
    must(PMPI_Send_init(out, bytes, MPI_BYTE, e.peer, 3, e.comm, &both[0]), "MPI_Send_init");
    must(PMPI_Recv_init(in, bytes, MPI_BYTE, e.peer, 3, e.comm, &both[1]), "MPI_Recv_init");
    must(PMPI_Startall(2, both), "MPI_Startall");
    must(PMPI_Waitall(2, both, MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (MPI_Request &r : both) must(PMPI_Request_free(&r), "MPI_Request_free");
}

struct way {
    const char *name;
    void (*once)(const partner &);
};
constexpr way ways[] = {
    {"mpix", by_mpix},
#if MPIX_LIBRARY_IS_PARTITIONED
    {"library", by_library},
#endif
    {"persistent", by_persistent},
};

struct options {
    int messages = 2000;
    int turns = 15;
    const char *csv = nullptr;
};

// The ways take turns. Microseconds for each message.
void measure(const options &o, const partner &e, const char *peer, bench::table &table) {
    std::vector<double> us[std::size(ways)];
    for (int turn = 0; turn < o.turns; ++turn)
        for (std::size_t w = 0; w < std::size(ways); ++w) {
            must(MPI_Barrier(e.comm), "MPI_Barrier");
            const auto start = std::chrono::steady_clock::now();
            for (int i = 1; i <= o.messages; ++i) {
                write_number(i);
                ways[w].once(e);
                check_number(i);
            }
            const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
            us[w].push_back(took.count() / o.messages);
        }
    for (std::size_t w = 0; w < std::size(ways); ++w)
        table.row({peer, ways[w].name, bench::cell(*std::min_element(us[w].begin(), us[w].end())),
                   bench::cell(bench::median(us[w]))});
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    bench::command_line line("mpirun -n 1|2 ",
                             "[--messages N] [--turns N] [--csv FILE|-]\n"
                             "  --messages N   one after the other, in each turn (2000)\n"
                             "  --turns N      of each way (15)");
    line.value("messages", o.messages);
    line.value("turns", o.turns);
    line.value("csv", o.csv);
    if (!line.read(argc, argv, [&o] { return o.messages >= 1 && o.turns >= 1; })) return 2;
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 2) {
        std::fprintf(stderr, "bench.one_shot: one or two ranks are needed\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    {
        // Rank 1 measures too; its table is thrown away.
        std::FILE *const unseen = rank == 0 ? nullptr : std::freopen("/dev/null", "w", stdout);
        static_cast<void>(unseen);
        bench::table table(
            "one message from the init calls to the end of its requests", rank == 0 ? o.csv : nullptr,
            {"peer", "way", "least_us", "median_us"}, "mpi,cpu,load,date",
            bench::library_name() + "," + bench::cpu_model() + "," + bench::load() + "," + bench::today());
        measure(o, {MPI_COMM_WORLD, size - 1 - rank}, size == 1 ? "itself" : "the other", table);
    }
    MPI_Finalize();
    return 0;
}
