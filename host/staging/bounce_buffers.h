// SPDX-License-Identifier: BSD-3-Clause
//
// Page-locked buffers of one chunk each, through which GPU memory goes to the network. They stay until the process
// ends: unlocking memory would wait for the user's kernels.
#ifndef MPIX_HOST_STAGING_BOUNCE_BUFFERS_H
#define MPIX_HOST_STAGING_BOUNCE_BUFFERS_H

#include <memory>
#include <mutex>

#include "host/staging/gpu_buffer.h"
#include "transport/reserve.h"

namespace mpix {

// All sends from one GPU share its buffers. Any thread may call any function.
class bounce_buffers {
public:
    static constexpr std::size_t number = 16;
    static constexpr unsigned most_of_one = 4;  // peer, which may not be taking anything just now

    // Makes them, the first time.
    status allocate(transport::transport &memory, transport::transport &gpus, int device);
    // False: too many are in use. Who has one gives it back once neither the GPU nor the network uses it any more, or
    // leaves it here with the transfer that may still do so.
    bool take(int peer, locked_memory &out);
    void give(int peer, locked_memory own);
    void leave(int peer, locked_memory own, std::unique_ptr<transport::transfer> user);

private:
    struct left {
        int peer;
        locked_memory memory;
        std::unique_ptr<transport::transfer> user;
    };
    void reclaim();

    std::mutex mutex_;
    bool made_ = false;
    transport::safe_vector<locked_memory> free_;
    transport::safe_map<int, unsigned> taken_;  // by peer
    transport::safe_vector<left> left_;
};

bounce_buffers &bounce_buffers_of(int device);

}  // namespace mpix

#endif  // MPIX_HOST_STAGING_BOUNCE_BUFFERS_H
