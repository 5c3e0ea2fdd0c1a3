// SPDX-License-Identifier: BSD-3-Clause
//
// A kernel in C++ for a program in C: host threads play it. Each has its own name for the kernel's argument.
#ifndef MPIX_TESTS_HALO_C_PLAYER_H
#define MPIX_TESTS_HALO_C_PLAYER_H

#include <stdint.h>

#include <mpix/halo_gpu.h>

#ifdef __cplusplus
#include <mpix/halo.cuh>

using kernel_argument = mpix::halo::device_exchange;
extern "C" {
#else
typedef MPIX_Halo_device_exchange kernel_argument;
#endif

// What the kernel computes: by one thread for a tile, or for all of them.
struct computation {
    int fields;
    // The cells of a tile, which exchange `step` sends.
    void (*fill)(int field, void *values, MPIX_Halo_box tile, int64_t step);
    // All ghost cells of exchange `step` are there.
    void (*look)(int field, void *values, int64_t step);
};

// All steps of an activation, and the cells that a next one would send. By so many groups; waiting for tiles, or for
// boxes.
// Returns MPI_SUCCESS, or the error of some call.
int play_steps(kernel_argument x, struct computation what, int groups, int threads, int by_boxes);

#ifdef __cplusplus
}
#endif

#endif  // MPIX_TESTS_HALO_C_PLAYER_H
