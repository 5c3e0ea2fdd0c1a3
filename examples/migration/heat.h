/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The problem of the migration pages: a square of cells whose edges are glued together. In each step a cell becomes the mean
 * of the four beside it. The cells are such that this is exact in doubles, so programs that compute in another order must
 * come to the same number. */
#ifndef MIGRATION_HEAT_H
#define MIGRATION_HEAT_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { COLUMNS = 48, STEPS = 10 };

/* The value of a cell before the first step: an integer below 2^20. Ten steps add twenty bits behind the point. */
static inline double first_value(int row, int column) {
    uint32_t x = (uint32_t)(row * COLUMNS + column + 1) * 2654435761u;
    x = (x ^ (x >> 15)) * 2246822519u;
    return (double)(x >> 12);
}

/* What a cell adds to the number that is printed. */
static inline uint64_t digest(int row, int column, double value) {
    return (uint64_t)(value * 1048576.0) * (uint64_t)(2 * (row * COLUMNS + column) + 1);
}

/* Rank 0 prints the sum of all ranks' digests. */
static inline void print_sum(uint64_t mine) {
    int rank;
    uint64_t all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("%d steps of %d x %d cells: %016llx\n", STEPS, COLUMNS, COLUMNS, (unsigned long long)all);
}

#endif
