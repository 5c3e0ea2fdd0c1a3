// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of ours that peers may put to, as UCX knows it, and how they are told of it. Of host memory a whole mapping is
// registered, however many regions of it are described; of GPU memory each buffer by itself, since an address that the
// user has given back may come to be another allocation's.
//
// One thread at a time.
#ifndef MPIX_TRANSPORT_UCX_EXPOSED_MEMORY_H
#define MPIX_TRANSPORT_UCX_EXPOSED_MEMORY_H

#include <cstdint>
#include <vector>

#include "transport/reserve.h"
#include "transport/transport.h"
#include "transport/ucx/ucp_library.h"

namespace mpix::transport::ucx {

// What a peer needs to put to a region: its address there, and UCX's packed key.
struct remote_memory {
    std::uint64_t address = 0;
    std::vector<std::uint8_t> key;
};

// From a description of one part, or of two. Fails if it is none.
status read_description(const wire_region &wire, const wire_region *rest, remote_memory &out);

class exposed_memory {
public:
    explicit exposed_memory(const ucp_library &ucp) : ucp_(ucp) {}

    // What GPU memory is to UCX: tests play it with host memory.
    void open(ucp_context_h context, ucs_memory_type_t gpu_memory);
    void close();

    // Of host memory.
    status describe(const region &own, wire_region &out);
    void forget(const region &own);
    // Whether all of that is host memory which peers may put to.
    bool covers(std::uint64_t address, std::uint64_t bytes) const;

    // Of a GPU's.
    status adopt(void *buffer, std::uint64_t bytes, int device, region &out);
    status describe(const region &own, wire_region &out, wire_region &rest) const;
    void forget_adopted(const region &own);

private:
    struct registration {
        ucp_mem_h memory = nullptr;
        std::uint64_t bytes = 0;
        std::vector<std::uint8_t> key;
    };

    status enter(void *address, std::uint64_t bytes, ucs_memory_type_t type, std::size_t room, registration &out) const;

    const ucp_library &ucp_;
    ucp_context_h context_ = nullptr;
    ucs_memory_type_t gpu_memory_ = UCS_MEMORY_TYPE_CUDA;
    safe_map<void *, registration> host_;            // by mapping
    safe_map<std::uint64_t, registration> adopted_;  // by the region's handle
    std::uint64_t adoptions_ = 0;
};

}  // namespace mpix::transport::ucx

#endif  // MPIX_TRANSPORT_UCX_EXPOSED_MEMORY_H
