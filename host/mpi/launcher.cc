// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/launcher.h"

#include <cstdlib>
#include <string_view>

namespace mpix {

bool job_is_on_one_node() {
    // How many processes the job has, and how many of them this node.
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

}  // namespace mpix
