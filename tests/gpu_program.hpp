// SPDX-License-Identifier: BSD-3-Clause
//
// For GPU tests without kernels of their own: what is needed first, and how they fail.
#ifndef MPIX_TESTS_GPU_PROGRAM_HPP
#define MPIX_TESTS_GPU_PROGRAM_HPP

#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

// The number of GPUs; without any the test is skipped. Before MPI_Init.
inline int demand_gpus() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 0) return devices;
    std::puts("skipped: no GPU");
    std::exit(77);
}

inline void require(bool good, const char *what, const char *why = "") {
    if (good) return;
    std::fprintf(stderr, "failed: %s %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#endif  // MPIX_TESTS_GPU_PROGRAM_HPP
