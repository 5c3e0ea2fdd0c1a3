// SPDX-License-Identifier: BSD-3-Clause
//
// Whole fields in C: gathered on one rank, and in files.
#include <stdio.h>
#include <string.h>

#include <mpix/halo.h>

#include "tests/conformance/harness.h"
#include "tests/halo/c/cases.h"

// Interleaved pairs on the lower and upper faces of cells, gathered on the last rank, while an exchange of the same grid is active.
void gathers(void) {
    enum { rows = ny + 1 };
    static short cells[(nx + 2) * (rows + 2)][2];
    const int root = world_size - 1;
    short all[nx * rows + 1][2], expected[nx * rows + 1][2];
    double other[(nx + 2) * (ny + 2)];
    int radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field, busy;
    MPIX_Halo_exchange x;
    MPIX_Halo_box box, local;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field));
    field.layout.components = 2;
    field.layout.interleaved = 1;
    field.layout.staggered[1] = 1;
    OK(MPIX_Halo_field_init(other, MPI_DOUBLE, radius, &busy));
    OK(MPIX_Halo_exchange_create(grid, 1, &busy, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_grid_box(grid, world_rank, &box, NULL));
    OK(MPIX_Halo_points(grid, &box, field.layout.staggered, &local));
    CHECK(local.hi[1] == box.hi[1] + (box.hi[1] == ny) && local.hi[0] == box.hi[0] && local.lo[1] == box.lo[1]);
    memset(cells, poison, sizeof cells);
    memset(all, poison, sizeof all);
    memset(expected, poison, sizeof expected);
    for (int64_t y = -1; y <= local.hi[1] - local.lo[1]; ++y)
        for (int64_t x_local = -1; x_local <= local.hi[0] - local.lo[0]; ++x_local) {
            const int64_t from[] = {x_local, y, 0}, width = local.hi[0] - local.lo[0] + 2;
            int64_t to[3];
            OK(MPIX_Halo_global_index(grid, 0, from, to));
            CHECK(to[0] == (local.lo[0] + x_local + nx) % nx && to[1] == local.lo[1] + y && to[2] == 0);
            for (int c = 0; c < 2; ++c) cells[(y + 1) * width + x_local + 1][c] = (short)(100 * to[1] + 2 * to[0] + c);
        }
    for (int i = 0; i < nx * rows && world_rank == root; ++i)
        for (int c = 0; c < 2; ++c) expected[i][c] = (short)(100 * (i / nx) + 2 * (i % nx) + c);
    OK(MPIX_Halo_gather(grid, &field, world_rank == root ? all : NULL, root));
    CHECK(memcmp(all, expected, sizeof all) == 0);
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

void checkpoints(void) {
    static short cells[(nx + 2) * (ny + 2)][2], expected[(nx + 2) * (ny + 2)][2];
    char path[40];
    int radius[MPIX_HALO_DIRECTIONS];
    int64_t step = -1;
    MPIX_Halo_box local;
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_named_field field = {.name = "velocity"};
    OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field.field));
    field.field.layout.components = 2;
    field.field.layout.interleaved = 1;
    memset(cells, poison, sizeof cells);
    memset(expected, poison, sizeof expected);
    for (int64_t y = local.lo[1]; y < local.hi[1]; ++y)
        for (int64_t x = local.lo[0]; x < local.hi[0]; ++x)
            for (int c = 0; c < 2; ++c) {
                const int64_t at = (y - local.lo[1] + 1) * (local.hi[0] - local.lo[0] + 2) + x - local.lo[0] + 1;
                expected[at][c] = cells[at][c] = (short)(100 * y + 2 * x + c);
            }
    snprintf(path, sizeof path, "c_interface.np%d.checkpoint", world_size);
    OK(MPIX_Halo_write_checkpoint(grid, path, 1, &field, 77));
    memset(cells, poison, sizeof cells);
    OK(MPIX_Halo_read_checkpoint(grid, path, 1, &field, &step));
    CHECK(step == 77);
    CHECK(memcmp(cells, expected, sizeof cells) == 0);
    OK(MPIX_Halo_write_checkpoint(grid, path, 0, NULL, 78));
    OK(MPIX_Halo_read_checkpoint(grid, path, 0, NULL, NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) remove(path);
    OK(MPIX_Halo_grid_free(&grid));
}

// The place in the list, and that each rank has a file; halo.vti compares all bytes.
void vtk_files(void) {
    static double cells[nx * ny];
    char path[40], piece[40], list[4000] = "";
    int radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_named_field field = {.name = "u"};
    const MPIX_Halo_vti_options options = {.origin = {1.5, 0, -2}, .spacing = {0, 0.25, 0}};
    OK(MPIX_Halo_radius_all(0, radius));
    OK(MPIX_Halo_field_init(cells, MPI_DOUBLE, radius, &field.field));
    snprintf(path, sizeof path, "c_interface.np%d.pvti", world_size);
    snprintf(piece, sizeof piece, "c_interface.np%d_%d.vti", world_size, world_rank);
    for (int with_options = 0; with_options < 2; ++with_options) {
        OK(MPIX_Halo_write_vti(grid, path, 1, &field, with_options ? &options : NULL));
        FILE *const file = fopen(path, "r");
        CHECK(file != NULL && fread(list, 1, sizeof list - 1, file) > 0);
        fclose(file);
        CHECK(strstr(list, with_options ? "Origin=\"1.5 0 -2\" Spacing=\"1 0.25 1\""
                                        : "Origin=\"0 0 0\" Spacing=\"1 1 1\"") != NULL);
        CHECK(strstr(list, piece) != NULL);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(remove(piece) == 0);
    CHECK(world_rank != 0 || remove(path) == 0);
    OK(MPIX_Halo_grid_free(&grid));
}

// That there is a picture; halo.png compares all pixels.
void pictures(void) {
    static double cells[nx * ny];
    char path[40];
    int radius[MPIX_HALO_DIRECTIONS];
    unsigned char head[24] = {0};
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field;
    const MPIX_Halo_slice row = {.axis = 1, .at = 3, .high = 1, .colors = MPIX_HALO_BLUE_RED};
    OK(MPIX_Halo_radius_all(0, radius));
    OK(MPIX_Halo_field_init(cells, MPI_DOUBLE, radius, &field));
    snprintf(path, sizeof path, "c_interface.np%d.png", world_size);
    for (int one_row = 0; one_row < 2; ++one_row) {
        const int code = MPIX_Halo_write_png(grid, path, &field, one_row ? &row : NULL);
        if (code == MPI_ERR_UNSUPPORTED_OPERATION) break;  // without libpng
        OK(code);
        FILE *const file = fopen(path, "rb");
        CHECK(file != NULL && fread(head, 1, sizeof head, file) == sizeof head);
        fclose(file);
        CHECK(memcmp(head + 1, "PNG", 3) == 0 && head[19] == nx && head[23] == (one_row ? 1 : ny));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(world_rank != 0 || remove(path) == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPIX_Halo_grid_free(&grid));
}
