// SPDX-License-Identifier: BSD-3-Clause
//
// What a halo exchange costs on the host, by each transfer: packed into partitions, by a derived datatype, and packed
// into plain persistent messages of the MPI library. The same fields in one run, by turns.
//
//   halo [--cells N] [--rounds N] [--csv FILE]
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"

namespace halo = mpix::halo;

namespace {

struct sample {
    const char *name;
    halo::radius radius;
    int fields;
};

struct transfer {
    const char *name;
    halo::transfer how;
};
constexpr transfer transfers[] = {
    {"packed", halo::transfer::packed}, {"datatype", halo::transfer::datatype}, {"plain", halo::transfer::plain}};

// The seconds of one exchange, of the slowest rank.
double time_of(halo::exchange &x, int exchanges) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < exchanges; ++i) {
        x.start();
        x.finish();
    }
    double mine = (MPI_Wtime() - begin) / exchanges, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

// Microseconds by each transfer.
std::vector<double> measure(const halo::grid &g, const sample &s, int rounds) {
    std::vector<halo::array<double>> arrays;
    for (int f = 0; f < s.fields; ++f) arrays.emplace_back(g, s.radius);
    std::vector<halo::exchange> exchanges;
    for (const transfer &t : transfers) {
        std::vector<halo::field> fields(arrays.begin(), arrays.end());
        exchanges.emplace_back(g, fields, halo::exchange_options{.transfer = t.how});
    }
    // About 20 ms for each measurement; the same number on all ranks.
    double first = time_of(exchanges[0], 3);
    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const int count = std::max(3, static_cast<int>(0.02 / first));
    std::vector<std::vector<double>> all(std::size(transfers));
    for (int round = 0; round < rounds; ++round)
        for (std::size_t t = 0; t < exchanges.size(); ++t) all[t].push_back(1e6 * time_of(exchanges[t], count));
    std::vector<double> medians;
    for (const std::vector<double> &times : all) medians.push_back(bench::median(times));
    return medians;
}

void run(const std::vector<int> &sizes, int rounds, const char *csv_name) {
    const sample samples[] = {{"faces, radius 1, 1 field", halo::radius::faces(1), 1},
                              {"faces, radius 3, 4 fields", halo::radius::faces(3), 4},
                              {"26 neighbours, radius 1, 1 field", halo::radius::all(1), 1}};
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::optional<bench::csv_file> csv;
    if (rank == 0) {
        csv.emplace(csv_name);
        if (csv->get() != nullptr)
            std::fprintf(csv->get(),
                         "# %s, %s, Linux %s, load %s, %s\nranks,cells,exchange,packed us,datatype us,plain us\n",
                         bench::cpu_model().c_str(), bench::library_name().c_str(), bench::kernel_release().c_str(),
                         bench::load().c_str(), bench::today().c_str());
        if (csv->text() != nullptr)
            std::printf("%5s %5s  %-34s %10s %10s %10s %14s\n", "ranks", "cells", "exchange", "packed us",
                        "datatype us", "plain us", "packed : plain");
    }
    for (const int n : sizes) {
        // So many cells along each axis for each rank, in a row of ranks.
        const halo::grid g(MPI_COMM_WORLD, {n, n, std::int64_t{n} * ranks}, {.periodic = {true, true, true}});
        for (const sample &s : samples) {
            const std::vector<double> us = measure(g, s, rounds);
            if (rank != 0) continue;
            if (csv->get() != nullptr)
                std::fprintf(csv->get(), "%d,%d,\"%s\",%.2f,%.2f,%.2f\n", ranks, n, s.name, us[0], us[1], us[2]);
            if (csv->text() != nullptr)
                std::printf("%5d %5d  %-34s %10.2f %10.2f %10.2f %14.2f\n", ranks, n, s.name, us[0], us[1], us[2],
                            us[0] / us[2]);
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    std::vector<int> sizes{16, 64, 128};
    int rounds = 9;
    const char *csv = nullptr;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "--cells") sizes = {std::atoi(argv[i + 1])};
        if (option == "--rounds") rounds = std::atoi(argv[i + 1]);
        if (option == "--csv") csv = argv[i + 1];
    }
    MPI_Init(&argc, &argv);
    run(sizes, rounds, csv);
    MPI_Finalize();
    return 0;
}
