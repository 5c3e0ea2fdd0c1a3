// SPDX-License-Identifier: BSD-3-Clause
//
// Where the pieces of a message with gaps are in the user's buffer. Packets of an inline buffer are gathered from them,
// or scattered to them (mpix/impl/inline/gather.cuh).
#ifndef MPIX_HOST_EXPORT_OFFSET_TABLE_H
#define MPIX_HOST_EXPORT_OFFSET_TABLE_H

#include <cstdint>
#include <vector>

#include "host/datatype/plan.h"

namespace mpix {

// A message in a buffer with gaps, which begins with element 0.
struct offset_table {
    const plan &type;
    const char *buffer;
    std::uint64_t bytes;  // packed; not 0

    // The length of each piece: 8, 4, 2 or 1 bytes. It divides elements, and this side's partitions.
    std::int64_t piece() const;
    // Their offsets from the beginning of the buffer.
    std::vector<std::int64_t> offsets() const;
};

// A larger table takes too much of a GPU's memory, and too long to make.
constexpr std::uint64_t most_offsets = 1024 * 1024;

}  // namespace mpix

#endif  // MPIX_HOST_EXPORT_OFFSET_TABLE_H
