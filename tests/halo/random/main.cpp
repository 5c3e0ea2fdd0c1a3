// SPDX-License-Identifier: BSD-3-Clause
//
// Random halo programs: grids, periods, decompositions, fields, radii, subsets. After each exchange every byte of every
// allocation is compared: ghost cells with a function of their global index, all others with what they held before.
// After a reverse exchange: cells with what a serial program makes of them and of all ranks' ghost cells. After an
// exchange whose ghost cells stay in the messages: these, as the accessors read them, and the fields, which keep
// theirs.
//
//   random [--seed N] [--programs N | --seconds N] [--node-messages automatic|always]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/halo/random/program.hpp"

int main(int argc, char **argv) {
    int rank = 0, level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned first = 1, programs = 40, tried = 0;
    double seconds = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--seed") == 0) first = static_cast<unsigned>(std::strtoull(argv[i + 1], nullptr, 10));
        if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
        if (std::strcmp(argv[i], "--node-messages") == 0)
            random_halo::to_nodes = std::strcmp(argv[i + 1], "always") == 0
                                        ? random_halo::halo::node_messages::always
                                        : random_halo::halo::node_messages::automatic;
        if (std::strcmp(argv[i], "--programs") == 0) programs = static_cast<unsigned>(std::atoi(argv[i + 1]));
    }
    // Until the time of rank 0 is over, if a time is given.
    const double start = MPI_Wtime();
    const auto more = [&] {
        if (seconds <= 0) return tried < programs;
        int go_on = MPI_Wtime() - start < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return go_on != 0;
    };
    int failed = 0;
    for (unsigned seed = first; more(); ++seed, ++tried) {
        try {
            const int wrong = random_halo::program(seed).run();
            if (wrong > 0) std::printf("rank %d: seed %u: %d bytes are wrong\n", rank, seed, wrong);
            failed += wrong > 0;
        } catch (const mpix::halo::error &e) {
            std::printf("rank %d: seed %u: %s\n", rank, seed, e.what());
            ++failed;
        }
    }
    int all = 0;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%u programs, %d failures\n", tried, all);
    MPI_Finalize();
    return all > 0;
}
