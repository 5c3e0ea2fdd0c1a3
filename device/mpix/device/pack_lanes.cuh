// SPDX-License-Identifier: BSD-3-Clause
//
// Unpacking of grids by one word a lane, so that what a warp stores at once lies close together in memory: a sector
// written by several instructions costs the second-level cache as many writes.
//
// By words of W bytes: neighbouring lanes take neighbouring words of the packed side.
// By cells, for rows that are not made of words: neighbouring lanes take neighbouring aligned 4-byte words of the
// *memory* side, and put each together from the two packed words that it lies in.
#ifndef MPIX_DEVICE_PACK_LANES_CUH
#define MPIX_DEVICE_PACK_LANES_CUH

#include <mpix/device/packing_job.cuh>

namespace mpix::detail {

// ---- by words of W bytes ----------------------------------------------------------------------------------------

// Word k is the one that begins `at` bytes after packed, or a part of it at the message's two ends.
template <int W, class Map>
MPIX_FN int64_t word_begin(const packing_job<Map> &job, int64_t k) {
    return W * k - static_cast<int64_t>(reinterpret_cast<uint64_t>(job.packed) & (W - 1));
}
template <int W, class Map>
MPIX_FN int64_t words_in(const packing_job<Map> &job) {
    return (job.bytes - word_begin<W>(job, 0) + W - 1) / W;
}

// Words that lie `step` apart, all whole: all loads first, and each dimension is gone through for all of them.
template <int W, int U>
MPIX_FN void unpack_whole_lanes(const packing_job<grid_map> &job, int64_t first, int64_t step) {
    using word = typename word_of<W>::type;
    word v[U];
    const char *const from = job.packed + word_begin<W>(job, first);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) v[u] = load_word<word>(from + u * step * W);
    int64_t offset[U];
    job.map.template offsets<U>(job.begin + word_begin<W>(job, first), step * W, offset);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) store_word(job.memory + offset[u], v[u]);
}

template <int W>
MPIX_FN void unpack_lane(const packing_job<grid_map> &job, int64_t k) {
    using word = typename word_of<W>::type;
    int64_t from = word_begin<W>(job, k), to = from + W;
    if (from >= 0 && to <= job.bytes) {
        store_word(job.memory + job.map.locate(job.begin + from).offset, load_word<word>(job.packed + from));
        return;
    }
    if (to > job.bytes) to = job.bytes;
    for (int64_t x = from < 0 ? 0 : from; x < to; ++x)
        store_word(job.memory + job.map.locate(job.begin + x).offset, load_word<uint8_t>(job.packed + x));
}

// ---- by cells ---------------------------------------------------------------------------------------------------

// Every row has as many cells as the 4-byte words that it may touch; the last may be empty. Those of a message:
struct cell_range {
    int64_t row, skipped;  // the first row, and its cells that are entirely before the message
    int64_t cells;
};
MPIX_FN cell_range cells_of(const packing_job<grid_map> &job) {
    const mpix_grid &grid = job.map.grid;
    // Contiguous memory is one row without an end; its step is all zeros, which divides to 0.
    const int64_t last_byte = job.begin + job.bytes - 1;
    const int64_t first = divide(job.begin, grid.step[0].by), last = divide(last_byte, grid.step[0].by);
    const int64_t skipped = (job.begin - first * grid.step[0].by.value) >> 2;
    const int64_t last_cell = (last_byte - last * grid.step[0].by.value + 3) >> 2;
    return {first, skipped, (last - first) * grid.by_cells.value + last_cell + 1 - skipped};
}

struct cell {
    char *memory;            // aligned to 4
    const char *packed;      // of the byte at `memory`
    int64_t before, behind;  // the row's bytes among these four are [before, behind)
    MPIX_FN bool whole() const { return before <= 0 && behind >= 4; }
};

MPIX_FN cell find_cell(const packing_job<grid_map> &job, int64_t first_row, int64_t k) {
    const mpix_grid &grid = job.map.grid;
    const int64_t q = is_narrow(k) ? divide_narrow(static_cast<uint32_t>(k), grid.by_cells) : divide(k, grid.by_cells);
    const int64_t x = (first_row + q) * grid.step[0].by.value, in_message = x - job.begin;  // of the row's first byte
    char *const memory = job.memory + job.map.locate(x).offset;
    const int64_t at = 4 * (k - q * grid.by_cells.value) - static_cast<int64_t>(reinterpret_cast<uint64_t>(memory) & 3);
    const int64_t begin = in_message < 0 ? -in_message : 0,
                  end = job.bytes - in_message < grid.run ? job.bytes - in_message : grid.run;
    return {memory + at, job.packed + in_message + at, begin - at, end - at};
}

MPIX_FN void unpack_edge(const cell &c) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < 4; ++i)
        if (i >= c.before && i < c.behind) store_word(c.memory + i, load_word<uint8_t>(c.packed + i));
}

template <int U>
MPIX_FN void unpack_cells(const packing_job<grid_map> &job, int64_t first, int64_t step) {
    const cell_range range = cells_of(job);
    cell c[U];
    uint32_t low[U], high[U];
    bool whole[U];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) {
        const int64_t k = first + u * step;
        whole[u] = false;
        c[u] = {nullptr, nullptr, 0, 0};
        if (k >= range.cells) continue;
        c[u] = find_cell(job, range.row, k + range.skipped);
        const int skew = static_cast<int>(reinterpret_cast<uint64_t>(c[u].packed) & 3);
        const char *const from = c[u].packed - skew;
        whole[u] = c[u].whole() && from + 8 <= job.readable_end;
        if (!whole[u]) continue;
        low[u] = load_word<uint32_t>(from);
        high[u] = load_word<uint32_t>(from + 4);
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) {
        if (whole[u])
            store_word(c[u].memory,
                       funnel(low[u], high[u], 8 * static_cast<int>(reinterpret_cast<uint64_t>(c[u].packed) & 3)));
        else
            unpack_edge(c[u]);
    }
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_PACK_LANES_CUH
