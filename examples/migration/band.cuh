// SPDX-License-Identifier: BSD-3-Clause
//
// The band of rows of the programs whose kernels exchange the halo. Behind gpu_or_host.cuh it is for host threads, too.
#ifndef MIGRATION_BAND_CUH
#define MIGRATION_BAND_CUH

#include <cstddef>
#include <vector>

#include "heat.h"

#ifndef KERNEL_FN
#include <cooperative_groups.h>
#define KERNEL_FN __device__
#define BOTH_FN __host__ __device__
#endif

/** A rank's rows, of two fields; step s reads field s % 2. Rows 0 and rows + 1 are ghost rows. */
struct band {
    int rows, first, above, below;
    double *fields[2];

    BOTH_FN double *row(int step, int r) const { return fields[step % 2] + r * COLUMNS; }
    std::size_t field_cells() const { return static_cast<std::size_t>(rows + 2) * COLUMNS; }
};

/** Without memory for the fields. */
inline band own_band() {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int first = COLUMNS * rank / ranks;
    return {COLUMNS * (rank + 1) / ranks - first, first, (rank + ranks - 1) % ranks, (rank + 1) % ranks, {}};
}

/** What is in the rows, without the ghost rows, before the first step. */
inline std::vector<double> first_rows(const band &b) {
    std::vector<double> rows(static_cast<std::size_t>(b.rows) * COLUMNS);
    for (int i = 0; i < b.rows * COLUMNS; ++i) rows[i] = first_value(b.first + i / COLUMNS, i % COLUMNS);
    return rows;
}

/** What is in them after the last one. */
inline void print_rows(const band &b, const std::vector<double> &rows) {
    std::uint64_t sum = 0;
    for (int i = 0; i < b.rows * COLUMNS; ++i) sum += digest(b.first + i / COLUMNS, i % COLUMNS, rows[i]);
    print_sum(sum);
}

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

#endif  // MIGRATION_BAND_CUH
