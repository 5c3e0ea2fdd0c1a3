// SPDX-License-Identifier: BSD-3-Clause
//
// The neighbours whose ghost cells a stream exchange's kernels store to directly, since this GPU maps their memory.
#ifndef MPIX_HOST_HALO_KERNELS_DIRECT_NEIGHBOURS_H
#define MPIX_HOST_HALO_KERNELS_DIRECT_NEIGHBOURS_H

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "device/halo/stream_args.h"
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
    // leave() has been called, or no kernel of this rank or a neighbour has run.
    ~direct_neighbours() { unmap(); }

    // Collective over the grid's ranks. own_end: as of stream_exchange_args. wanted: whether this rank takes part.
    // Throws error.
    void find(const kernel_exchange_state &x, std::int32_t own_end, bool wanted);
    // For the kernels.
    const direct_stores &stores() const { return stores_; }
    // The ranks to whose ghost cells some parcels may be stored.
    const std::vector<int> &sends_directly_to() const { return sends_directly_to_; }
    // Whether a neighbour has mapped this rank's memory, or this rank a neighbour's: then neither may be freed alone.
    bool has_mapped_memory() const { return !mapped_.empty(); }
    // Unmaps the neighbours' memory, and returns when they have unmapped this rank's: then their kernels store to it no
    // more, and it may be freed. This rank's kernels have ended before. Throws error: MPI_ERR_PENDING after
    // MPIX_STALL_SECONDS.
    void leave(MPI_Comm comm);
    // After a failure: no neighbour that has not begun to store does so any more. It may be storing now.
    void withdraw_clear_to_store();

private:
    friend class direct_search;

    void unmap();

    device_memory words_, tables_;
    transport::transport *gpus_ = nullptr;
    transport::region own_words_;
    std::vector<transport::region> adopted_, attached_;
    direct_stores stores_;
    std::vector<int> sends_directly_to_, mapped_;
    int device_ = 0;
    std::vector<std::uint64_t *> peers_clear_to_store_;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_DIRECT_NEIGHBOURS_H
