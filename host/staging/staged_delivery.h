// SPDX-License-Identifier: BSD-3-Clause
//
// What has come for a receive buffer in GPU memory goes on from its landing to the buffer, where it is not there
// already, and kernels are told by arrival flags of their own, in the GPU's memory: one for each of the sender's
// partitions, then one for the whole message. A network brings it into host memory, or into the buffer; within a node
// it comes into GPU memory of ours, if the sender cannot map the buffer.
#ifndef MPIX_HOST_STAGING_STAGED_DELIVERY_H
#define MPIX_HOST_STAGING_STAGED_DELIVERY_H

#include <deque>
#include <memory>
#include <vector>

#include "host/staging/chunks.h"
#include "host/staging/gpu_buffer.h"
#include "transport/transport.h"

namespace mpix {

// Of one matched receive. One thread at a time.
class staged_delivery {
public:
    // The landing holds `slots` messages; it and the sender's flags (one a chunk) outlive this.
    staged_delivery(const gpu_buffer &to, const chunking &chunks, std::uint64_t slots);
    ~staged_delivery() { end(); }
    staged_delivery(const staged_delivery &) = delete;
    staged_delivery &operator=(const staged_delivery &) = delete;

    // The landing is the buffer itself, GPU memory, or host memory. Page-locks that; whoever releases it gives back the
    // view (release_view), for that may wait for kernels.
    status allocate(const transport::region &landing, const transport::region &arrival);

    // Begin to copy what has arrived, and tell of what has been copied. `to_kernels`: the user's kernels may wait for it.
    status step(std::uint64_t epoch, bool to_kernels);
    // The sender's partition / the whole message of that epoch is in the user's buffer, and kernels know.
    bool delivered(std::uint64_t partition, std::uint64_t epoch) const;
    bool whole(std::uint64_t epoch) const { return whole_ == epoch; }
    // All of it has come, and is in the buffer or will be.
    bool arrived(std::uint64_t epoch) const;
    bool copying() const { return !copies_.empty(); }
    // After an error: nothing is being copied any more.
    bool idle();
    // Wait for that, and give back the flags. False: it is not so by the stall deadline, so neither the landing nor its
    // view must be given back.
    bool end();

    std::uint64_t *flags() const { return static_cast<std::uint64_t *>(flags_.address); }
    // To kernels, instead of an epoch: nothing will ever come.
    status tell_never();

private:
    struct copy {
        std::uint64_t first, end;  // chunks
        std::unique_ptr<transport::transfer> transfer;
    };

    void begin(std::uint64_t epoch);
    status start_copies();
    status start_copy(copy made);
    status finish(const copy &c);

    const gpu_buffer to_;
    const chunking chunks_;
    const std::uint64_t slots_;
    const std::uint64_t *arrived_ = nullptr;
    bool in_place_ = false;
    locked_memory landing_;
    transport::region flags_;

    bool to_kernels_ = false;
    std::uint64_t epoch_ = 0, whole_ = 0;
    std::vector<bool> begun_;          // by chunk
    std::vector<std::uint64_t> left_;  // chunks of each partition that are not in the buffer
    std::uint64_t first_open_ = 0;     // all chunks before it are begun
    std::uint64_t partitions_left_ = 0;
    std::deque<copy> copies_;
};

}  // namespace mpix

#endif  // MPIX_HOST_STAGING_STAGED_DELIVERY_H
