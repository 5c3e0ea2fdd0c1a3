// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that share a GPU: their kernels share its multiprocessors.
#ifndef MPIX_HOST_HALO_KERNELS_RANKS_OF_GPU_H
#define MPIX_HOST_HALO_KERNELS_RANKS_OF_GPU_H

#include "host/halo/grid_state.h"
#include "transport/select.h"

namespace mpix::halo {

// How many ranks of the grid have their fields in memory of the same GPU as this one; 1 for host memory. Collective.
// Throws error.
int count_ranks_of_gpu(const grid_state &g, const transport::placement &where);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_RANKS_OF_GPU_H
