// SPDX-License-Identifier: BSD-3-Clause
//
// The tests of <mpix/halo.h>, for main, and the grids that they share.
#ifndef MPIX_TESTS_HALO_C_CASES_H
#define MPIX_TESTS_HALO_C_CASES_H

#include <stdint.h>

#include <mpix/halo.h>

enum { nx = 9, ny = 7, poison = 0xa5 };

MPIX_Halo_grid make_grid(int dimensions, const int64_t extent[], int periodic_x);
// Of nx * ny cells, periodic along x.
MPIX_Halo_grid plane(void);

void exchanges(void);
void reverse_exchanges(void);
void swaps(void);
void stream_exchanges(void);
void gathers(void);
void several_boxes(void);
void ghosts_in_messages(void);
void checkpoints(void);
void vtk_files(void);
void pictures(void);
void queries(void);

#endif  // MPIX_TESTS_HALO_C_CASES_H
