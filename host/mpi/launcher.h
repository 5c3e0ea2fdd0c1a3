// SPDX-License-Identifier: BSD-3-Clause
//
// What the launcher says about the job, in the environment, before MPI_Init.
#ifndef MPIX_HOST_MPI_LAUNCHER_H
#define MPIX_HOST_MPI_LAUNCHER_H

#include <string>

namespace mpix {

// Whether all processes of the job run on one node. False also where the launcher does not say.
bool job_is_on_one_node();

// If the launcher of another MPI library has started several processes, each is alone, as rank 0 of 1. Returns a sentence that says
// so, without a full stop; otherwise an empty one.
std::string why_alone();
// Whether this process is the first of those that the other library's launcher has started.
bool is_first_of_foreign_launcher();

}  // namespace mpix

#endif  // MPIX_HOST_MPI_LAUNCHER_H
