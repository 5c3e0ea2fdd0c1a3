/* SPDX-License-Identifier: BSD-3-Clause
 *
 * After (docs/migration.md): the halo by partitioned calls. The rows at the edges are computed first, and each part of them
 * is sent as soon as it has its values. */
#include "band.h"

enum { PARTS = 4, WIDTH = COLUMNS / PARTS };

int main(int argc, char **argv) {
    static struct band b;
    MPI_Request r[2][4]; /* of each field */
    MPI_Init(&argc, &argv);
    make_band(&b);
    for (int f = 0; f < 2; ++f) {
        double(*const field)[COLUMNS] = b.field[f];
        const MPI_Comm world = MPI_COMM_WORLD;
        const int down = 2 * f, up = down + 1; /* tags */
        MPI_Precv_init(field[0], PARTS, WIDTH, MPI_DOUBLE, b.above, down, world, MPI_INFO_NULL, &r[f][0]);
        MPI_Precv_init(field[b.rows + 1], PARTS, WIDTH, MPI_DOUBLE, b.below, up, world, MPI_INFO_NULL, &r[f][1]);
        MPI_Psend_init(field[b.rows], PARTS, WIDTH, MPI_DOUBLE, b.below, down, world, MPI_INFO_NULL, &r[f][2]);
        MPI_Psend_init(field[1], PARTS, WIDTH, MPI_DOUBLE, b.above, up, world, MPI_INFO_NULL, &r[f][3]);
    }

    MPI_Startall(4, r[0]);
    MPI_Pready_range(0, PARTS - 1, r[0][2]);
    MPI_Pready_range(0, PARTS - 1, r[0][3]);
    for (int step = 0; step < STEPS; ++step) {
        MPI_Request *const now = r[step % 2], *const next = r[(step + 1) % 2];
        MPI_Waitall(4, now, MPI_STATUSES_IGNORE);
        MPI_Startall(4, next);
        for (int p = 0; p < PARTS; ++p) {
            update(&b, step, b.rows, p * WIDTH, (p + 1) * WIDTH);
            MPI_Pready(p, next[2]);
            update(&b, step, 1, p * WIDTH, (p + 1) * WIDTH);
            MPI_Pready(p, next[3]);
        }
        for (int row = 2; row < b.rows; ++row) update(&b, step, row, 0, COLUMNS);
    }
    MPI_Waitall(4, r[STEPS % 2], MPI_STATUSES_IGNORE);

    print_band(&b);
    for (int f = 0; f < 2; ++f)
        for (int i = 0; i < 4; ++i) MPI_Request_free(&r[f][i]);
    MPI_Finalize();
    return 0;
}
