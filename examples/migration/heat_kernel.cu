// SPDX-License-Identifier: BSD-3-Clause
//
// After (docs/migration.md): one kernel does all steps and exchanges the halo, as one does by put-with-signal of NVSHMEM.
#include <vector>

#include "gpu_or_host.cuh"
#include "heat.h"

#include <mpix/device.cuh>

namespace {

/** A rank's rows, of two fields; step s reads field s % 2. Rows 0 and rows + 1 are ghost rows. */
struct band {
    int rows;
    double *fields[2];

    BOTH_FN double *row(int step, int r) const { return fields[step % 2] + r * COLUMNS; }
};

struct handles {
    MPIX_Prequest of_field[2][4];  // from above, from below, to below, to above
};

template <class Block>
KERNEL_FN void update(const Block &block, const band &b, int step, int first, int last) {
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    for (int i = rank; i < (last - first + 1) * COLUMNS; i += threads) {
        const int r = first + i / COLUMNS, c = i % COLUMNS;
        const double *const now = b.row(step, r);
        b.row(step + 1, r)[c] =
            0.25 * (now[c - COLUMNS] + now[c + COLUMNS] + now[(c + COLUMNS - 1) % COLUMNS] + now[(c + 1) % COLUMNS]);
    }
}

/** All steps, by one block. */
struct steps {
    band b;
    handles all;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int) const {
        for (int step = 0; step < STEPS; ++step) {
            const MPIX_Prequest *const halo = all.of_field[step % 2];
            mpix::pready(block, 0, halo[2]);
            mpix::pready(block, 0, halo[3]);
            update(block, b, step, 2, b.rows - 1);
            mpix::wait_arrived(block, halo[0], 0);
            mpix::wait_arrived(block, halo[1], 0);
            update(block, b, step, 1, 1);
            update(block, b, step, b.rows, b.rows);
            mpix::wait(block, 4, halo);  // the rows that were sent may be written
            block.sync();                // all threads have read the ghost rows
            if (step + 2 < STEPS) mpix::start(block, 4, halo);
        }
    }
};

int run() {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int first = COLUMNS * rank / ranks, above = (rank + ranks - 1) % ranks, below = (rank + 1) % ranks;
    band b{COLUMNS * (rank + 1) / ranks - first, {}};
    for (double *&field : b.fields) field = example::allocate<double>(static_cast<std::size_t>(b.rows + 2) * COLUMNS);
    std::vector<double> mine(static_cast<std::size_t>(b.rows) * COLUMNS);
    for (int i = 0; i < b.rows * COLUMNS; ++i) mine[i] = first_value(first + i / COLUMNS, i % COLUMNS);
    example::copy(b.row(0, 1), mine.data(), mine.size());

    MPI_Request requests[2][4];
    handles all;
    for (int f = 0; f < 2; ++f) {
        const MPI_Comm world = MPI_COMM_WORLD;
        MPI_Request *const r = requests[f];
        const int down = 2 * f, up = down + 1;  // tags
        MPI_Precv_init(b.row(f, 0), 1, COLUMNS, MPI_DOUBLE, above, down, world, MPI_INFO_NULL, &r[0]);
        MPI_Precv_init(b.row(f, b.rows + 1), 1, COLUMNS, MPI_DOUBLE, below, up, world, MPI_INFO_NULL, &r[1]);
        MPI_Psend_init(b.row(f, b.rows), 1, COLUMNS, MPI_DOUBLE, below, down, world, MPI_INFO_NULL, &r[2]);
        MPI_Psend_init(b.row(f, 1), 1, COLUMNS, MPI_DOUBLE, above, up, world, MPI_INFO_NULL, &r[3]);
        for (int i = 0; i < 4; ++i) MPIX_Prequest_create(r[i], MPI_INFO_NULL, &all.of_field[f][i]);
    }

    for (auto &field : requests) MPI_Startall(4, field);
    example::launch(1, steps{b, all});
    for (auto &field : requests) MPI_Waitall(4, field, MPI_STATUSES_IGNORE);

    example::copy(mine.data(), static_cast<const double *>(b.row(STEPS, 1)), mine.size());
    std::uint64_t sum = 0;
    for (int i = 0; i < b.rows * COLUMNS; ++i) sum += digest(first + i / COLUMNS, i % COLUMNS, mine[i]);
    print_sum(sum);
    for (int f = 0; f < 2; ++f)
        for (int i = 0; i < 4; ++i) {
            MPIX_Prequest_free(&all.of_field[f][i]);
            MPI_Request_free(&requests[f][i]);
        }
    for (double *field : b.fields) example::release_memory(field);
    return 0;
}

}  // namespace

int main(int argc, char **argv) { return example::with_mpi(argc, argv, run); }
