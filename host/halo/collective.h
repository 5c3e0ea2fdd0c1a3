// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of collective functions: all ranks learn of one.
#ifndef MPIX_HOST_HALO_COLLECTIVE_H
#define MPIX_HOST_HALO_COLLECTIVE_H

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "transport/status.h"

namespace mpix::halo {

// Throws error, if an MPI call that returned `code` has failed.
void demand(int code, const char *call);

// Throws error on all ranks, with the sentence of the lowest rank that has failed, if any has. `where` is the function.
// Collective.
void throw_if_any_failed(MPI_Comm comm, const char *where, const status &mine);

// An argument that all ranks give alike.
struct argument {
    std::string name;
    std::vector<std::int64_t> values;
};
// A failure if this rank's differ from those of rank 0. Collective; all ranks have as many arguments.
status same_as_rank_0(MPI_Comm comm, const std::vector<argument> &mine);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_COLLECTIVE_H
