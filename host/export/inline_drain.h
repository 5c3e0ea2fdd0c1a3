// SPDX-License-Identifier: BSD-3-Clause
//
// The inline buffer of a receive in GPU memory (mpix/impl/inline/packet.cuh): where it is, and how the host learns what
// kernels have taken out of it.
#ifndef MPIX_HOST_EXPORT_INLINE_DRAIN_H
#define MPIX_HOST_EXPORT_INLINE_DRAIN_H

#include <mpix/detail/abi.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "device/kernels/gpu_pack.h"
#include "transport/transport.h"

namespace mpix {

// Offsets in bytes, in the region that begins with the arrival flags. Both sides compute them.
struct inline_buffer_layout {
    std::uint64_t taken = 0, packets = 0, all = 0;
    explicit operator bool() const { return all != 0; }
};
// For the sender's partitions. Empty if a partition is larger than `most_bytes`, or has no bytes. With `rget` there is
// room for RTS words, too.
inline_buffer_layout inline_buffer_for(std::uint64_t partitions, std::uint64_t partition_bytes,
                                       std::uint64_t most_bytes, bool rget = false);

// For one matched receive. The caller holds the request's `engine` mutex.
class inline_drain {
public:
    // The message has `senders` partitions; the request is on this GPU.
    inline_drain(transport::transport &gpus, int device, std::uint64_t senders)
        : gpus_(gpus), device_(device), senders_(senders) {}
    ~inline_drain() { end(); }
    inline_drain(const inline_drain &) = delete;
    inline_drain &operator=(const inline_drain &) = delete;

    // Allocates words in which kernels tell which partitions are in the user's buffer.
    status allocate();
    std::uint64_t *told_by_kernels() const { return view_; }

    // Whether kernels have told of all partitions in that epoch.
    bool told_all(std::uint64_t epoch);
    // Whether kernels have had time to tell since the sender completed that epoch. Those that wait need microseconds.
    bool overdue(std::uint64_t epoch);
    // Whether a caller that asks again and again should look into the inline buffer now, in an epoch that the sender
    // has not completed. The pauses between looks double, so that a long wait launches few kernels, and lasts at most
    // twice as long.
    bool look_due(std::uint64_t epoch);
    // Launches a kernel of the library that takes out what is there, unless one is running. Does not wait.
    status take_rest(mpix_prequest *receive);
    // Whether that kernel may be running.
    bool busy();
    // Waits for it, and gives back the words. False: it has not ended by the stall deadline. Then the memory that it
    // works with, the inline buffer and the request's memory on the GPU, must not be given back.
    bool end();

private:
    transport::transport &gpus_;
    const int device_;
    const std::uint64_t senders_;
    transport::region told_;
    std::uint64_t *view_ = nullptr;  // told_, as kernels reach it
    std::uint64_t cursor_ = 0, cursor_epoch_ = 0;
    std::uint64_t seen_epoch_ = 0;
    std::chrono::steady_clock::time_point seen_, next_look_;
    std::unique_ptr<gpu::pending> draining_;
};

}  // namespace mpix

#endif  // MPIX_HOST_EXPORT_INLINE_DRAIN_H
