// SPDX-License-Identifier: BSD-3-Clause
//
// <mpix/halo.h>: each wrong argument is named, on all ranks where the function is collective; and the error handler.
#include <limits.h>
#include <stdio.h>

#include <mpix/halo_gpu.h>

#include "tests/errors/expect.h"
#include "tests/halo/c/errors.h"

MPIX_Halo_grid plane(void) {
    const int64_t extent[] = {nx, ny};
    MPIX_Halo_grid grid = MPIX_HALO_GRID_NULL;
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 2, extent, NULL, &grid));
    return grid;
}

#define GRID_REFUSED(error_class, words, dimensions, extent)                                                    \
    do {                                                                                                        \
        grid = (MPIX_Halo_grid)&options;                                                                        \
        EXPECT(error_class, words, MPIX_Halo_grid_create(MPI_COMM_WORLD, dimensions, extent, &options, &grid)); \
        CHECK(grid == MPIX_HALO_GRID_NULL);                                                                     \
        options = (MPIX_Halo_grid_options){0};                                                                  \
    } while (0)

static void wrong_grids(void) {
    const int last = world_size - 1;
    char words[80];
    int64_t extent[] = {16, 16, 16};
    const double bandwidth[] = {1, 1, 1};
    MPIX_Halo_grid_options options = {0};
    MPIX_Halo_grid grid;
    EXPECT(MPI_ERR_COMM, "comm is MPI_COMM_NULL", MPIX_Halo_grid_create(MPI_COMM_NULL, 2, extent, NULL, &grid));
    EXPECT(MPI_ERR_ARG, "rank 0: grid is null", MPIX_Halo_grid_create(MPI_COMM_WORLD, 2, extent, NULL, NULL));
    GRID_REFUSED(MPI_ERR_DIMS, "rank 0: dimensions is 4; it is 1 to 3", 4, extent);
    GRID_REFUSED(MPI_ERR_DIMS, "rank 0: dimensions is -1;", -1, extent);
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: extent is null", 2, NULL);
    options.shortest[0] = -2;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.shortest[0] is -2; it is at least 1", 2, extent);
    options.periodic[2] = 1;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.periodic[2]: the domain has 2 axes", 2, extent);
    options.links.entries = 3;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.links.within_node is null, and has 3 entries", 2, extent);
    options.links.within_node = bandwidth;
    options.links.entries = 3;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.links.within_node has 3 entries", 2, extent);
    options.box_count = 2;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.box_count is 2, and options.boxes is null", 2, extent);
    options.owners = &world_rank;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.owners are those of options.boxes, which is null", 2, extent);
    options.boxes_per_rank = -1;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.boxes_per_rank is -1; it is at least 1", 2, extent);
    options.links.entries = -1;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.links.entries is -1; it is at least 0", 2, extent);
    // One rank alone.
    snprintf(words, sizeof words, "rank %d: extent[1] is 0; it is at least 1", last);
    if (world_rank == last) extent[1] = 0;
    GRID_REFUSED(MPI_ERR_DIMS, words, 2, extent);
    extent[1] = 16;
    snprintf(words, sizeof words, "rank %d: extent is null", last);
    GRID_REFUSED(MPI_ERR_ARG, words, 2, world_rank == last ? NULL : extent);

    int64_t cell[] = {16, 0, 0};
    int rank = 0, count = 0;
    MPIX_Halo_box box;
    int radius[MPIX_HALO_DIRECTIONS], deep[MPIX_HALO_DIRECTIONS];
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_grid_free(NULL));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_grid_box(MPIX_HALO_GRID_NULL, 0, &box, NULL));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_grid_get(MPIX_HALO_GRID_NULL, &rank, NULL, NULL, NULL, NULL, NULL));
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 2, extent, NULL, &grid));
    EXPECT(MPI_ERR_ARG, "number is -1; there are", MPIX_Halo_grid_box(grid, -1, &box, NULL));
    EXPECT(MPI_ERR_ARG, "box is null", MPIX_Halo_grid_box(grid, 0, NULL, NULL));
    EXPECT(MPI_ERR_ARG, "[16, 0, 0] is not in the domain", MPIX_Halo_grid_owner(grid, cell, &rank));
    EXPECT(MPI_ERR_ARG, "cell is null", MPIX_Halo_grid_owner(grid, NULL, &rank));
    EXPECT(MPI_ERR_ARG, "rank is null", MPIX_Halo_grid_owner(grid, cell, NULL));
    EXPECT(MPI_ERR_ARG, "direction is 13; it is 0 to 26, and not 13",
           MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(0, 0, 0), 1, 1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "direction is 27;", MPIX_Halo_grid_neighbours(grid, 27, 1, 1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "direction is 4 (-z); the domain has 2 axes",
           MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(0, 0, -1), 1, 1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "depth is -1; it is at least 0", MPIX_Halo_grid_neighbours(grid, 14, -1, 1, &rank, &count));
    EXPECT(MPI_ERR_COUNT, "size is -1; it is at least 0", MPIX_Halo_grid_neighbours(grid, 14, 1, -1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "ranks is null", MPIX_Halo_grid_neighbours(grid, 14, 1, 1, NULL, &count));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_grid_neighbours(grid, 14, 1, 1, &rank, NULL));
    OK(MPIX_Halo_radius_all(1, radius));
    EXPECT(MPI_ERR_ARG, "every is 0; it is at least 1", MPIX_Halo_deep_radius(grid, radius, 0, deep));
    EXPECT(MPI_ERR_ARG, "stencil is null", MPIX_Halo_deep_radius(grid, NULL, 2, deep));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_deep_radius(grid, radius, 2, NULL));
    EXPECT(MPI_ERR_ARG, "steps is 3; it is 0 to 2", MPIX_Halo_deep_valid(grid, 0, radius, 2, 3, NULL, &box));
    EXPECT(MPI_ERR_ARG, "box is null", MPIX_Halo_deep_valid(grid, 0, radius, 2, 1, NULL, NULL));
    EXPECT(MPI_ERR_ARG, "i is 1; this rank has 1 boxes", MPIX_Halo_deep_valid(grid, 1, radius, 2, 1, NULL, &box));
    EXPECT(MPI_ERR_ARG, "i is -1; this rank has 1 boxes", MPIX_Halo_global_index(grid, -1, cell, cell));
    EXPECT(MPI_ERR_COUNT, "size is -1; it is at least 0", MPIX_Halo_grid_boxes(grid, -1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "numbers is null", MPIX_Halo_grid_boxes(grid, 1, NULL, &count));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_grid_boxes(grid, 1, &rank, NULL));
    const int missing[] = {0, 0, 1};
    EXPECT(MPI_ERR_ARG, "staggered[2]: the domain has 2 axes",
           MPIX_Halo_deep_valid(grid, 0, radius, 2, 1, missing, &box));
    EXPECT(MPI_ERR_ARG, "staggered[2]: the domain has 2 axes", MPIX_Halo_points(grid, &box, missing, &box));
    EXPECT(MPI_ERR_ARG, "cells is null", MPIX_Halo_points(grid, NULL, missing, &box));
    EXPECT(MPI_ERR_ARG, "staggered is null", MPIX_Halo_points(grid, &box, NULL, &box));
    EXPECT(MPI_ERR_ARG, "points is null", MPIX_Halo_points(grid, &box, missing, NULL));
    OK(MPIX_Halo_grid_free(&grid));
    EXPECT(MPI_ERR_ARG, "outer is null", MPIX_Halo_difference(NULL, &box, &box, &count));
    EXPECT(MPI_ERR_ARG, "inner is null", MPIX_Halo_difference(&box, NULL, &box, &count));
    EXPECT(MPI_ERR_ARG, "boxes is null", MPIX_Halo_difference(&box, &box, NULL, &count));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_difference(&box, &box, &box, NULL));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_radius_all(1, NULL));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_radius_faces(1, NULL));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPIX_Halo_radius_of(-1, &rank, &rank));
    EXPECT(MPI_ERR_ARG, "offsets is null", MPIX_Halo_radius_of(1, NULL, &rank));
    const int far[] = {1, 0, 0, 0, INT_MIN, 0}, farthest[] = {-INT_MAX, 0, INT_MAX};
    EXPECT(MPI_ERR_ARG, "a number of an offset is -2147483648; it is at least -2147483647",
           MPIX_Halo_radius_of(2, far, radius));
    OK(MPIX_Halo_radius_of(1, farthest, radius));
    CHECK(radius[MPIX_HALO_DIRECTION(-1, 0, 1)] == INT_MAX);
}

static void wrong_exchanges(void) {
    static double values[2][(nx + 2) * (ny + 2)];
    const int last = world_size - 1;
    const MPI_Datatype none = MPI_DATATYPE_NULL;
    int radius[MPIX_HALO_DIRECTIONS];
    char words[100];
    MPI_Datatype with_gaps;
    MPIX_Halo_field good, field;
    MPIX_Halo_exchange x;
    MPIX_Halo_grid grid = plane();
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &with_gaps));
    OK(MPI_Type_commit(&with_gaps));
    OK(MPIX_Halo_radius_all(1, radius));
    EXPECT(MPI_ERR_ARG, "field is null", MPIX_Halo_field_init(values, MPI_DOUBLE, radius, NULL));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_field_init(values, MPI_DOUBLE, NULL, &good));
    OK(MPIX_Halo_field_init(values[0], MPI_DOUBLE, radius, &good));
    field = good;

    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_exchange_create(MPIX_HALO_GRID_NULL, 1, &good, 0, &x));
    EXPECT(MPI_ERR_ARG, "rank 0: exchange is null", MPIX_Halo_exchange_create(grid, 1, &good, 0, NULL));
    EXCHANGE_REFUSED(MPI_ERR_COUNT, "rank 0: count is -1; it is at least 0", -1, &good, 0);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields is null", 1, NULL, 0);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: transfer is 4; it is 0 (packed), 1 (datatype), 2 (plain) or 3 (automatic)",
                     1, &good, 4);
    field.data = NULL;
    EXCHANGE_REFUSED(MPI_ERR_BUFFER, "rank 0: fields[0].data is null", 1, &field, 0);
    field.type = none;
    EXCHANGE_REFUSED(MPI_ERR_TYPE, "rank 0: fields[0].type is MPI_DATATYPE_NULL", 1, &field, 0);
    field.type = with_gaps;
    EXCHANGE_REFUSED(MPI_ERR_TYPE, "rank 0: fields[0].type has 4 bytes, and an extent of 12", 1, &field, 0);
    field.radius[MPIX_HALO_DIRECTION(1, 1, 0)] = -1;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].radius is -1 in direction +x+y; it is at least 0", 1, &field, 0);
    field.layout.components = 0;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.components is 0; it is at least 1", 1, &field, 0);
    field.layout.above[1] = 0;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.above[1] is 0; the radius needs 1", 1, &field, 0);
    field.layout.staggered[2] = 1;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.staggered[2]: the domain has 2 axes", 1, &field, 0);
    field.layout.row_bytes = 8;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.row_bytes is 8; its cells take", 1, &field, 0);
    field.layout.plane_bytes = -8;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.plane_bytes is -8; it is at least 0", 1, &field, 0);
    field.allocated = -1;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].allocated is -1; it is at least 0", 1, &field, 0);
    field.allocation_count = 1;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].allocation_count is 1, and allocations is null", 1, &field, 0);
    MPIX_Halo_allocation several[] = {{values[0], NULL, -1}, {values[1], NULL, 0}};
    field.allocations = several;
    field.allocation_count = 2;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].allocations[0].allocated is -1; it is at least 0", 1, &field, 0);
    several[0].allocated = 0;
    field.allocations = several;
    field.allocation_count = 2;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].allocations has 2 entries; this rank has 1 boxes", 1, &field, 0);
    several[0].data = NULL;
    field.allocations = several;
    field.allocation_count = 1;
    EXCHANGE_REFUSED(MPI_ERR_BUFFER, "rank 0: fields[0].allocations[0].data is null", 1, &field, 0);
    int64_t bytes = 0;
    OK(MPIX_Halo_field_bytes(grid, 0, &good, &bytes));
    CHECK(world_size > 1 || bytes == sizeof values[0]);
    field.allocated = bytes - 1;
    EXCHANGE_REFUSED(MPI_ERR_BUFFER, "rank 0: fields[0].allocated is ", 1, &field, 0);
    field.allocated = bytes;
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_exchange_free(&x));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_field_bytes(MPIX_HALO_GRID_NULL, 0, &good, &bytes));
    EXPECT(MPI_ERR_ARG, "field is null", MPIX_Halo_field_bytes(grid, 0, NULL, &bytes));
    EXPECT(MPI_ERR_ARG, "bytes is null", MPIX_Halo_field_bytes(grid, 0, &good, NULL));
    field.type = none;
    EXPECT(MPI_ERR_TYPE, "field.type is MPI_DATATYPE_NULL", MPIX_Halo_field_bytes(grid, 0, &field, &bytes));
    field = good;
    const MPIX_Halo_field twice[] = {good, good};
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[1].data overlaps fields[0].data", 2, twice, 0);
    // One rank alone.
    snprintf(words, sizeof words, "rank %d: fields[0].type is MPI_DATATYPE_NULL", last);
    if (world_rank == last) field.type = none;
    EXCHANGE_REFUSED(MPI_ERR_TYPE, words, 1, &field, 0);
    if (world_size > 1) {
        snprintf(words, sizeof words, "rank %d: fields[0]: values have 4 bytes here, and 8 on rank 0", last);
        if (world_rank == last) field.type = MPI_FLOAT;
        EXCHANGE_REFUSED(MPI_ERR_ARG, words, 1, &field, 0);
    }

    EXPECT(MPI_ERR_OP, "rank 0: op is not MPI_SUM, MPI_MIN or MPI_MAX",
           MPIX_Halo_reverse_create(grid, 1, &good, MPI_PROD, &x));
    CHECK(x == MPIX_HALO_EXCHANGE_NULL);
    field.type = MPI_BYTE;
    EXPECT(MPI_ERR_TYPE, "rank 0: fields[0].type has no arithmetic; a reverse exchange needs integers or real numbers",
           MPIX_Halo_reverse_create(grid, 1, &field, MPI_SUM, &x));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_reverse_create(MPIX_HALO_GRID_NULL, 1, &good, MPI_SUM, &x));

    int flag = 0;
    MPIX_Halo_box box;
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_start(MPIX_HALO_EXCHANGE_NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_ready(0, MPIX_HALO_EXCHANGE_NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_interior(0, MPIX_HALO_EXCHANGE_NULL, &box));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_exchange_free(NULL));
    OK(MPIX_Halo_exchange_create(grid, 1, &good, MPIX_HALO_PACKED, &x));
    EXPECT(MPI_ERR_ARG, "flag is null", MPIX_Halo_active(x, NULL));
    EXPECT(MPI_ERR_ARG, "box is null", MPIX_Halo_interior(0, x, NULL));
    EXPECT(MPI_ERR_ARG, "boxes is null", MPIX_Halo_boundary(0, x, NULL, &flag));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_boundary(0, x, &box, NULL));
    EXPECT(MPI_ERR_REQUEST, "the exchange is not active; start it first", MPIX_Halo_finish(x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is not active; begin it first", MPIX_Halo_ready(0, x));
    EXPECT(MPI_ERR_ARG, "field 0 has no second allocation", MPIX_Halo_swap(0, x));
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_swap(1, x));
    void *data = NULL;
    OK(MPIX_Halo_data(0, 0, x, &data));
    CHECK(data == good.data);
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_data(1, 0, x, &data));
    EXPECT(MPI_ERR_ARG, "data is null", MPIX_Halo_data(0, 0, x, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_data(0, 0, MPIX_HALO_EXCHANGE_NULL, &data));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_swap(0, MPIX_HALO_EXCHANGE_NULL));
    OK(MPIX_Halo_begin(x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_begin(x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_start(x));
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_ready(1, x));
    EXPECT(MPI_ERR_REQUEST, "field 0 is not ready", MPIX_Halo_finish(x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_ready(0, x));
    EXPECT(MPI_ERR_REQUEST, "field 0 is ready already", MPIX_Halo_ready(0, x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
    OK(MPI_Type_free(&with_gaps));
}

static void wrong_files(void) {
    static double values[(nx + 2) * (ny + 2)];
    int radius[MPIX_HALO_DIRECTIONS];
    char words[100];
    int64_t step = 5;
    MPIX_Halo_grid grid = plane();
    OK(MPIX_Halo_radius_all(1, radius));
    MPIX_Halo_named_field field = {.name = "u"};
    OK(MPIX_Halo_field_init(values, MPI_DOUBLE, radius, &field.field));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_write_checkpoint(MPIX_HALO_GRID_NULL, "a", 1, &field, 0));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_read_checkpoint(MPIX_HALO_GRID_NULL, "a", 1, &field, &step));
    EXPECT(MPI_ERR_ARG, "rank 0: path is null", MPIX_Halo_write_checkpoint(grid, NULL, 1, &field, 0));
    EXPECT(MPI_ERR_ARG, "rank 0: path is empty", MPIX_Halo_read_checkpoint(grid, "", 1, &field, &step));
    EXPECT(MPI_ERR_COUNT, "rank 0: count is -1; it is at least 0",
           MPIX_Halo_write_checkpoint(grid, "a", -1, &field, 0));
    EXPECT(MPI_ERR_ARG, "rank 0: fields is null", MPIX_Halo_read_checkpoint(grid, "a", 1, NULL, &step));
    EXPECT(MPI_ERR_NO_SUCH_FILE, "rank 0: none/a: open: No such file or directory",
           MPIX_Halo_read_checkpoint(grid, "none/a", 1, &field, &step));
    EXPECT(MPI_ERR_NO_SUCH_FILE, "rank 0: none/a.partial: create: No such file or directory",
           MPIX_Halo_write_checkpoint(grid, "none/a", 1, &field, 0));
    field.name = NULL;
    EXPECT(MPI_ERR_ARG, "rank 0: fields[0].name is null", MPIX_Halo_write_checkpoint(grid, "a", 1, &field, 0));
    field.name = "u";
    snprintf(words, sizeof words, "rank %d: fields[0].field.type is MPI_DATATYPE_NULL", world_size - 1);
    if (world_rank == world_size - 1) field.field.type = MPI_DATATYPE_NULL;
    EXPECT(MPI_ERR_TYPE, words, MPIX_Halo_write_checkpoint(grid, "a", 1, &field, 0));
    EXPECT(MPI_ERR_TYPE, words, MPIX_Halo_read_checkpoint(grid, "a", 1, &field, &step));
    CHECK(step == 5);
    EXPECT(MPI_ERR_TYPE, words, MPIX_Halo_write_vti(grid, "a.pvti", 1, &field, NULL));
    field.field.type = MPI_BYTE;
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_write_vti(MPIX_HALO_GRID_NULL, "a.pvti", 1, &field, NULL));
    EXPECT(MPI_ERR_ARG, "rank 0: path is null", MPIX_Halo_write_vti(grid, NULL, 1, &field, NULL));
    EXPECT(MPI_ERR_ARG, "rank 0: path is a.vti; it ends in .pvti", MPIX_Halo_write_vti(grid, "a.vti", 1, &field, NULL));
    EXPECT(MPI_ERR_TYPE, "rank 0: fields[0].field.type is bytes; VTK has integers",
           MPIX_Halo_write_vti(grid, "a.pvti", 1, &field, NULL));
    MPIX_Halo_vti_options options = {{0}, {0}};
    options.spacing[1] = -1;
    EXPECT(MPI_ERR_ARG, "rank 0: options.spacing[1] is -1; it is above 0 and finite",
           MPIX_Halo_write_vti(grid, "a.pvti", 1, &field, &options));

    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_write_png(MPIX_HALO_GRID_NULL, "a.png", &field.field, NULL));
    EXPECT(MPI_ERR_ARG, "rank 0: path is null", MPIX_Halo_write_png(grid, NULL, &field.field, NULL));
    EXPECT(MPI_ERR_ARG, "rank 0: from is null", MPIX_Halo_write_png(grid, "a.png", NULL, NULL));
    field.field.type = MPI_DATATYPE_NULL;
    EXPECT(MPI_ERR_TYPE, "rank 0: from.type is MPI_DATATYPE_NULL",
           MPIX_Halo_write_png(grid, "a.png", &field.field, NULL));
    field.field.type = MPI_DOUBLE;
    const MPIX_Halo_slice outside = {.axis = 1, .at = ny};
    const int code = MPIX_Halo_write_png(grid, "a.png", &field.field, &outside);
    CHECK(code == MPI_ERR_ARG || code == MPI_ERR_UNSUPPORTED_OPERATION);  // without libpng
    if (code == MPI_ERR_ARG)
        EXPECT(MPI_ERR_ARG, "rank 0: shown.at is 7; it is 0 to 6",
               MPIX_Halo_write_png(grid, "a.png", &field.field, &outside));
    OK(MPIX_Halo_grid_free(&grid));
}

static void wrong_gathers(void) {
    static short cells[(nx + 2) * (ny + 2)], all[nx * ny];
    int radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field));
    EXPECT(MPI_ERR_ROOT, "rank 0: root is -1; there are", MPIX_Halo_gather(grid, &field, all, -1));
    EXPECT(MPI_ERR_ARG, "rank 0: from is null", MPIX_Halo_gather(grid, NULL, all, 0));
    EXPECT(MPI_ERR_BUFFER, "rank 0: global is null", MPIX_Halo_gather(grid, &field, NULL, 0));
    field.type = MPI_DATATYPE_NULL;
    EXPECT(MPI_ERR_TYPE, "rank 0: from.type is MPI_DATATYPE_NULL", MPIX_Halo_gather(grid, &field, all, 0));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_gather(MPIX_HALO_GRID_NULL, &field, all, 0));
    int64_t cell[3] = {0, 0, 0};
    EXPECT(MPI_ERR_ARG, "local is null", MPIX_Halo_global_index(grid, 0, NULL, cell));
    EXPECT(MPI_ERR_ARG, "global is null", MPIX_Halo_global_index(grid, 0, cell, NULL));
    OK(MPIX_Halo_grid_free(&grid));
}

// ---- reports -------------------------------------------------------------------------------------------

static void wrong_reports(void) {
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_exchange x;
    char text[10];
    double seconds[3];
    int fastest;
    OK(MPIX_Halo_exchange_create(grid, 0, NULL, MPIX_HALO_PACKED, &x));
    EXPECT(MPI_ERR_ARG, "text is null", MPIX_Halo_report(x, NULL, 10));
    EXPECT(MPI_ERR_ARG, "size is 0; it is at least 1", MPIX_Halo_report(x, text, 0));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_report(MPIX_HALO_EXCHANGE_NULL, text, 10));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_measure(1, MPIX_HALO_EXCHANGE_NULL));
    OK(MPIX_Halo_start(x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_report(x, text, 10));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_measure(1, x));
    OK(MPIX_Halo_finish(x));
    MPIX_Halo_step_report report;
    EXPECT(MPI_ERR_ARG, "rank 0: report is null", MPIX_Halo_step_report_create(grid, 1, 0, NULL));
    EXPECT(MPI_ERR_ARG, "rank 0: options.steps is -1; it is at least 0",
           MPIX_Halo_step_report_create(grid, -1, 0, &report));
    CHECK(report == MPIX_HALO_STEP_REPORT_NULL);
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_step_report_create(MPIX_HALO_GRID_NULL, 1, 0, &report));
    EXPECT(MPI_ERR_ARG, "report is null", MPIX_Halo_step_report_done(1, MPIX_HALO_STEP_REPORT_NULL));
    EXPECT(MPI_ERR_ARG, "report is null", MPIX_Halo_step_report_free(NULL));
    OK(MPIX_Halo_step_report_create(grid, 1, 0, &report));
    EXPECT(MPI_ERR_ARG, "steps is -1; it is at least 0", MPIX_Halo_step_report_done(-1, report));
    OK(MPIX_Halo_step_report_free(&report));
    EXPECT(MPI_ERR_ARG, "rank 0: exchanges is 0; it is at least 1",
           MPIX_Halo_compare_transfers(grid, 0, NULL, 0, seconds, &fastest));
    EXPECT(MPI_ERR_ARG, "rank 0: seconds is null", MPIX_Halo_compare_transfers(grid, 0, NULL, 1, NULL, &fastest));
    EXPECT(MPI_ERR_ARG, "rank 0: fastest is null", MPIX_Halo_compare_transfers(grid, 0, NULL, 1, seconds, NULL));
    EXPECT(MPI_ERR_COUNT, "rank 0: count is -1; it is at least 0",
           MPIX_Halo_compare_transfers(grid, -1, NULL, 1, seconds, &fastest));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

// ---- error handlers ------------------------------------------------------------------------------------

static int handled;

static void count_error(MPI_Comm *comm, int *code, ...) {
    int size = 0;
    MPI_Comm_size(*comm, &size);
    handled += *code == MPI_ERR_REQUEST || *code == MPI_ERR_ARG;
}

// Of the communicator, also when that has been freed.
static void handlers(void) {
    const int64_t extent[] = {4 * world_size};
    MPI_Comm comm;
    MPI_Errhandler counts;
    MPIX_Halo_grid grid;
    MPIX_Halo_exchange x;
    MPIX_Halo_box box;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(count_error, &counts));
    OK(MPI_Comm_set_errhandler(comm, counts));
    OK(MPIX_Halo_grid_create(comm, 1, extent, NULL, &grid));
    OK(MPI_Errhandler_free(&counts));
    OK(MPI_Comm_free(&comm));
    OK(MPIX_Halo_exchange_create(grid, 0, NULL, MPIX_HALO_PACKED, &x));
    EXPECT(MPI_ERR_ARG, "number is", MPIX_Halo_grid_box(grid, world_size, &box, NULL));
    OK(MPIX_Halo_grid_free(&grid));
    EXPECT(MPI_ERR_REQUEST, "the exchange is not active; start it first", MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    CHECK(handled == 2);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"wrong grids", 1, wrong_grids},
        {"wrong exchanges", 1, wrong_exchanges},
        {"wrong stream exchanges", 1, wrong_stream_exchanges},
        {"wrong ghosts", 1, wrong_ghosts},
        {"wrong node messages", 1, wrong_node_messages},
        {"wrong gathers", 1, wrong_gathers},
        {"wrong files", 1, wrong_files},
        {"wrong reports", 1, wrong_reports},
        {"the communicator's error handler", 1, handlers},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
