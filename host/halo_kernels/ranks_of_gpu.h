// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that share a GPU: their kernels share its multiprocessors.
#ifndef MPIX_HOST_HALO_KERNELS_RANKS_OF_GPU_H
#define MPIX_HOST_HALO_KERNELS_RANKS_OF_GPU_H

#include "host/halo/grid_state.h"
#include "transport/select.h"

namespace mpix::halo {

// The number of ranks of the grid, this one included, whose fields are in the memory of this rank's GPU; 1 for host
// memory. If CUDA does not tell their ids, all such ranks of the node are counted. Collective. Throws error.
int count_ranks_of_gpu(const grid_state &g, const transport::placement &where);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_RANKS_OF_GPU_H
