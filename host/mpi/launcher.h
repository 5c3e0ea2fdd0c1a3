// SPDX-License-Identifier: BSD-3-Clause
//
// What the launcher says about the job, in the environment, before MPI_Init.
#ifndef MPIX_HOST_MPI_LAUNCHER_H
#define MPIX_HOST_MPI_LAUNCHER_H

namespace mpix {

// Whether all processes of the job run on one node. False also where the launcher does not say.
bool job_is_on_one_node();

}  // namespace mpix

#endif  // MPIX_HOST_MPI_LAUNCHER_H
