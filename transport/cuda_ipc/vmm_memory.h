// SPDX-License-Identifier: BSD-3-Clause
//
// GPU memory that a program has mapped itself (cuMemCreate, cuMemMap), as PyTorch's expandable segments. CUDA IPC does not
// hand it to other processes. Allocations that were made with a POSIX file descriptor as a possible handle can be: the
// owner keeps such files open, and other processes of the node take them out of it (pidfd_getfd), which takes the same
// leave as to write there (transport/cma.h).
#ifndef MPIX_TRANSPORT_CUDA_IPC_VMM_MEMORY_H
#define MPIX_TRANSPORT_CUDA_IPC_VMM_MEMORY_H

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "transport/cuda_ipc/ipc_mappings.h"
#include "transport/status.h"
#include "transport/transport.h"

namespace mpix::transport {

// The owner's side. What is given away keeps the memory allocated until it is taken back, also if the user frees it.
class vmm_exports {
public:
    // Fills in the description of a region in such memory, in one allocation or in several side by side. `number`: the
    // region's own.
    status give(const region &own, std::uint64_t number, wire_address &out);
    // When the region ends. Does nothing for a region that was not given.
    void take_back(std::uint64_t number);

private:
    struct given {
        std::uint64_t address, bytes, allocations;  // of the region; what tells its allocations from others
        std::vector<std::uint64_t> regions;         // their numbers
        wire_address wire;
        std::vector<int> files;  // of the allocations, and the table of these
    };
    std::mutex mutex_;
    std::vector<given> all_;
    std::uint64_t ids_ = 0;
};

// The other side.
class vmm_mappings {
public:
    // As of ipc_mappings.
    status attach(const wire_address &wire, int device, region &out);
    void detach(const region &attached);
    void close_unused();

private:
    using name = std::tuple<std::int64_t, std::uint64_t, std::uint64_t, int>;  // owner, address there, id, device
    struct mapping {
        std::uint64_t address, bytes;
        unsigned users;
    };
    static status map(const wire_address &wire, int device, std::uint64_t &address);

    std::mutex mutex_;
    std::map<name, mapping> all_;
};

// Lets kernels on another GPU of the process reach such memory.
status admit_device(std::uint64_t address, std::uint64_t bytes, int device);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_CUDA_IPC_VMM_MEMORY_H
