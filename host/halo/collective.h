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

// An argument that all ranks give alike.
struct argument {
    std::string name;
    std::vector<std::int64_t> values;
};

// Throws error on all ranks, with the sentence of the lowest rank that has failed, if any has; or else of the lowest rank
// whose arguments are not those of rank 0. `where` is the function. Collective: one reduction, if all is well.
void check_collectively(MPI_Comm comm, const char *where, const status &mine,
                        const std::vector<argument> &arguments = {});

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_COLLECTIVE_H
