// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/host_copy.h"

#include <algorithm>
#include <cstring>

namespace mpix {
namespace {

// Which way the bytes go.
struct packing {
    const char *memory;
    char *packed;
    static void move(const char *in_memory, char *in_packed, std::int64_t n) {
        std::memcpy(in_packed, in_memory, static_cast<std::size_t>(n));
    }
};
struct unpacking {
    char *memory;
    const char *packed;
    static void move(char *in_memory, const char *in_packed, std::int64_t n) {
        std::memcpy(in_memory, in_packed, static_cast<std::size_t>(n));
    }
};

// `count` runs of `run` bytes along one dimension. With the length known to the compiler a short copy is a load and
// a store; with all else in local variables, no store can be taken to change it.
template <class Way>
void copy_row(const Way &way, std::int64_t run, std::int64_t offset, std::int64_t at, const mpix_dimension &d,
              std::int64_t count) {
    const auto row = [&](auto length) {
        auto *memory = way.memory + offset;
        auto *packed = way.packed + at;
        const std::int64_t stride = d.stride, step = d.packed;
        for (std::int64_t left = count; left > 0; --left, memory += stride, packed += step)
            Way::move(memory, packed, length);
    };
    switch (run) {
        case 1:
            return row(std::integral_constant<std::int64_t, 1>{});
        case 2:
            return row(std::integral_constant<std::int64_t, 2>{});
        case 4:
            return row(std::integral_constant<std::int64_t, 4>{});
        case 8:
            return row(std::integral_constant<std::int64_t, 8>{});
        case 12:
            return row(std::integral_constant<std::int64_t, 12>{});
        case 16:
            return row(std::integral_constant<std::int64_t, 16>{});
        case 24:
            return row(std::integral_constant<std::int64_t, 24>{});
        case 32:
            return row(std::integral_constant<std::int64_t, 32>{});
        default:
            return row(run);
    }
}

// An element whose memory begins at `offset`, of which packed bytes [begin, end) are wanted; its packed byte x has
// its place at x + shift.
struct part {
    std::int64_t offset, begin, end, shift;
};

// The wanted bytes of a run.
template <class Way>
void copy_run(const Way &way, const part &p, std::int64_t offset, std::int64_t packed, std::int64_t length) {
    const std::int64_t from = std::max(packed, p.begin), to = std::min(packed + length, p.end);
    if (from < to) Way::move(way.memory + p.offset + offset + from - packed, way.packed + from + p.shift, to - from);
}

template <class Way>
void copy_box(const Way &way, const part &p, const mpix_box &box) {
    const auto one = [&](std::int64_t index) {
        const detail::run_place at = detail::place_of_run(box, index);
        copy_run(way, p, at.offset, at.packed, box.run);
    };
    // The first and the last of them may be wanted in part.
    std::int64_t first = detail::runs_before(box, p.begin), last = detail::runs_before(box, p.end);
    if (first > 0) one(first - 1);
    if (first < last) one(--last);
    if (box.dimensions == 0) return;
    const mpix_dimension &inner = box.dimension[0];
    while (first < last) {
        const detail::run_place at = detail::place_of_run(box, first);
        const std::int64_t count = std::min(inner.count - first % inner.count, last - first);
        copy_row(way, box.run, p.offset + at.offset, at.packed + p.shift, inner, count);
        first += count;
    }
}

template <class Way>
void copy_element(const Way &way, const part &p, const plan &type) {
    for (const mpix_box &box : type.boxes) copy_box(way, p, box);
    auto at = std::upper_bound(type.loose.begin(), type.loose.end(), p.begin,
                               [](std::int64_t byte, const mpix_run &r) { return byte < r.packed + r.length; });
    for (; at != type.loose.end() && at->packed < p.end; ++at) copy_run(way, p, at->offset, at->packed, at->length);
}

template <class Way>
void copy_range(const Way &way, const plan &type, std::int64_t begin, std::int64_t bytes) {
    if (bytes == 0 || type.size == 0) return;
    if (type.contiguous()) {
        Way::move(way.memory + begin, way.packed, bytes);
        return;
    }
    const std::int64_t end = begin + bytes;
    if (type.boxes.size() == 1 && type.loose.empty() && type.boxes[0].dimensions < MPIX_MAX_DIMENSIONS) {
        // All elements are one box.
        mpix_box box = type.boxes[0];
        box.dimension[box.dimensions++] = {(end + type.size - 1) / type.size, type.extent, type.size};
        copy_box(way, {0, begin, end, -begin}, box);
        return;
    }
    for (std::int64_t element = begin / type.size; element * type.size < end; ++element) {
        const std::int64_t start = element * type.size;
        copy_element(way,
                     {element * type.extent, std::max(begin - start, std::int64_t{0}), std::min(end - start, type.size),
                      start - begin},
                     type);
    }
}

}  // namespace

void pack_range(const plan &type, const char *buffer, std::int64_t begin, std::int64_t bytes, char *packed) {
    copy_range(packing{buffer, packed}, type, begin, bytes);
}

void unpack_range(const plan &type, char *buffer, std::int64_t begin, std::int64_t bytes, const char *packed) {
    copy_range(unpacking{buffer, packed}, type, begin, bytes);
}

}  // namespace mpix
