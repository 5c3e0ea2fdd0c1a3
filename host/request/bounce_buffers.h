// SPDX-License-Identifier: BSD-3-Clause
//
// Page-locked buffers of one chunk each, through which GPU memory goes to the network. They stay until the process ends:
// unlocking memory would wait for the user's kernels.
#ifndef MPIX_HOST_REQUEST_BOUNCE_BUFFERS_H
#define MPIX_HOST_REQUEST_BOUNCE_BUFFERS_H

#include <mutex>
#include <vector>

#include "host/request/gpu_buffer.h"

namespace mpix {

// All sends from one GPU share its buffers. Any thread may call any function.
class bounce_buffers {
public:
    static constexpr std::size_t number = 8;

    // Makes them, the first time.
    transport::outcome prepare(transport::transport &memory, transport::transport &gpus, int device);
    // False: all are in use. Who has one gives it back once neither the GPU nor the network uses it any more.
    bool take(locked_memory &out);
    void give(locked_memory own);

private:
    std::mutex mutex_;
    bool made_ = false;
    std::vector<locked_memory> free_;
};

bounce_buffers &bounce_buffers_of(int device);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_BOUNCE_BUFFERS_H
