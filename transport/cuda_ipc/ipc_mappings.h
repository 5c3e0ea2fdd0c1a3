// SPDX-License-Identifier: BSD-3-Clause
//
// Other processes' allocations of GPU memory, as CUDA IPC maps them here.
#ifndef MPIX_TRANSPORT_CUDA_IPC_IPC_MAPPINGS_H
#define MPIX_TRANSPORT_CUDA_IPC_IPC_MAPPINGS_H

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "transport/reserve.h"
#include "transport/transport.h"

namespace mpix::transport {

// What a peer needs to map a region: the handle of the whole allocation and where in it the region is.
struct wire_address {
    cudaIpcMemHandle_t handle;
    std::int64_t pid;
    std::uint64_t address;  // in the owner: all that is needed within one process
    std::uint64_t offset;
    std::uint64_t
        lasting;  // not 0: a slab of the owner's, which it never frees; of it so many bytes at the beginning are
                  // nobody's
    std::uint64_t allocation_bytes;
    std::uint64_t id;    // of the allocation, in the owner, which uses none twice; 0: the driver has none
    std::int64_t files;  // not -1: there is no handle, but this file in the owner (vmm_memory.h)
};
static_assert(sizeof(wire_address) <= sizeof(wire_region::address));

class ipc_mappings {
public:
    // `device`, which is current, will use it. Fills in address, backing, device and scratch.
    status attach(const wire_address &wire, int device, region &out);
    void detach(const region &attached);
    void close_unused();

private:
    struct allocation_name {
        cudaIpcMemHandle_t handle;
        std::uint64_t id;
        int device;
        bool same_handle(const allocation_name &other) const {
            return device == other.device && std::memcmp(&handle, &other.handle, sizeof handle) == 0;
        }
        bool operator<(const allocation_name &other) const {
            const int order = std::memcmp(&handle, &other.handle, sizeof handle);
            return order != 0 ? order < 0 : std::tie(id, device) < std::tie(other.id, other.device);
        }
    };
    struct opened {
        char *base = nullptr;
        unsigned users = 0;
        // Where it is in its owner.
        std::int64_t owner = 0;
        std::uint64_t address = 0, bytes = 0;
        bool overlaps(const opened &other) const {
            return owner == other.owner && address < other.address + other.bytes && other.address < address + bytes;
        }
    };
    using to_close = safe_vector<std::pair<char *, int>>;  // base and device

    static void close(const to_close &mappings);
    template <class Outdated>
    bool take_off(const Outdated &outdated, to_close &unused);
    status try_to_attach(const wire_address &wire, int device, region &out, to_close &outdated);

    std::mutex opening_;  // by whoever opens or closes; before mutex_
    std::mutex mutex_;
    std::map<allocation_name, opened> opened_;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_CUDA_IPC_IPC_MAPPINGS_H
