// SPDX-License-Identifier: BSD-3-Clause
//
// What the queries in C say of a grid and an exchange.
#include <stdio.h>
#include <string.h>

#include <mpix/halo.h>

#include "tests/conformance/harness.h"
#include "tests/halo/c/cases.h"

void queries(void) {
    const int64_t extent[] = {8 * world_size};
    MPIX_Halo_box slabs[8], box, sides[6];
    MPIX_Halo_grid_options options = {.periodic = {1, 0, 0}, .boxes = slabs};
    MPIX_Halo_grid grid;
    CHECK(world_size <= 8);
    for (int r = 0; r < world_size; ++r) slabs[r] = (MPIX_Halo_box){{8 * r, 0, 0}, {8 * r + 8, 1, 1}};
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 1, extent, &options, &grid));

    int dimensions = 0, periodic[3], rank = -1, ranks = -1, boxes = -1, count = -1, neighbours[8];
    int64_t all[3];
    OK(MPIX_Halo_grid_get(grid, &dimensions, all, periodic, &rank, &ranks, &boxes));
    CHECK(dimensions == 1 && all[0] == extent[0] && all[1] == 1 && all[2] == 1);
    CHECK(periodic[0] == 1 && periodic[1] == 0 && rank == world_rank && ranks == world_size);
    CHECK(boxes == world_size);
    OK(MPIX_Halo_grid_get(grid, NULL, NULL, NULL, NULL, NULL, NULL));
    for (int r = 0; r < world_size; ++r) {
        const int64_t cell[] = {8 * r + 3, 0, 0};
        OK(MPIX_Halo_grid_box(grid, r, &box, &rank));
        CHECK(memcmp(&box, &slabs[r], sizeof box) == 0 && rank == r);
        OK(MPIX_Halo_grid_owner(grid, cell, &rank));
        CHECK(rank == r);
    }
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(1, 0, 0), 8, 8, neighbours, &count));
    CHECK(count == 1 && neighbours[0] == right_rank);
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(-1, 0, 0), 1, 8, neighbours, &count));
    CHECK(count == 1 && neighbours[0] == left_rank);
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(-1, 0, 0), 0, 0, NULL, &count));
    CHECK(count == 0);
    neighbours[1] = -7;
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(1, 0, 0), 9, 1, neighbours, &count));
    CHECK(count == (world_size > 1 ? 2 : 1) && neighbours[1] == -7);

    int radius[MPIX_HALO_DIRECTIONS];
    const int reads[] = {1, 1, 0, -2, 0, 0};  // in one dimension: (1) and (-2)
    OK(MPIX_Halo_radius_of(2, reads, radius));
    CHECK(radius[MPIX_HALO_DIRECTION(1, 1, 0)] == 1 && radius[MPIX_HALO_DIRECTION(-1, 0, 0)] == 2);
    CHECK(radius[MPIX_HALO_DIRECTION(0, -1, 0)] == 0);

    int deep[MPIX_HALO_DIRECTIONS];
    OK(MPIX_Halo_deep_radius(grid, radius, 3, deep));
    CHECK(deep[MPIX_HALO_DIRECTION(1, 0, 0)] == 3 && deep[MPIX_HALO_DIRECTION(-1, 0, 0)] == 6);
    OK(MPIX_Halo_deep_valid(grid, 0, radius, 3, 1, NULL, &box));
    CHECK(box.lo[0] == 8 * world_rank - 4 && box.hi[0] == 8 * world_rank + 10 && box.lo[1] == 0 && box.hi[2] == 1);

    const MPIX_Halo_box outer = {{0, 0, 0}, {5, 4, 3}}, inner = {{1, 0, -9}, {5, 4, 2}};
    OK(MPIX_Halo_difference(&outer, &inner, sides, &count));
    CHECK(count == 2 && sides[0].lo[2] == 2 && sides[0].hi[0] == 5 && sides[1].hi[0] == 1 && sides[1].hi[2] == 2);

    double values[8 + 3];
    MPIX_Halo_field field;
    MPIX_Halo_exchange x;
    int messages = -1;
    int64_t bytes = -1;
    OK(MPIX_Halo_field_init(values, MPI_DOUBLE, radius, &field));
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_interior(0, x, &box));
    CHECK(box.lo[0] == 8 * world_rank + 2 && box.hi[0] == 8 * world_rank + 7);
    OK(MPIX_Halo_boundary(0, x, sides, &count));
    CHECK(count == 2 && sides[0].hi[0] == box.lo[0] && sides[1].lo[0] == box.hi[0]);
    OK(MPIX_Halo_sent(x, &messages, &bytes));
    CHECK(messages == (world_size > 2 ? 2 : world_size - 1) && bytes == (world_size > 1 ? 24 : 0));
    char text[2000], cut[9], wanted[64];
    OK(MPIX_Halo_measure(1, x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_report(x, text, sizeof text));
    snprintf(wanted, sizeof wanted, "mpix::halo::exchange, rank %d: packed, 1 finished, ", world_rank);
    CHECK(strncmp(text, wanted, strlen(wanted)) == 0);
    CHECK((strstr(text, ", there after ") != NULL) == (world_size > 1));
    OK(MPIX_Halo_measure(0, x));
    OK(MPIX_Halo_report(x, text, sizeof text));
    CHECK(strstr(text, "packed, 0 finished") != NULL);
    OK(MPIX_Halo_report(x, cut, sizeof cut));
    CHECK(strcmp(cut, "mpix::ha") == 0);
    double seconds[3] = {-1, -1, -1};
    int fastest = -1;
    OK(MPIX_Halo_compare_transfers(grid, 1, &field, 3, seconds, &fastest));
    CHECK(fastest >= 0 && fastest < 3);
    for (int how = 0; how < 3; ++how) CHECK(seconds[how] >= seconds[fastest] && seconds[fastest] > 0);
    MPIX_Halo_step_report report;
    OK(MPIX_Halo_step_report_create(grid, 100, bytes, &report));
    OK(MPIX_Halo_step_report_done(0, report));
    OK(MPIX_Halo_step_report_done(3, report));
    OK(MPIX_Halo_step_report_free(&report)); /* rank 0 prints a line */
    CHECK(report == MPIX_HALO_STEP_REPORT_NULL);
    OK(MPIX_Halo_step_report_free(&report));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_create(grid, 0, NULL, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
    OK(MPIX_Halo_grid_free(&grid));
}
