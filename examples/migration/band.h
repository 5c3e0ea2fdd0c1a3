/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One band of rows for each rank, in two fields of which a step reads one and writes the other. Rows 0 and rows + 1 are ghost
 * rows: copies of the neighbours' last and first row. */
#ifndef MIGRATION_BAND_H
#define MIGRATION_BAND_H

#include "heat.h"

struct band {
    int rows, first, above, below;
    double field[2][COLUMNS + 2][COLUMNS]; /* enough for one rank */
};

static inline void make_band(struct band *b) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    b->first = COLUMNS * rank / ranks;
    b->rows = COLUMNS * (rank + 1) / ranks - b->first;
    b->above = (rank + ranks - 1) % ranks;
    b->below = (rank + 1) % ranks;
    for (int r = 1; r <= b->rows; ++r)
        for (int c = 0; c < COLUMNS; ++c) b->field[0][r][c] = first_value(b->first + r - 1, c);
}

/* Computes some columns of a row of the next field. */
static inline void update(struct band *b, int step, int row, int begin, int end) {
    double(*const now)[COLUMNS] = b->field[step % 2], *const next = b->field[(step + 1) % 2][row];
    for (int c = begin; c < end; ++c)
        next[c] = 0.25 * (now[row - 1][c] + now[row + 1][c] + now[row][(c + COLUMNS - 1) % COLUMNS] +
                          now[row][(c + 1) % COLUMNS]);
}

static inline void print_band(struct band *b) {
    uint64_t sum = 0;
    for (int r = 1; r <= b->rows; ++r)
        for (int c = 0; c < COLUMNS; ++c) sum += digest(b->first + r - 1, c, b->field[STEPS % 2][r][c]);
    print_sum(sum);
}

#endif
