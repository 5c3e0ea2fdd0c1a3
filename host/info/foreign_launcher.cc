// SPDX-License-Identifier: BSD-3-Clause
#include "host/info/foreign_launcher.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "host/format.h"
#include "host/mpi/launcher.h"

namespace mpix {

#if defined(OPEN_MPI)
std::string built_for() {
    return format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
}
#elif defined(MPI_ABI_VERSION)
std::string built_for() { return "MPI libraries of the standard ABI"; }
#elif defined(MPICH_VERSION)
std::string built_for() { return "MPICH " MPICH_VERSION; }
#else
std::string built_for() { return "another MPI library"; }
#endif

bool started_by_launcher() {
    for (const char *const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"})
        if (std::getenv(variable) != nullptr) return true;
    return false;
}

void tell_too_few_ranks(const char *argument) {
    const std::string foreign = why_alone();
    std::fprintf(stderr, "mpix_info: %s\n",
                 foreign.empty()
                     ? format("{} needs at least two ranks: mpirun -n 2 mpix_info {}", argument, argument).c_str()
                     : format("{}; this mpix_info was built for {}; start it with the mpirun of that library", foreign,
                              built_for())
                           .c_str());
}

}  // namespace mpix
