// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces that an inline buffer's lines are gathered from, or scattered to, in a user's buffer with gaps (mpix/impl/inline/gather.cuh).
#ifndef MPIX_HOST_EXPORT_OFFSET_TABLE_H
#define MPIX_HOST_EXPORT_OFFSET_TABLE_H

#include <cstdint>
#include <vector>

#include "host/datatype/plan.h"

namespace mpix {

// A message in such a buffer, which begins with element 0.
struct offset_table {
    const plan &type;
    const char *buffer;
    std::uint64_t bytes;  // packed; not 0

    // How long all pieces are: 8, 4, 2 or 1 bytes. Elements are made of them, and so are this side's partitions.
    std::int64_t piece() const;
    // Where they are, from the buffer on.
    std::vector<std::int64_t> offsets() const;
};

// A table of more places takes too much of a GPU's memory, and too long to make.
constexpr std::uint64_t most_offsets = 1024 * 1024;

}  // namespace mpix

#endif  // MPIX_HOST_EXPORT_OFFSET_TABLE_H
