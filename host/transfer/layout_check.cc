// SPDX-License-Identifier: BSD-3-Clause
#include "host/transfer/layout_check.h"

#include <algorithm>
#include <cstdint>

#include "device/cuda/allocation.h"
#include "host/format.h"
#include "transport/select.h"

namespace mpix {
namespace {

constexpr const char *advice =
    "partition i begins i * count extents of the datatype behind the buffer's start; a column, say, needs "
    "MPI_Type_create_resized";

}  // namespace

void check_layout(const request &r, const char *call) {
    const std::uint64_t bytes = r.total_bytes();
    if (bytes == 0) return;
    std::int64_t low = 0, high = static_cast<std::int64_t>(bytes);
    if (!r.gapless) {
        const offset_table message = r.offsets();
        const std::int64_t piece = message.piece();
        if (bytes / static_cast<std::uint64_t>(piece) > most_offsets)
            return say(format("check: {}: the message has too many pieces to look at", call));
        std::vector<std::int64_t> offsets = message.offsets();
        std::sort(offsets.begin(), offsets.end());
        low = offsets.front();
        high = offsets.back() + piece;
        const auto twice = std::adjacent_find(offsets.begin(), offsets.end(),
                                              [piece](std::int64_t a, std::int64_t b) { return b - a < piece; });
        if (twice != offsets.end())
            say(format("check: {}: the partitions overlap, at byte {} of the buffer; {}", call, *(twice + 1), advice));
    }
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(r.op.buffer) + static_cast<std::uintptr_t>(low),
                         end = reinterpret_cast<std::uintptr_t>(r.op.buffer) + static_cast<std::uintptr_t>(high);
    std::uintptr_t allocation = 0;
    std::uint64_t size = 0;
    const bool inside = r.place.owner == nullptr ? transport::can_be_read(reinterpret_cast<const void *>(start),
                                                                          static_cast<std::uint64_t>(high - low))
                                                 : !gpu::allocation_around(r.op.buffer, allocation, size) ||
                                                       (start >= allocation && end <= allocation + size);
    if (!inside)
        say(format("check: {}: the partitions take bytes {} to {} of the buffer, which leaves its memory; {}", call,
                   low, high - 1, advice));
}

}  // namespace mpix
