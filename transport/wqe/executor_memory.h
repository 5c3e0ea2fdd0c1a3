// SPDX-License-Identifier: BSD-3-Clause
//
// Memory for who posts to a work queue, the kernels of a GPU or host threads.
#ifndef MPIX_TRANSPORT_WQE_EXECUTOR_MEMORY_H
#define MPIX_TRANSPORT_WQE_EXECUTOR_MEMORY_H

#include <cstddef>
#include <cstring>

#include "transport/transport.h"

namespace mpix::transport {

class executor_memory {
public:
    // `gpus`: null where the executor is host threads.
    executor_memory(transport &host, transport *gpus, int device) : host_(host), gpus_(gpus), device_(device) {}

    // The executor's own.
    status allocate(std::size_t bytes, region &out) {
        return gpus_ != nullptr ? gpus_->allocate(bytes, device_, out) : host_.allocate(bytes, on_host, out);
    }
    status write(const region &to, const void *from, std::size_t bytes) {
        if (gpus_ != nullptr) return gpus_->write(to.address, from, bytes, device_);
        std::memcpy(to.address, from, bytes);
        return {};
    }
    void release(region &own) {
        if (own) (gpus_ != nullptr ? gpus_ : &host_)->release(own);
    }

    // The host's, which the executor reaches by `view`. If it fails, nothing is held.
    status share(std::size_t bytes, region &out, void *&view) {
        if (status bad = host_.allocate(bytes, on_host, out); !bad.ok()) return bad;
        view = out.address;
        if (gpus_ == nullptr) return {};
        status bad = gpus_->acquire_view(out, device_, view);
        if (!bad.ok()) host_.release(out);
        return bad;
    }
    void release_shared(region &shared) {
        if (!shared) return;
        if (gpus_ != nullptr) gpus_->release_view(shared);
        host_.release(shared);
    }

private:
    transport &host_;
    transport *const gpus_;
    const int device_;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_WQE_EXECUTOR_MEMORY_H
