// SPDX-License-Identifier: BSD-3-Clause
//
// Random exchanges by kernels, or in the order of a stream: grids, periods, decompositions, tiles, fields, radii, sets,
// blocks, steps. Kernels compare every byte of the ghost cells in each step, the host every other byte of all
// allocations at the end.
//
//   random [--seed N] [--programs N | --seconds N] [--direct yes | --large yes]
//   random --late yes    two ranks; needs a short MPIX_STALL_SECONDS
//
// --large   in the order of a stream, with more parcels than a kernel has blocks
// --direct  in the order of a stream, with long rows; fails if no message may be stored into ghost cells directly
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"
#include "tests/halo/kernels/in_kernels.hpp"
#include "tests/halo/kernels/in_stream.hpp"
#include "tests/halo/kernels/late.hpp"
#include "tests/halo/kernels/random_case.hpp"

using device_test::executor;

namespace {

// Returns how many bytes, or calls, were wrong. Adds the messages that may be stored straight into ghost cells.
std::uint64_t run_program(unsigned seed, int rank, executor &where, halo_test::domains which, int &direct) {
    halo_test::random_case c(seed, rank, where, which);
    std::uint64_t wrong = 0;
    if (c.in_stream())
        direct += halo_test::exchange_in_stream(c);
    else
        wrong = halo_test::exchange_in_kernels(c);
    return wrong + *c.wrong() + c.check_outside();
}

int run(int argc, char **argv) {
    unsigned seed = 1;
    int programs = 20, seconds = 0, rank = 0, local_rank = 0;
    bool is_late = false, demands_direct = false, is_large = false;
    int direct = 0, all_direct = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "--seed") seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
        if (option == "--programs") programs = std::atoi(argv[i + 1]);
        if (option == "--seconds") seconds = std::atoi(argv[i + 1]);
        if (option == "--late") is_late = true;
        if (option == "--direct") demands_direct = true;
        if (option == "--large") is_large = true;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_free(&node);
    const halo_test::domains which = demands_direct ? halo_test::domains::long_rows
                                     : is_large     ? halo_test::domains::large
                                                    : halo_test::domains::any;
    executor where(local_rank);
    if (is_late) return halo_test::late(where, rank);
    const double begin = MPI_Wtime();
    for (int i = 0;; ++i) {
        int more = seconds != 0 ? MPI_Wtime() - begin < seconds : i < programs;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!more) break;
        std::uint64_t wrong = run_program(seed + static_cast<unsigned>(i), rank, where, which, direct), all = 0;
        MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (all != 0) {
            if (rank == 0)
                std::printf("seed %u: %llu wrong\n", seed + static_cast<unsigned>(i),
                            static_cast<unsigned long long>(all));
            return 1;
        }
        if (rank == 0 && seconds != 0 && i % 1000 == 999) std::printf("%d programs, 0 wrong\n", i + 1);
    }
    MPI_Allreduce(&direct, &all_direct, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (demands_direct && all_direct == 0) {
        if (rank == 0) std::puts("no message may be stored straight into ghost cells");
        return 1;
    }
    if (rank == 0) std::printf("passed, %d messages direct\n", all_direct);
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (!executor::available()) {
        std::puts("skipped: no GPU");
        return 77;
    }
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int status = 1;
    try {
        status = run(argc, argv);
    } catch (const mpix::halo::error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return status;
}
