// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and unpacking of large messages through a block's shared memory, for grids whose rows do not consist of
// aligned 16-byte words. Aligned 16-byte words are copied to shared memory, which takes no registers, and are put
// together there. A tile has two parts with a barrier in between; every thread of the block runs both.
#ifndef MPIX_IMPL_PACK_STAGED_CUH
#define MPIX_IMPL_PACK_STAGED_CUH

#include <mpix/impl/pack/lanes.cuh>

namespace mpix::detail {

// Up to this many bytes before and behind the stage may be read, as long as they are not used.
constexpr int stage_margin = 32;
constexpr int line = 128;  // of the first-level cache: what eight lanes read shall lie in one
constexpr int64_t longest_staged_row = int64_t{1} << 24;  // so that places in a tile are small numbers

// A 16-byte word of memory that may be read up to `end`.
MPIX_FN void stage_word(char *to, const char *from, const char *end) {
    if (from + 16 > end) {
        for (int i = 0; from + i < end; ++i) to[i] = static_cast<char>(load_word<uint8_t>(from + i));
        return;
    }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // what is older stores the word as any other
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
#else
    const auto word = load_word<block16>(from);
    memcpy(to, &word, sizeof word);
#endif
}
// Before the barrier.
MPIX_FN void finish_staging() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// N bytes from any byte of the stage on.
template <int N>
MPIX_FN typename word_of<N>::type staged(const char *stage, int at) {
    if constexpr (N == 1) {
        return static_cast<uint8_t>(stage[at]);
    } else if constexpr (N == 4) {
        const auto *const words = reinterpret_cast<const uint32_t *>(stage + (at & ~3));
        return funnel(words[0], words[1], 8 * (at & 3));
    } else {
        const auto *const words = reinterpret_cast<const block16 *>(stage + (at & ~15));
        const block16 a = words[0], b = words[1];
        const bool upper = (at & 8) != 0;
        const uint64_t x = upper ? a.high : a.low, y = upper ? b.low : a.high, z = upper ? b.high : b.low;
        const uint32_t half[6] = {lower_half(x), upper_half(x), lower_half(y),
                                  upper_half(y), lower_half(z), upper_half(z)};
        uint32_t word[5], out[4];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < 5; ++i) word[i] = (at & 4) != 0 ? half[i + 1] : half[i];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < 4; ++i) out[i] = funnel(word[i], word[i + 1], 8 * (at & 3));
        return join_words<16>(out);
    }
}

// The rows of a grid from one on, by small numbers.
struct near_rows {
    const packing_job<grid_map> &job;
    int64_t first;
    char *memory;  // of the first
    int run;

    MPIX_FN near_rows(const packing_job<grid_map> &j, int64_t row)
        : job(j),
          first(row),
          memory(j.memory + j.map.locate(row * j.map.run()).offset),
          run(static_cast<int>(j.map.run())) {}
    MPIX_FN char *at(int row) const {
        if (job.map.grid.dimensions == 1) return memory + row * job.map.distance();
        return job.memory + job.map.locate((first + row) * run).offset;
    }
    MPIX_FN const mpix_divisor &by_run() const { return job.map.grid.step[0].by; }
};
MPIX_FN int misalignment(const void *p, int to) { return static_cast<int>(reinterpret_cast<uint64_t>(p)) & (to - 1); }

// ---- pack -------------------------------------------------------------------------------------------------------

// How the memory side is staged. rows: the 16-byte words that each row touches. span: near rows, with the memory
// between them. bytes: the rows' bytes alone.
enum class staging { rows, span, bytes };

// What wins on an H200, for rows that kernel_word() gives `word`.
enum class pack_way { plain, rows, span, bytes };
inline pack_way choose_pack_way(const mpix_typemap &type, int word) {
    const mpix_grid &grid = type.grid;
    if (word != 1 || type.kind != MPIX_TYPEMAP_GRID || grid.dimensions == 0 || grid.run >= longest_staged_row)
        return pack_way::plain;
    const int64_t distance = grid.step[0].stride;
    if (grid.run >= 80) return pack_way::rows;
    // A tile that goes on beyond the innermost dimension takes as many turns.
    const bool straight = grid.dimensions == 1 || grid.step[0].count * grid.run >= 4096;
    if (grid.run < 15 && distance > grid.run && distance <= 4 * grid.run && straight) return pack_way::span;
    return grid.run < 4 ? pack_way::bytes : pack_way::plain;
}

// The tile's packed bytes, counted from the message's first.
struct packed_part {
    int64_t from, to;
};
template <staging How>
struct staged_pack {
    near_rows rows;
    packed_part part;
    int into;     // where in the first row the part begins
    int skipped;  // of the first row, no more cells than there are before the part
    int cells;    // of a row
    int skew;     // span: of the first row. bytes: of the packed side

    // Of the stage, for so many packed bytes.
    static int stage_bytes(const mpix_grid &grid, int tile) {
        const int64_t rows = tile / grid.run + 3;  // or parts of one
        if constexpr (How == staging::rows) return static_cast<int>(tile + 32 * rows);
        if constexpr (How == staging::span) return static_cast<int>(rows * grid.step[0].stride + 32);
        return tile + 4;
    }
    // Of the packed bytes [from, to) those up to here can be one part.
    static MPIX_FN int64_t end_of_part(const packing_job<grid_map> &job, int64_t from, int64_t to) {
        if (How != staging::span || job.map.grid.dimensions == 1) return to;
        const cursor c = job.map.locate(job.begin + from);
        const int64_t rows = job.map.grid.step[0].count - c.index;
        return rows < to - from && from - c.into + rows * job.map.run() < to ? from - c.into + rows * job.map.run()
                                                                             : to;
    }

    MPIX_FN staged_pack(const packing_job<grid_map> &job, const packed_part &p)
        : rows(job, divide(job.begin + p.from, job.map.grid.step[0].by)), part(p) {
        into = static_cast<int>(job.begin + p.from - rows.first * rows.run);
        skipped = How == staging::rows ? into >> 4 : 0;
        cells = static_cast<int>(job.map.grid.by_cells.value);
        skew = How == staging::span ? misalignment(rows.memory, 16) : misalignment(job.packed + p.from, 4);
    }

    MPIX_FN void load(char *stage, int rank, int threads) const {
        const int bytes = static_cast<int>(part.to - part.from), last = into + bytes - 1;
        const int last_row = static_cast<int>(divide_narrow(static_cast<uint32_t>(last), rows.by_run()));
        const char *const end = rows.job.readable_end;
        if constexpr (How == staging::bytes) {
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
            for (int i = rank; i < bytes; i += threads) {
                const int row = static_cast<int>(divide_narrow(static_cast<uint32_t>(into + i), rows.by_run()));
                stage[skew + i] = static_cast<char>(load_word<uint8_t>(rows.at(row) + into + i - row * rows.run));
            }
        } else if constexpr (How == staging::span) {
            const int span = skew + last + last_row * static_cast<int>(rows.job.map.distance() - rows.run);
            const char *const from = rows.memory - skew;
            for (int k = 16 * rank - misalignment(from, line); k <= span; k += 16 * threads)
                if (k >= 0) stage_word(stage + k, from + k, end);
        } else {
            const int all = last_row * cells + (last - last_row * rows.run + 15) / 16 + 1;
            for (int k = skipped + rank; k < all; k += threads) {
                const int row = static_cast<int>(divide_narrow(static_cast<uint32_t>(k), rows.job.map.grid.by_cells));
                const char *const memory = rows.at(row);
                const int at = 16 * (k - row * cells) - misalignment(memory, 16);
                if (at < rows.run) stage_word(stage + 16 * (k - skipped), memory + at, end);
            }
        }
        finish_staging();
    }

    // Of byte x of the rows, from the first row's beginning on.
    MPIX_FN int place(int row, int x) const {
        if constexpr (How == staging::bytes) return skew + x - into;
        if constexpr (How == staging::span)
            return skew + x + row * static_cast<int>(rows.job.map.distance() - rows.run);
        return 16 * (row * cells - skipped) + misalignment(rows.at(row), 16) + x - row * rows.run;
    }
    MPIX_FN int row_of(int x) const { return static_cast<int>(divide_narrow(static_cast<uint32_t>(x), rows.by_run())); }

    // Words of N bytes of the packed side; a whole tile has `Tile` bytes and begins with such a word.
    template <int N, int Tile, int Threads>
    MPIX_FN void store(const char *stage, int rank) const {
        if (part.to - part.from == Tile) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (int u = 0; u < Tile / N / Threads; ++u) store_one(stage, N * (rank + u * Threads));
            return;
        }
        const int lead = misalignment(rows.job.packed + part.from, N), bytes = static_cast<int>(part.to - part.from);
        for (int at = N * rank - lead; at < bytes; at += N * Threads) {
            if (at >= 0 && at + N <= bytes) {
                store_one(stage, at);
                continue;
            }
            for (int i = at < 0 ? 0 : at; i < bytes && i < at + N; ++i)
                store_word(rows.job.packed + part.from + i, staged<1>(stage, place(row_of(into + i), into + i)));
        }
    }
    MPIX_FN void store_one(const char *stage, int at) const {
        char *const to = rows.job.packed + part.from + at;
        const int x = into + at;
        if constexpr (How == staging::bytes) {
            store_word(to, *reinterpret_cast<const uint32_t *>(stage + skew + at));
        } else if constexpr (How == staging::span) {
            const int row = row_of(x), gap = static_cast<int>(rows.job.map.distance()) - rows.run;
            int from = place(row, x), left = (row + 1) * rows.run - x;
            uint32_t byte[4];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (int i = 0; i < 4; ++i) {
                byte[i] = staged<1>(stage, from);
                --left;
                from += left == 0 ? gap + 1 : 1;
                left = left == 0 ? rows.run : left;
            }
            store_word(to, byte[0] | byte[1] << 8 | byte[2] << 16 | byte[3] << 24);
        } else {
            const int row = row_of(x), left = (row + 1) * rows.run - x;
            block16 word = staged<16>(stage, place(row, x));
            if (left < 16) {
                const block16 next = staged<16>(stage, place(row + 1, x));
                const block16 mask = first_bytes({~uint64_t{0}, ~uint64_t{0}}, left);
                word.low = (word.low & mask.low) | (next.low & ~mask.low);
                word.high = (word.high & mask.high) | (next.high & ~mask.high);
            }
            store_word(to, word);
        }
    }
};

// ---- unpack -----------------------------------------------------------------------------------------------------

// Makes the second-level cache read the rest of a sector that will be written in part. By itself it does so when it
// needs the space, which takes up to twice as long if the row has other sectors as well.
MPIX_FN void expect_part(const char *at) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
#else
    static_cast<void>(at);
#endif
}
// The same for what a block will write: bytes [from, to), counted from `rows.memory` on.
MPIX_FN void expect_parts(const near_rows &rows, int from, int to, int rank, int threads) {
    if (from >= to) return;
    const int last_row = static_cast<int>(divide_narrow(static_cast<uint32_t>(to - 1), rows.by_run()));
    const int64_t distance = rows.job.map.distance();
    if (rows.job.map.grid.dimensions == 1 && distance > 0 && distance < 64) {
        const char *const end = rows.at(last_row) + rows.run;
        for (const char *p = rows.memory + 64 * rank; p < end; p += 64 * threads) expect_part(p);
        return;
    }
    for (int i = rank; i < 2 * (last_row + 1); i += threads) {
        const int row = i >> 1, upper = i & 1, x = row * rows.run + upper * (rows.run - 1);
        const char *const end = rows.at(row) + upper * rows.run;
        if (x >= from && x < to && misalignment(end, sector) != 0) expect_part(end - upper);
    }
}
// For tile `index` of do_tile(), of `tile` bytes.
MPIX_FN void expect_tile(const packing_job<grid_map> &job, int W, int64_t index, int tile, int rank, int threads) {
    const int64_t begin = job.word_begin(W, 0) + index * tile, end = begin + tile;
    const int64_t from = begin < 0 ? 0 : begin, to = end < job.bytes ? end : job.bytes;
    const near_rows rows(job, divide(job.begin + from, job.map.grid.step[0].by));
    const int64_t base = rows.first * rows.run - job.begin;
    expect_parts(rows, static_cast<int>(from - base), static_cast<int>(to - base), rank, threads);
}

// What wins on an H200. expecting: as without a stage, after expect_tile(). lanes: without a stage, a byte a lane even if
// rows are made of words.
enum class unpack_way { plain, expecting, lanes, words, words_expecting, cells };
inline unpack_way choose_unpack_way(const mpix_typemap &type, int word) {
    const mpix_grid &grid = type.grid;
    if (type.kind != MPIX_TYPEMAP_GRID || grid.dimensions == 0 || grid.run >= longest_staged_row)
        return unpack_way::plain;
    const int64_t run = grid.run, distance = grid.step[0].stride < 0 ? -grid.step[0].stride : grid.step[0].stride;
    if (goes_by_row_lanes(grid)) return unpack_way::lanes;
    if (word == 16) {
        if (run < 32 || ((run | distance) & (sector - 1)) == 0) return unpack_way::plain;
        return run < 64 && distance >= 112 ? unpack_way::words_expecting : unpack_way::expecting;
    }
    if (run >= 160) return unpack_way::cells;
    if (word == 1) {
        if (run >= 40) return unpack_way::words_expecting;
        return run > 30 && run != sector && distance >= 96 ? unpack_way::expecting : unpack_way::plain;
    }
    if (run >= 32) return unpack_way::words_expecting;
    // A row with a sector of its own costs least the plain way, and so do rows that divide a sector evenly.
    if (distance >= 64) return run > 16 ? unpack_way::words : unpack_way::plain;
    return distance == 0 || sector % distance == 0 ? unpack_way::plain : unpack_way::words_expecting;
}

// By cells, which are the aligned words of N bytes of the memory side. A tile has `tile` of them.
template <int N>
struct staged_unpack {
    near_rows rows;
    const mpix_divisor &by_cells;
    int first_cell, last_cell;  // counted from those of the first row
    int from, to;               // bytes of the rows that may be needed, counted likewise, in the message
    int skew;                   // of `from` in the packed memory

    // Of a row, whatever it is aligned to, or if it is made of aligned words.
    static int64_t cells_of_row(int64_t run, bool whole) { return whole ? run / N : (run + N - 2) / N + 1; }
    static int stage_bytes(int tile) { return N * (tile + 3) + 16; }

    static MPIX_FN int64_t first_row(const packing_job<grid_map> &job) {
        return divide(job.begin, job.map.grid.step[0].by);
    }
    static MPIX_FN int64_t cells(const packing_job<grid_map> &job, const mpix_divisor &by_cells) {
        return (divide(job.begin + job.bytes - 1, job.map.grid.step[0].by) - first_row(job) + 1) * by_cells.value;
    }

    MPIX_FN staged_unpack(const packing_job<grid_map> &job, const mpix_divisor &by, int64_t index, int tile)
        : rows(job, first_row(job) + divide(index * tile, by)), by_cells(by) {
        const int64_t skipped = (rows.first - first_row(job)) * by.value, left = cells(job, by) - skipped;
        first_cell = static_cast<int>(index * tile - skipped);
        last_cell = static_cast<int>(left < first_cell + tile ? left : first_cell + tile) - 1;
        const int last_row = row_of(last_cell);
        const int64_t begin = job.begin - rows.first * rows.run, end = begin + job.bytes;
        from = N * (first_cell - 1) + 1;  // in the first row, whatever it is aligned to
        if (from < 0) from = 0;
        to = N * (last_cell + 1 - last_row * static_cast<int>(by.value));
        to = last_row * rows.run + (to < rows.run ? to : rows.run);
        if (from < begin) from = static_cast<int>(begin);
        if (to > end) to = static_cast<int>(end);
        skew = misalignment(packed(from), 16);
    }
    MPIX_FN int row_of(int cell) const {
        return static_cast<int>(divide_narrow(static_cast<uint32_t>(cell), by_cells));
    }
    MPIX_FN const char *packed(int x) const { return rows.job.packed + (rows.first * rows.run - rows.job.begin + x); }

    MPIX_FN void load(char *stage, bool expect, int rank, int threads) const {
        const int bytes = to - from;
        const char *const begin = packed(from) - skew;
        for (int k = 16 * rank - misalignment(begin, line); k < skew + bytes; k += 16 * threads)
            if (k >= 0) stage_word(stage + k, begin + k, rows.job.readable_end);
        if (expect) expect_parts(rows, from, to, rank, threads);
        finish_staging();
    }

    template <int Tile, int Threads>
    MPIX_FN void store(const char *stage, int rank) const {
        if (last_cell - first_cell == Tile - 1) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (int u = 0; u < Tile / Threads; ++u) store_cell(stage, first_cell + rank + u * Threads);
        } else {
            for (int k = first_cell + rank; k <= last_cell; k += Threads) store_cell(stage, k);
        }
    }
    MPIX_FN void store_cell(const char *stage, int k) const {
        const int row = row_of(k);
        char *const memory = rows.at(row);
        const int at = N * (k - row * static_cast<int>(by_cells.value)) - misalignment(memory, N);
        const int x = row * rows.run + at;
        int begin = at < 0 ? -at : 0, end = at + N > rows.run ? rows.run - at : N;
        if (begin < from - x) begin = from - x;
        if (end > to - x) end = to - x;
        if (begin < end) store_part(memory + at, staged<N>(stage, skew + x - from), begin, end);
    }
};

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_STAGED_CUH
