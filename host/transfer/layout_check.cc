// SPDX-License-Identifier: BSD-3-Clause
#include "host/transfer/layout_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/cuda/allocation.h"
#include "host/format.h"
#include "transport/select.h"

namespace mpix {
namespace {

constexpr const char *advice =
    "partition i begins i * count extents of the datatype behind the buffer's start; a column, say, needs "
    "MPI_Type_create_resized";

// A piece of the message: where it lies in the buffer, and in which partition.
struct placed {
    std::int64_t offset;
    std::size_t partition;
};

// By their offsets.
std::vector<placed> placed_pieces(const request &r, const std::vector<std::int64_t> &in_packing_order) {
    const std::size_t each = in_packing_order.size() / static_cast<std::size_t>(r.op.partitions);
    std::vector<placed> pieces(in_packing_order.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = {in_packing_order[i], i / each};
    std::sort(pieces.begin(), pieces.end(), [](const placed &a, const placed &b) {
        return a.offset != b.offset ? a.offset < b.offset : a.partition < b.partition;
    });
    return pieces;
}

// Where the first two pieces overlap that are of different partitions, and of one.
struct overlaps {
    std::optional<std::int64_t> of_partitions, within_one;
};

overlaps first_overlaps(const std::vector<placed> &pieces, std::int64_t length) {
    overlaps found;
    placed last = pieces.front();          // before the piece that is looked at
    std::optional<placed> last_of_others;  // of another partition than `last`
    for (auto now = pieces.begin() + 1; now != pieces.end(); ++now) {
        const auto meets = [&](const placed &before) { return now->offset - before.offset < length; };
        const bool same = last.partition == now->partition;
        if (same && meets(last) && !found.within_one) found.within_one = now->offset;
        if (!same) last_of_others = last;
        if (last_of_others && meets(*last_of_others)) {
            found.of_partitions = now->offset;
            break;
        }
        last = *now;
    }
    return found;
}

// Bytes of the buffer from `low` to behind the last one.
struct run {
    std::int64_t low, high;
};

// Pieces with less than a page between them are one run: no page without a piece lies between.
std::vector<run> runs_of(const std::vector<placed> &pieces, std::int64_t length) {
    constexpr std::int64_t least_page = 4096;
    std::vector<run> runs;
    for (const placed &p : pieces)
        if (!runs.empty() && p.offset - runs.back().high < least_page)
            runs.back().high = p.offset + length;
        else
            runs.push_back({p.offset, p.offset + length});
    return runs;
}

bool within_memory(const request &r, const std::vector<run> &runs) {
    const char *const buffer = static_cast<const char *>(r.op.buffer);
    if (r.place.owner == nullptr)
        return std::all_of(runs.begin(), runs.end(), [buffer](const run &one) {
            return transport::can_be_read(buffer + one.low, static_cast<std::uint64_t>(one.high - one.low));
        });
    std::uintptr_t allocation = 0;
    std::uint64_t size = 0;
    return !gpu::allocation_around(r.op.buffer, allocation, size) ||
           (reinterpret_cast<std::uintptr_t>(buffer + runs.front().low) >= allocation &&
            reinterpret_cast<std::uintptr_t>(buffer + runs.back().high) <= allocation + size);
}

}  // namespace

void check_layout(const request &r, const char *call) {
    const std::uint64_t bytes = r.total_bytes();
    if (bytes == 0) return;
    std::vector<run> runs{{0, static_cast<std::int64_t>(bytes)}};
    if (!r.gapless) {
        const offset_table message = r.offsets();
        const std::int64_t piece = message.piece();
        if (bytes / static_cast<std::uint64_t>(piece) > most_offsets)
            return say(format("check: {}: the message has too many pieces to look at", call));
        const std::vector<placed> pieces = placed_pieces(r, message.offsets());
        runs = runs_of(pieces, piece);
        const overlaps found = first_overlaps(pieces, piece);
        if (found.of_partitions)
            say(format("check: {}: the partitions overlap, at byte {} of the buffer; {}", call, *found.of_partitions,
                       advice));
        else if (found.within_one && r.kind == MPIX_KIND_RECV)  // a send may read a byte twice
            say(format("check: {}: the datatype has byte {} of the buffer twice, which MPI does not allow of a receive",
                       call, *found.within_one));
    }
    if (!within_memory(r, runs))
        say(format("check: {}: the partitions take bytes {} to {} of the buffer, which leaves its memory; {}", call,
                   runs.front().low, runs.back().high - 1, advice));
}

}  // namespace mpix
