// SPDX-License-Identifier: BSD-3-Clause
//
// What it costs to cut a domain and to place its boxes, by number, and what that is worth by prediction. On nodes whose
// GPUs are numbered without order: six as in Summit's, and others in groups of four, of which four are a group again,
// and so on; between groups each time half the bandwidth.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "host/decomposition/predict.h"
#include "tests/bench/command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/unit/summit_node.hpp"

namespace {

using namespace mpix::halo;

struct options {
    int boxes = 4096;  // at most
    int rounds = 5;
    const char *csv = nullptr;
};

// Of this process, so that others matter less.
double cpu_ms() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// The least of some rounds, but not many of what takes long.
template <class Step>
double least_ms(int rounds, const Step &step) {
    double least = 0, all = 0;
    for (int round = 0; round < rounds && all < 2000; ++round) {
        const double begin = cpu_ms();
        step();
        const double took = cpu_ms() - begin;
        least = round == 0 ? took : std::min(least, took);
        all += took;
    }
    return least;
}

machine groups_of_four(int nodes, int gpus) {
    placement number = trivial_placement(gpus);
    std::mt19937 random(1);
    std::shuffle(number.begin(), number.end(), random);
    machine m{.nodes = nodes, .bandwidth = matrix(gpus), .network = 50e9};
    for (int a = 0; a < gpus; ++a)
        for (int b = 0; b < gpus; ++b) {
            double bandwidth = 400e9;
            for (int x = a / 4, y = b / 4; x != y; x /= 4, y /= 4) bandwidth /= 2;
            m.bandwidth(number[a], number[b]) = bandwidth;
        }
    return m;
}

int run(int argc, char **argv) {
    options o;
    bench::command_line line("mpirun -n 1 ", "[--boxes N] [--rounds N] [--csv FILE]\n");
    line.value("boxes", o.boxes);
    line.value("rounds", o.rounds);
    line.value("csv", o.csv);
    if (!line.read(argc, argv, [&] { return o.boxes >= 6 && o.rounds >= 1; })) return 1;
    const bench::csv_file csv(o.csv);
    const std::string machine_text = bench::cpu_model(), date = bench::today();
    if (csv.get() != nullptr)
        std::fprintf(csv.get(), "nodes,gpus,boxes,step,least_cpu_ms,exchange_ms,transfers_ms,compiler,cpu,load,date\n");

    const stencil s{radius::all(2), 4 * sizeof(double), {true, true, true}};
    const int shapes[][2] = {{1, 6}, {1, 8}, {8, 8}, {64, 8}, {512, 8}, {1, 64}, {1, 512}, {1, 4096}};
    for (const auto &[nodes, gpus] : shapes) {
        if (nodes * gpus > o.boxes) continue;
        const machine m = gpus == summit::gpus ? summit::measured(nodes) : groups_of_four(nodes, gpus);
        // About 256^3 cells a box.
        index3 extent{256, 256, 256};
        for (int boxes = 1, a = 0; boxes < nodes * gpus; boxes *= 2, a = (a + 1) % 3) extent[a] *= 2;
        const matrix distance = distances(m.bandwidth);
        const auto print = [&, nodes = nodes, gpus = gpus](const char *step, double ms, const decomposition &boxes,
                                                           const placement &gpu_of) {
            const traffic t = traffic_of(boxes, s);
            const double exchange = predicted_seconds(t, m, gpu_of) * 1e3;
            const double transfers = cost(t.within, distance, gpu_of) * 1e3;
            if (csv.text() != nullptr)
                std::fprintf(
                    csv.text(),
                    "%4d nodes of %4d GPUs, %-15s %10.3f ms, an exchange: %.3f ms, all its transfers: %.3f ms\n", nodes,
                    gpus, step, ms, exchange, transfers);
            if (csv.get() != nullptr)
                std::fprintf(csv.get(), "%d,%d,%d,%s,%.4f,%.4f,%.4f,%s,%s,%s,%s\n", nodes, gpus, nodes * gpus, step, ms,
                             exchange, transfers, __VERSION__, machine_text.c_str(), bench::load().c_str(),
                             date.c_str());
        };
        std::optional<decomposition> d;
        double ms = least_ms(o.rounds, [&] { d = decompose(extent, m.nodes, m.gpus()); });
        const traffic t = traffic_of(*d, s);
        placement p = trivial_placement(m.gpus());
        print("by primes", ms, *d, p);
        if (gpus > exact_up_to) {
            ms = least_ms(o.rounds, [&] { p = improve(t.within, distance, trivial_placement(m.gpus())); });
            print("placed by swaps", ms, *d, p);
        }
        ms = least_ms(o.rounds, [&] { p = place(t.within, distance); });
        print("placed", ms, *d, p);
        std::optional<plan> by_time;
        ms = least_ms(o.rounds, [&] { by_time = plan_by_time(extent, m, s); });
        print("by time", ms, by_time->boxes, by_time->gpu_of);
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int status = run(argc, argv);
    MPI_Finalize();
    return status;
}
