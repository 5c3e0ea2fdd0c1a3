// SPDX-License-Identifier: BSD-3-Clause
//
// Ghost cells that stay in the messages, in C.
#include <string.h>

#include <mpix/halo.h>

#include "tests/conformance/harness.h"
#include "tests/halo/c/cases.h"

enum { most_cells = nx * ny, most_pieces = 20 };

static double value_of(int64_t x, int64_t y, int c, int epoch) {
    return (double)(((x + nx) % nx) + 100 * y + 10000 * c + 20000 * epoch);
}

// Two values in each cell, next to each other, and no room for ghost cells.
static void fill(double *u, MPIX_Halo_box local, int epoch) {
    for (int64_t y = local.lo[1]; y < local.hi[1]; ++y)
        for (int64_t x = local.lo[0]; x < local.hi[0]; ++x)
            for (int c = 0; c < 2; ++c) *u++ = value_of(x, y, c, epoch);
}

void ghosts_in_messages(void) {
    const MPIX_Halo_grid grid = plane();
    MPIX_Halo_box local;
    OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
    const int64_t width = local.hi[0] - local.lo[0], height = local.hi[1] - local.lo[1];
    double u[2][2 * most_cells], before[2 * most_cells];
    int radius[MPIX_HALO_DIRECTIONS];
    OK(MPIX_Halo_radius_all(1, radius));
    MPIX_Halo_field field;
    OK(MPIX_Halo_field_init(u[0], MPI_DOUBLE, radius, &field));
    field.other = u[1];
    field.layout.components = 2;
    field.layout.interleaved = 1;
    for (int a = 0; a < 3; ++a) field.layout.below[a] = field.layout.above[a] = 0;
    field.allocated = 2 * width * height * (int64_t)sizeof(double);
    static const int transfers[] = {MPIX_HALO_AUTOMATIC, MPIX_HALO_PACKED, MPIX_HALO_PLAIN};
    for (int how = 0; how < 3; ++how) {
        MPIX_Halo_exchange x;
        OK(MPIX_Halo_exchange_create(grid, 1, &field, transfers[how] | MPIX_HALO_IN_MESSAGES, &x));
        int count = -1, few = -1;
        OK(MPIX_Halo_ghost_pieces(0, 0, x, 0, NULL, &count));
        MPIX_Halo_ghost_piece pieces[most_pieces], first[1];
        CHECK(count > 0 && count <= most_pieces);
        for (int epoch = 0; epoch < 3; ++epoch) {
            double *const now = u[epoch % 2];
            fill(now, local, epoch);
            memcpy(before, now, sizeof before);
            OK(MPIX_Halo_start(x));
            OK(MPIX_Halo_finish(x));
            CHECK(memcmp(before, now, (size_t)field.allocated) == 0);
            OK(MPIX_Halo_ghost_pieces(0, 0, x, most_pieces, pieces, &count));
            OK(MPIX_Halo_ghost_pieces(0, 0, x, 1, first, &few));
            CHECK(few == count && first->first == pieces->first && first->direction == pieces->direction);
            int64_t cells = 0;
            for (int n = 0; n < count; ++n) {
                const MPIX_Halo_ghost_piece *const p = &pieces[n];
                const char *const bytes = p->first;
                for (int64_t gy = p->cells.lo[1]; gy < p->cells.hi[1]; ++gy)
                    for (int64_t gx = p->cells.lo[0]; gx < p->cells.hi[0]; ++gx, ++cells) {
                        CHECK(p->direction == MPIX_HALO_DIRECTION((gx >= local.hi[0]) - (gx < local.lo[0]),
                                                                  (gy >= local.hi[1]) - (gy < local.lo[1]), 0));
                        for (int c = 0; c < 2; ++c) {
                            double value = 0;
                            memcpy(&value,
                                   bytes + (gx - p->cells.lo[0]) * p->stride[0] + (gy - p->cells.lo[1]) * p->stride[1] +
                                       c * p->component_stride,
                                   sizeof value);
                            CHECK(value == value_of(gx, gy, c, epoch));
                        }
                    }
            }
            const int64_t rows = height + (local.lo[1] > 0) + (local.hi[1] < ny);
            CHECK(cells == (width + 2) * rows - width * height);
            OK(MPIX_Halo_swap(0, x));
        }
        OK(MPIX_Halo_exchange_free(&x));
    }
    MPIX_Halo_grid whole = grid;
    OK(MPIX_Halo_grid_free(&whole));
}
