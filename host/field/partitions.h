// SPDX-License-Identifier: BSD-3-Clause
//
// The partitions of a packed message. They are equally long, as MPI wants them, and each belongs to one field, so that
// a field can be marked ready by itself.
#ifndef MPIX_HOST_FIELD_PARTITIONS_H
#define MPIX_HOST_FIELD_PARTITIONS_H

#include <cstdint>
#include <vector>

namespace mpix::halo {

struct partitions {
    std::int64_t bytes = 0;  // of each
    std::vector<int> first;  // partition of each field; one entry more, the number of all

    int count() const { return first.back(); }
    std::int64_t offset(int field) const { return bytes * first[field]; }
};

// What one partition more is worth, in bytes of padding: on the host it costs a flag; in kernels a call of a group (an
// estimate).
inline constexpr std::int64_t host_partition_cost = 64, kernel_partition_cost = 32 << 10;

// For fields of that many bytes each, in this message; at least one has some. As few partitions, and as little padding,
// as possible. Each begins at a multiple of `alignment`.
partitions choose_partitions(const std::vector<std::int64_t> &field_bytes, std::int64_t partition_cost,
                             std::int64_t alignment = 1);

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_PARTITIONS_H
