/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Before (docs/migration.md): the halo by MPI_Isend and MPI_Irecv. Needs no mpix. */
#include "band.h"

int main(int argc, char **argv) {
    static struct band b;
    MPI_Init(&argc, &argv);
    make_band(&b);
    for (int step = 0; step < STEPS; ++step) {
        double(*const now)[COLUMNS] = b.field[step % 2];
        MPI_Request r[4];
        MPI_Irecv(now[0], COLUMNS, MPI_DOUBLE, b.above, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(now[b.rows + 1], COLUMNS, MPI_DOUBLE, b.below, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(now[b.rows], COLUMNS, MPI_DOUBLE, b.below, 0, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(now[1], COLUMNS, MPI_DOUBLE, b.above, 1, MPI_COMM_WORLD, &r[3]);
        for (int row = 2; row < b.rows; ++row) update(&b, step, row, 0, COLUMNS);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        update(&b, step, 1, 0, COLUMNS);
        update(&b, step, b.rows, 0, COLUMNS);
    }
    print_band(&b);
    MPI_Finalize();
    return 0;
}
