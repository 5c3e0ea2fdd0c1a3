// SPDX-License-Identifier: BSD-3-Clause
//
// What the host runtime asks of a network that reaches the memory of GPUs itself: the user's own buffer is put from,
// and put to, with no copy in host memory that we know of. Order, errors and thread safety: as in network.h.
#ifndef MPIX_TRANSPORT_GPU_PUTS_H
#define MPIX_TRANSPORT_GPU_PUTS_H

#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace mpix::transport {

struct gpu_puts {
    virtual ~gpu_puts() = default;

    // The user's own buffer as a region that peers may put to, and its description, which is longer than that of host
    // memory and comes in two parts. Forget it once nobody puts there any more.
    virtual status adopt(void *buffer, std::uint64_t bytes, int device, region &out) = 0;
    virtual status describe(const region &own, wire_region &out, wire_region &rest) = 0;
    virtual void forget(region &own) = 0;
    // Such a region of a peer's. What can be checked of the description is. It is detached as any of the network's.
    virtual status attach(const wire_region &wire, const wire_region &rest, int peer, region &out) = 0;

    // Start putting from GPU memory of ours to any region of a peer's; when the transfer has finished `from` may
    // change. The network may refuse this put, and be as good as before to others.
    virtual status put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                       std::unique_ptr<transfer> &out) = 0;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_GPU_PUTS_H
