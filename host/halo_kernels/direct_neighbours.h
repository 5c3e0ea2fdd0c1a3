// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbours whose ghost cells the kernels of a stream exchange write straight, since this GPU maps their memory: nothing is packed,
// and nothing unpacked.
#ifndef MPIX_HOST_HALO_KERNELS_DIRECT_NEIGHBOURS_H
#define MPIX_HOST_HALO_KERNELS_DIRECT_NEIGHBOURS_H

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "device/halo/launch.h"
#include "host/halo_kernels/kernel_exchange_state.h"
#include "host/halo_tables/device_memory.h"
#include "transport/select.h"
#include "transport/transport.h"

namespace mpix::halo {

class direct_neighbours {
public:
    direct_neighbours() = default;
    direct_neighbours(const direct_neighbours &) = delete;
    direct_neighbours &operator=(const direct_neighbours &) = delete;
    // Before it no kernel of this rank, nor of the neighbours, may still run: see wait_for_neighbours().
    ~direct_neighbours();

    // Collective over the grid's ranks. own_end: as of stream_exchange_args. wanted: whether this rank takes part. Throws error.
    void find(const kernel_exchange_state &x, std::int32_t own_end, bool wanted);
    // For the kernels.
    const direct_stores &stores() const { return stores_; }
    // Those whose ghost cells this rank writes.
    const std::vector<int> &stored_to() const { return stored_to_; }
    // Whether kernels of others write this rank's memory, or those of this rank others'.
    bool any() const { return !mapped_.empty(); }
    // Returns when all ranks of any() have called it, too. This rank's kernels have ended before. Throws error: MPI_ERR_PENDING after
    // MPIX_STALL_SECONDS.
    void wait_for_neighbours(MPI_Comm comm) const;

private:
    friend class direct_search;

    device_memory words_, tables_;
    transport::transport *gpus_ = nullptr;
    transport::region own_words_;
    std::vector<transport::region> adopted_, attached_;
    direct_stores stores_;
    std::vector<int> stored_to_, mapped_;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_DIRECT_NEIGHBOURS_H
