// SPDX-License-Identifier: BSD-3-Clause
//
// A message that comes over a network and ends in GPU memory travels in chunks, each with an arrival flag of its own:
// the first ones go on to the GPU while the others are still under way. To host memory a partition is one chunk.
#ifndef MPIX_HOST_STAGING_CHUNKS_H
#define MPIX_HOST_STAGING_CHUNKS_H

#include <algorithm>
#include <cstdint>

namespace mpix {

constexpr std::uint64_t chunk_bytes = 512 * 1024;

// By the sender's partitions. Chunks are counted through all of them.
struct chunking {
    std::uint64_t partitions = 0, partition_bytes = 0;
    std::uint64_t per_partition = 1;

    std::uint64_t all() const { return partitions * per_partition; }
    std::uint64_t partition_of(std::uint64_t chunk) const { return chunk / per_partition; }
    // Of the whole message's packed bytes.
    std::uint64_t begin(std::uint64_t chunk) const {
        return partition_of(chunk) * partition_bytes + chunk % per_partition * chunk_bytes;
    }
    std::uint64_t end(std::uint64_t chunk) const {
        const std::uint64_t partition_end = (partition_of(chunk) + 1) * partition_bytes;
        return chunk % per_partition == per_partition - 1 ? partition_end : begin(chunk) + chunk_bytes;
    }
};

inline chunking chunks_of(std::uint64_t partitions, std::uint64_t partition_bytes, bool in_chunks) {
    const std::uint64_t pieces = in_chunks ? (partition_bytes + chunk_bytes - 1) / chunk_bytes : 1;
    return {partitions, partition_bytes, std::max<std::uint64_t>(pieces, 1)};
}

}  // namespace mpix

#endif  // MPIX_HOST_STAGING_CHUNKS_H
