// SPDX-License-Identifier: BSD-3-Clause
//
// Rget (rendezvous get), between two GPUs of one node: the receiver's kernels read partitions out of the send buffer
// (mpix/impl/rget/rget.cuh). Here: whether they may, where the words that this needs are, and from how many bytes on.
#ifndef MPIX_HOST_PROTOCOL_RGET_H
#define MPIX_HOST_PROTOCOL_RGET_H

#include <cstdint>

#include "transport/status.h"

namespace mpix {

// The most threads that a block has on any GPU.
constexpr std::uint64_t most_block_threads = 1024;

// Size of the region that begins with the arrival flags. Both sides compute it. (The kernels know where its RTS words
// are.)
std::uint64_t bytes_with_rts(std::uint64_t partitions);
// Where the answers are, behind the sender's words and ring; an offset in bytes.
std::uint64_t answers_in_words(std::uint64_t partitions);
std::uint64_t words_with_answers(std::uint64_t partitions);

// One side's buffer. Members that this side does not know keep their defaults.
struct rget_end {
    bool on_gpu = false, gaps = false;
    const void *buffer = nullptr;
    std::uint64_t partition_bytes = 8;  // the sender's
    std::uint64_t least = 0;            // the sender's rget_threshold()
};
// Why they may not; empty: they may.
reason why_no_rget(const rget_end &end);

// The bytes per thread of the sender's group from which rget takes less time; 0: never. By MPIX_RGET_BYTES, or else
// by how fast one thread stores.
std::uint64_t rget_threshold(double thread_bytes_per_us);

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_RGET_H
