// SPDX-License-Identifier: BSD-3-Clause
//
// <mpix/halo.h> from C.
#include <mpix/halo.h>

#include "tests/conformance/harness.h"
#include "tests/halo/c/cases.h"

MPIX_Halo_grid make_grid(int dimensions, const int64_t extent[], int periodic_x) {
    MPIX_Halo_grid_options options = {0};
    MPIX_Halo_grid grid = MPIX_HALO_GRID_NULL;
    options.periodic[0] = periodic_x;
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, dimensions, extent, &options, &grid));
    CHECK(grid != MPIX_HALO_GRID_NULL);
    return grid;
}

MPIX_Halo_grid plane(void) {
    const int64_t extent[] = {nx, ny};
    return make_grid(2, extent, 1);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"exchanges", 1, exchanges},
        {"reverse exchanges", 1, reverse_exchanges},
        {"swaps", 1, swaps},
        {"stream exchanges", 1, stream_exchanges},
        {"gathers", 1, gathers},
        {"several boxes", 1, several_boxes},
        {"ghosts in messages", 1, ghosts_in_messages},
        {"checkpoints", 1, checkpoints},
        {"files of VTK", 1, vtk_files},
        {"pictures", 1, pictures},
        {"queries", 1, queries},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
