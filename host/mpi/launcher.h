// SPDX-License-Identifier: BSD-3-Clause
//
// What the launcher says about the job, in the environment, before MPI_Init.
#ifndef MPIX_HOST_MPI_LAUNCHER_H
#define MPIX_HOST_MPI_LAUNCHER_H

#include <string>

namespace mpix {

// Whether all processes of the job run on one node. False also where the launcher does not say.
bool job_is_on_one_node();

// If the launcher belongs to the other MPI library, each process is rank 0 of 1: a sentence without a full stop. Empty if the
// environment says nothing of that launcher, or of one process.
std::string foreign_launcher();
// Whether this process is the first of those that the other library's launcher has started.
bool is_first_of_foreign_launcher();

}  // namespace mpix

#endif  // MPIX_HOST_MPI_LAUNCHER_H
