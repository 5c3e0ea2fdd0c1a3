// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/partitions.h"

#include <algorithm>

namespace mpix::halo {
namespace {

// Into how many partitions a field is cut at most for the sake of less padding.
constexpr int most_parts = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

partitions choose_partitions(const std::vector<std::int64_t> &field_bytes, std::int64_t partition_cost,
                             std::int64_t alignment) {
    partitions best;
    std::int64_t least = 0;
    // Of the many parcels of a kernel's exchange most have the same length.
    std::vector<std::int64_t> lengths = field_bytes;
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    const std::int64_t longest = lengths.back();
    for (const std::int64_t some : lengths)
        for (int parts = 1; some > 0 && parts <= most_parts; ++parts) {
            partitions next{.bytes = divide_up(divide_up(some, parts), alignment) * alignment, .first = {0}};
            if (divide_up(longest, next.bytes) > 1024) continue;
            for (const std::int64_t bytes : field_bytes)
                next.first.push_back(next.first.back() + static_cast<int>(divide_up(bytes, next.bytes)));
            const std::int64_t cost = next.count() * (next.bytes + partition_cost);
            if (best.bytes == 0 || cost < least) least = cost, best = next;
        }
    return best;
}

}  // namespace mpix::halo
