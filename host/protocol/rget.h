// SPDX-License-Identifier: BSD-3-Clause
//
// Between two GPUs of one node: partitions that the receiver's kernels read out of the send buffer (mpix/impl/rget/rget.cuh): whether
// they may, where what they need lies, and from how many bytes on.
#ifndef MPIX_HOST_PROTOCOL_RGET_H
#define MPIX_HOST_PROTOCOL_RGET_H

#include <cstdint>
#include <string>

namespace mpix {

// In the region that begins with the arrival flags; in bytes. Both sides work it out. (Where the offers are, kernels know.)
std::uint64_t bytes_with_rts(std::uint64_t partitions);
// The answers, behind the words and the ring of the sender; offsets in bytes.
std::uint64_t answers_in_words(std::uint64_t partitions);
std::uint64_t words_with_answers(std::uint64_t partitions);

// One side's buffer. What it does not know it leaves as it is.
struct pull_end {
    bool on_gpu = false, gaps = false;
    const void *buffer = nullptr;
    std::uint64_t partition_bytes = 8;  // the sender's
    std::uint64_t least = 0;            // the sender's, as below
};
// A sentence; empty: they may.
std::string why_no_pull(const pull_end &end);

// So many bytes for each thread of the sender's group from which on the receiver's take less; 0: never. By MPIX_PULL_BYTES, or else
// by what one thread stores.
std::uint64_t least_pulled(double thread_bytes_per_us);

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_RGET_H
