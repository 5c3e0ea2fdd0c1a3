// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_HOST_HALO_C_GRID_H
#define MPIX_HOST_HALO_C_GRID_H

#include <mpi.h>

#include <cstdint>

#include <mpix/halo.h>

#include "transport/status.h"

namespace mpix::halo {

// As MPIX_Halo_grid_create. `bad`: an error found by the caller; the call then fails with it on all ranks.
int create_grid(MPI_Comm comm, int dimensions, const int64_t extent[], const MPIX_Halo_grid_options *options,
                status bad, MPIX_Halo_grid *grid);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_C_GRID_H
