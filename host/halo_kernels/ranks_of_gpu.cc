// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/ranks_of_gpu.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "device/cuda/node_gpus.h"
#include "host/halo/collective.h"

namespace mpix::halo {

int count_ranks_of_gpu(const grid_state &g, const transport::placement &where) {
    using id = std::array<char, 16>;
    id mine{};
    if (where.owner != nullptr) {
        const std::string text = gpu::gpu_id(where.device);
        std::copy_n(text.begin(), std::min(text.size(), mine.size()), mine.begin());
    }
    std::vector<id> all(static_cast<std::size_t>(g.nodes.ranks()));
    demand(MPI_Allgather(mine.data(), sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, g.comm),
           "MPI_Allgather");
    if (where.owner == nullptr) return 1;
    const std::vector<int> &here = g.nodes.ranks_of(g.nodes.node_of(g.rank));
    return static_cast<int>(
        std::count_if(here.begin(), here.end(), [&](int rank) { return all[static_cast<std::size_t>(rank)] == mine; }));
}

}  // namespace mpix::halo
