// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/launcher.h"

#include <mpi.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "host/format.h"

namespace mpix {
namespace {

// Where the other library's launcher says how many processes there are, and which one this is.
#if defined(OPEN_MPI)
constexpr const char *foreign_size = "PMI_SIZE", *foreign_rank = "PMI_RANK",
                     *foreign_name = "MPICH";  // or a library derived from it
#else
constexpr const char *foreign_size = "OMPI_COMM_WORLD_SIZE", *foreign_rank = "OMPI_COMM_WORLD_RANK",
                     *foreign_name = "Open MPI";
#endif

}  // namespace

bool job_is_on_one_node() {
    // How many processes the job has, and how many of them run on this node.
    struct variables {
        const char *processes, *here;
    };
    constexpr variables launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},  // mpirun of Open MPI
        {"PMI_SIZE", "MPI_LOCALNRANKS"},                         // Hydra, of MPICH and Intel MPI
        {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},    // MVAPICH
    };
    for (const variables &v : launchers) {
        const char *const processes = std::getenv(v.processes), *const here = std::getenv(v.here);
        if (processes != nullptr && here != nullptr) return std::string_view(processes) == here;
    }
    // srun without a launcher of the MPI library's.
    const char *const nodes = std::getenv("SLURM_STEP_NUM_NODES");
    return nodes != nullptr && std::string_view(nodes) == "1";
}

std::string why_alone() {
    const char *const started = std::getenv(foreign_size);
    int n = 0;
    if (started == nullptr || std::from_chars(started, started + std::strlen(started), n).ec != std::errc{} || n < 2)
        return {};
    return format("{} processes were started by the launcher of another MPI library ({}), so each is alone", n,
                  foreign_name);
}

bool is_first_of_foreign_launcher() {
    const char *const rank = std::getenv(foreign_rank);
    return rank == nullptr || std::string_view(rank) == "0";
}

}  // namespace mpix
