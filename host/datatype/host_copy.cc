// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/host_copy.h"

#include <algorithm>
#include <new>

#include "host/datatype/row_copy.h"

namespace mpix {
namespace {

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
    const mpix_dimension outer = box.dimensions > 1 ? box.dimension[1] : mpix_dimension{1, 0, 0};
    while (first < last) {
        const detail::run_place at = detail::place_of_run(box, first);
        const std::int64_t column = first % inner.count, row = first / inner.count % outer.count;
        std::int64_t count = std::min(inner.count - column, last - first), rows = 1;
        if (column == 0) rows = std::min(outer.count - row, (last - first) / count);
        copy_plane(way, box.run, p.offset + at.offset, at.packed + p.shift, inner, count, outer, rows);
        first += rows * count;
    }
}

std::int64_t packed_end(const mpix_box &box) {
    std::int64_t end = box.packed + box.run;
    for (std::int64_t k = 0; k < box.dimensions; ++k) end += (box.dimension[k].count - 1) * box.dimension[k].packed;
    return end;
}

template <class Way>
void copy_element(const Way &way, const part &p, const plan &type) {
    for (const mpix_box &box : type.boxes) {
        if (box.packed >= p.end) break;
        if (packed_end(box) > p.begin) copy_box(way, p, box);
    }
    if (type.loose.empty()) return;
    // The first and the last of them may be wanted in part.
    auto at = std::upper_bound(type.loose.begin(), type.loose.end(), p.begin,
                               [](std::int64_t byte, const mpix_run &r) { return byte < r.packed + r.length; });
    const auto one = [&](const mpix_run &r) { copy_run(way, p, r.offset, r.packed, r.length); };
    if (at != type.loose.end() && at->packed < p.begin) one(*at++);
    auto *const memory = way.memory + p.offset;
    auto *const packed = way.packed + p.shift;
    for (; at != type.loose.end() && at->packed + at->length <= p.end; ++at)
        Way::move(memory + at->offset, packed + at->packed, at->length);
    if (at != type.loose.end()) one(*at);
}

// Small elements: `count` of them as one, whose boxes have one more dimension. False: not for this type.
bool gather_elements(const plan &type, std::int64_t count, plan &out) {
    constexpr std::size_t most_pieces = 64;
    constexpr std::int64_t largest = 2048;
    if (count < 8 || type.size > largest || type.boxes.size() + type.loose.size() > most_pieces) return false;
    try {
        out.boxes.reserve(type.boxes.size() + type.loose.size());
    } catch (const std::bad_alloc &) {
        return false;  // one after the other they need no memory, and the progress engine has nobody to tell
    }
    const mpix_dimension elements{count, type.extent, type.size};
    for (const mpix_box &box : type.boxes) {
        if (box.dimensions == MPIX_MAX_DIMENSIONS) return false;
        mpix_box &all = out.boxes.emplace_back(box);
        all.dimension[all.dimensions++] = elements;
    }
    for (const mpix_run &r : type.loose) out.boxes.push_back({r.offset, r.packed, r.length, 1, {elements}});
    std::sort(out.boxes.begin(), out.boxes.end(),
              [](const mpix_box &a, const mpix_box &b) { return a.packed < b.packed; });
    out.size = count * type.size;
    out.extent = count * type.extent;
    return true;
}

// Where several boxes go through the same memory, their turns are so short that it is still in the cache.
template <class Way>
void copy_elements(const Way &way, const plan &type, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t turn = 16384;
    for (std::int64_t element = begin / type.size; element * type.size < end; ++element) {
        const std::int64_t start = element * type.size;
        const std::int64_t first = std::max(begin - start, std::int64_t{0}), last = std::min(end - start, type.size);
        const std::int64_t step = type.boxes.size() > 1 ? turn : last - first;
        for (std::int64_t from = first; from < last; from += step)
            copy_element(way, {element * type.extent, from, std::min(from + step, last), start - begin}, type);
    }
}

template <class Way>
void copy_range(const Way &way, const plan &type, std::int64_t begin, std::int64_t bytes) {
    if (bytes == 0 || type.size == 0) return;
    if (type.contiguous()) {
        Way::move(way.memory + begin, way.packed, bytes);
        return;
    }
    const std::int64_t end = begin + bytes, count = (end + type.size - 1) / type.size;
    if (type.boxes.size() == 1 && type.loose.empty() && type.boxes[0].dimensions < MPIX_MAX_DIMENSIONS) {
        // All elements are one box.
        mpix_box box = type.boxes[0];
        box.dimension[box.dimensions++] = {count, type.extent, type.size};
        copy_box(way, {0, begin, end, -begin}, box);
        return;
    }
    plan all;
    copy_elements(way, gather_elements(type, count, all) ? all : type, begin, end);
}

}  // namespace

void pack_range(const plan &type, const char *buffer, std::int64_t begin, std::int64_t bytes, char *packed) {
    copy_range(packing{buffer, packed}, type, begin, bytes);
}

void unpack_range(const plan &type, char *buffer, std::int64_t begin, std::int64_t bytes, const char *packed) {
    copy_range(unpacking{buffer, packed}, type, begin, bytes);
}

}  // namespace mpix
