// SPDX-License-Identifier: BSD-3-Clause
//
// A plan in the form that kernels look bytes up in: which byte of memory is packed byte x, for any x and any number
// of elements. Plain data; the arithmetic runs on the host too.
#ifndef MPIX_DETAIL_TYPEMAP_H
#define MPIX_DETAIL_TYPEMAP_H

#include <mpix/detail/abi.h>
#include <mpix/detail/divide.h>
#include <mpix/detail/plan.h>

// A dimension of a grid: `by` divides by its packed stride.
struct mpix_step {
    struct mpix_divisor by;
    int64_t stride, count;
};

// A box, innermost dimension first; its packed bytes lie in [packed, end).
struct mpix_grid {
    int64_t offset, packed, end, run;
    int64_t dimensions;
    struct mpix_divisor by_cells;  // by how many aligned 16-byte words a run may touch
    struct mpix_step step[MPIX_MAX_DIMENSIONS + 1];
};

// Runs in packing order without gaps between them: run r is packed bytes packed[r] to packed[r+1]. To find one:
// those that packed bytes [b << shift, (b+1) << shift) lie in are bucket[b] to bucket[b+1]; or, where all have the
// same length, a division.
struct mpix_run_table {
    const int64_t *packed, *offset;
    const uint32_t *bucket;
    int64_t runs, buckets, shift;
    int64_t equal;  // the length that all have, or 0
    struct mpix_divisor by_equal;
};

enum mpix_typemap_kind {
    MPIX_TYPEMAP_GRID = 0,  // one box whose packed side is dense; repeating the elements is its last dimension
    MPIX_TYPEMAP_RUNS = 1,  // a table of runs, repeated
    MPIX_TYPEMAP_BOXES = 2  // several boxes, also interleaved, repeated
};

struct mpix_typemap {
    uint32_t version;      // MPIX_ABI_VERSION: user's kernels read this
    uint32_t kind;         // mpix_typemap_kind
    int64_t size, extent;  // of an element; size is not 0
    struct mpix_divisor by_size;
    int64_t low, high;   // the bytes of an element lie in [low, high) of memory
    uint64_t alignment;  // all offsets, lengths and strides within an element, or'ed together
    struct mpix_grid grid;
    struct mpix_run_table table;
    const struct mpix_grid *boxes;
    int64_t number_of_boxes;
};

namespace mpix::detail {

// A place in the type map: packed byte `x` is at memory + offset, `into` bytes after the beginning of its run
// (as it was when the run was looked up) and `left` bytes, at least 1, before its end.
struct cursor {
    int64_t x, offset, left, into;
    int64_t index;   // of the step along the innermost dimension, or of the run
    int64_t origin;  // of the element
};

struct grid_map {
    const mpix_grid &grid;

    MPIX_FN explicit grid_map(const mpix_typemap &type) : grid(type.grid) {}

    MPIX_FN bool tiny_runs() const { return grid.run < 3; }
    // From the cursor on, for 4 bytes, runs of at least a byte follow each other at one distance.
    MPIX_FN bool straight(const cursor &c) const { return grid.step[0].count - c.index > 4; }
    MPIX_FN int64_t run() const { return grid.run; }
    MPIX_FN int64_t distance() const { return grid.step[0].stride; }

    MPIX_FN cursor locate(int64_t x) const {
        int64_t rest = x, offset = grid.offset, step = 0;
        if (is_narrow(x)) {
            uint32_t narrow_rest = static_cast<uint32_t>(x), taken = 0;
            for (int k = static_cast<int>(grid.dimensions) - 1; k >= 0; --k) {
                const mpix_step &s = grid.step[k];
                taken = divide_narrow(narrow_rest, s.by);
                narrow_rest -= taken * static_cast<uint32_t>(s.by.value);
                offset += static_cast<int64_t>(taken) * s.stride;
            }
            return {x, offset + narrow_rest, grid.run - narrow_rest, narrow_rest, taken, 0};
        }
        for (int64_t k = grid.dimensions - 1; k >= 0; --k) {
            const mpix_step &s = grid.step[k];
            step = divide(rest, s.by);
            rest -= step * s.by.value;
            offset += step * s.stride;
        }
        return {x, offset + rest, grid.run - rest, rest, step, 0};
    }

    // locate(x + u * step).offset for several u, dimension by dimension; all of these x are below 2^31.
    template <int U>
    MPIX_FN void offsets(int64_t x, int64_t step, int64_t (&out)[U]) const {
        uint32_t rest[U];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int u = 0; u < U; ++u) {
            rest[u] = static_cast<uint32_t>(x + u * step);
            out[u] = grid.offset;
        }
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
        for (int k = static_cast<int>(grid.dimensions) - 1; k >= 0; --k) {
            const mpix_step &s = grid.step[k];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (int u = 0; u < U; ++u) {
                const uint32_t taken = divide_narrow(rest[u], s.by);
                rest[u] -= taken * static_cast<uint32_t>(s.by.value);
                out[u] += static_cast<int64_t>(taken) * s.stride;
            }
        }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int u = 0; u < U; ++u) out[u] += rest[u];
    }

    MPIX_FN void advance(cursor &c, int64_t bytes) const {
        c.x += bytes;
        c.offset += bytes;
        c.left -= bytes;
        if (c.left != 0) return;
        if (++c.index == grid.step[0].count) {
            c = locate(c.x);
        } else {
            c.offset += grid.step[0].stride - grid.run;
            c.left = grid.run;
            c.into = 0;
        }
    }
};

struct run_map {
    const mpix_typemap &type;

    MPIX_FN explicit run_map(const mpix_typemap &t) : type(t) {}

    MPIX_FN int64_t find(int64_t rest) const {
        const mpix_run_table &t = type.table;
        if (t.equal != 0) return divide(rest, t.by_equal);
        const int64_t b = rest >> t.shift;
        int64_t low = t.bucket[b], high = t.bucket[b + 1];
        while (low < high) {
            const int64_t middle = (low + high + 1) / 2;
            if (t.packed[middle] <= rest)
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }

    MPIX_FN cursor locate(int64_t x) const {
        const mpix_run_table &t = type.table;
        const int64_t element = divide(x, type.by_size), rest = x - element * type.size, run = find(rest);
        const int64_t begin = t.equal != 0 ? run * t.equal : t.packed[run];
        const int64_t end = t.equal != 0 ? begin + t.equal : t.packed[run + 1];
        const int64_t origin = element * type.extent;
        return {x, origin + t.offset[run] + rest - begin, end - rest, rest - begin, run, origin};
    }

    MPIX_FN void advance(cursor &c, int64_t bytes) const {
        c.x += bytes;
        c.offset += bytes;
        c.left -= bytes;
        if (c.left != 0) return;
        const mpix_run_table &t = type.table;
        if (++c.index == t.runs) {
            c.index = 0;
            c.origin += type.extent;
        }
        c.offset = c.origin + t.offset[c.index];
        c.left = t.equal != 0 ? t.equal : t.packed[c.index + 1] - t.packed[c.index];
        c.into = 0;
    }
};

struct box_map {
    const mpix_typemap &type;

    MPIX_FN explicit box_map(const mpix_typemap &t) : type(t) {}

    MPIX_FN cursor locate(int64_t x) const {
        const int64_t element = divide(x, type.by_size), at = x - element * type.size;
        for (int64_t b = 0; b < type.number_of_boxes; ++b) {
            const mpix_grid &box = type.boxes[b];
            if (at < box.packed || at >= box.end) continue;
            int64_t rest = at - box.packed, offset = box.offset;
            for (int64_t k = box.dimensions - 1; k >= 0; --k) {
                const mpix_step &s = box.step[k];
                // Beyond the last step are bytes of other boxes.
                const int64_t step = divide(rest, s.by), last = s.count - 1, taken = step < last ? step : last;
                rest -= taken * s.by.value;
                offset += taken * s.stride;
            }
            if (rest < box.run) {
                const int64_t origin = element * type.extent;
                return {x, origin + offset + rest, box.run - rest, rest, b, origin};
            }
        }
        // Every packed byte of a datatype is in a box; of a plan from elsewhere it may not be, but it is in the span.
        return {x, element * type.extent + type.low, 1, 0, 0, element * type.extent};
    }

    MPIX_FN void advance(cursor &c, int64_t bytes) const {
        c.x += bytes;
        c.offset += bytes;
        c.left -= bytes;
        if (c.left == 0) c = locate(c.x);
    }
};

// Of the packed bytes [begin, begin + bytes), at least one, all memory is before `buffer` plus this.
MPIX_FN int64_t memory_end(const mpix_typemap &type, int64_t begin, int64_t bytes) {
    const int64_t first = divide(begin, type.by_size), last = divide(begin + bytes - 1, type.by_size);
    return (type.extent < 0 ? first : last) * type.extent + type.high;
}

// The widest word, 16, 8, 4 or 1 bytes, that all runs of the packed bytes [begin, begin + bytes) are made of, on both
// sides; `packed` is where byte `begin` lies.
MPIX_FN int word_size(const mpix_typemap &type, const char *memory, const char *packed, int64_t begin, int64_t bytes) {
    uint64_t all = type.alignment | reinterpret_cast<uint64_t>(memory) |
                   (reinterpret_cast<uint64_t>(packed) - static_cast<uint64_t>(begin));
    if (begin + bytes > type.size) all |= static_cast<uint64_t>(type.extent) | static_cast<uint64_t>(type.size);
    return (all & 15) == 0 ? 16 : (all & 7) == 0 ? 8 : (all & 3) == 0 ? 4 : 1;
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_TYPEMAP_H
