// SPDX-License-Identifier: BSD-3-Clause
#include "host/info/foreign_launcher.h"

#include <mpi.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host/format.h"

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

// If the launcher belongs to the other MPI library, each process is rank 0 of 1. That launcher sets the number of
// processes in the environment.
static std::string foreign_launcher() {
#if defined(OPEN_MPI)
    constexpr const char *ranks = "PMI_SIZE", *launcher = "MPICH";
#else
    constexpr const char *ranks = "OMPI_COMM_WORLD_SIZE", *launcher = "Open MPI";
#endif
    const char *const started = std::getenv(ranks);
    int n = 0;
    if (started == nullptr || std::from_chars(started, started + std::strlen(started), n).ec != std::errc{} || n < 2)
        return {};
    return format(
        "{} processes were started by the launcher of another MPI library ({}), so each is alone; this mpix_info "
        "was built for {}; start it with the mpirun of that library",
        n, launcher, built_for());
}

void tell_too_few_ranks(const char *argument) {
    const std::string foreign = foreign_launcher();
    std::fprintf(stderr, "mpix_info: %s\n",
                 foreign.empty()
                     ? format("{} needs at least two ranks: mpirun -n 2 mpix_info {}", argument, argument).c_str()
                     : foreign.c_str());
}

}  // namespace mpix
