// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and unpacking where runs are not made of aligned words (W = 1): what is stored are aligned words
// nevertheless, put together by shifting from the aligned 4-byte words that their bytes lie in.
//
// Pack: a thread's packed word is so long that two runs give it, all of whose loads are under way together and without
// a branch that depends on where it is cut.
// Unpack of grids, long rows (others: pack/lanes.cuh): neighbouring threads take neighbouring cells, which are the
// 16-byte words of the *memory* side. The two at a row's ends are stored in parts, each by the widest stores.
// Unpack of other maps: a thread writes the 16-byte words of the memory side that begin in its 16 packed bytes.
#ifndef MPIX_IMPL_PACK_BYTES_CUH
#define MPIX_IMPL_PACK_BYTES_CUH

#include <mpix/impl/pack/units.cuh>

namespace mpix::detail {

// ---- pack -------------------------------------------------------------------------------------------------------

// A packed word of N bytes: `before` of one run, the others of the next.
template <int N>
struct joined {
    raw_words<N> first, second;
    int before;
};

// False, with nothing to be used, where it lies in more than two runs, or is not whole, or loads would go too far.
template <int N, class Map>
MPIX_FN bool load_joined(const packing_job<Map> &job, int64_t k, joined<N> &out) {
    const int64_t from = job.word_begin(N, k);
    if (from < 0 || from + N > job.bytes) return false;
    cursor c = job.map.locate(job.begin + from);
    out.before = c.left < N ? static_cast<int>(c.left) : N;
    const char *at = job.memory + c.offset;
    if (!words_end_before(at + out.before, job.readable_end)) return false;
    out.first = load_raw<N>(at, 0, out.before);
    if (out.before == N) return true;
    job.map.advance(c, out.before);
    at = job.memory + c.offset - out.before;
    if (c.left < N - out.before || !words_end_before(at + N, job.readable_end)) return false;
    out.second = load_raw<N>(at, out.before, N);
    return true;
}

template <int N>
MPIX_FN typename word_of<N>::type join(const joined<N> &v) {
    uint32_t word[N / 4];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < N / 4; ++i) {
        const uint32_t mask = low_bytes(v.before - 4 * i);
        word[i] = (v.first.at(i) & mask) | (v.second.at(i) & ~mask);
    }
    return join_words<N>(word);
}

// U words that lie `step` apart. Returns a bit for each word that is not done.
template <int N, int U, class Map>
MPIX_FN unsigned pack_joined(const packing_job<Map> &job, int64_t first, int64_t step) {
    joined<N> v[U] = {};
    unsigned undone = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u)
        if (!load_joined<N>(job, first + u * step, v[u])) undone |= 1u << u;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u)
        if ((undone >> u & 1) == 0) store_word(job.packed + job.word_begin(N, first + u * step), join(v[u]));
    return undone;
}

// The same for words of 4 bytes in runs of one or two, byte by byte.
template <int U>
MPIX_FN unsigned pack_tiny(const packing_job<grid_map> &job, int64_t first, int64_t step) {
    const int64_t run = job.map.run(), skip = job.map.distance() - run;
    uint32_t byte[U][4] = {};
    unsigned undone = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) {
        const int64_t from = job.word_begin(4, first + u * step);
        undone |= 1u << u;
        if (from < 0 || from + 4 > job.bytes) continue;
        const cursor c = job.map.locate(job.begin + from);
        if (!job.map.straight(c)) continue;
        undone ^= 1u << u;
        const char *at = job.memory + c.offset;
        int64_t left = c.left;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < 4; ++i) {
            byte[u][i] = load_word<uint8_t>(at);
            --left;
            at += left == 0 ? skip + 1 : 1;
            left = left == 0 ? run : left;
        }
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u)
        if ((undone >> u & 1) == 0)
            store_word(job.packed + job.word_begin(4, first + u * step),
                       byte[u][0] | byte[u][1] << 8 | byte[u][2] << 16 | byte[u][3] << 24);
    return undone;
}

template <int N, int U, class Map>
MPIX_FN unsigned pack_words(const packing_job<Map> &job, int64_t first, int64_t step) {
    if constexpr (N == 4)
        if (job.map.tiny_runs()) return pack_tiny<U>(job, first, step);
    return pack_joined<N, U>(job, first, step);
}

// ---- unpack of grids, by cells ----------------------------------------------------------------------------------

// Every row has as many cells as there are 16-byte words that it may touch; the last one may be empty. The cells of a
// message:
struct cell_range {
    int64_t row, skipped;  // the first row, and its cells that are entirely before the message
    int64_t cells;
};
MPIX_FN cell_range cells_of(const packing_job<grid_map> &job) {
    const mpix_grid &grid = job.map.grid;
    // Contiguous memory is one row without an end; its step is all zeros, which divides to 0.
    const int64_t last_byte = job.begin + job.bytes - 1;
    const int64_t first = divide(job.begin, grid.step[0].by), last = divide(last_byte, grid.step[0].by);
    const int64_t skipped = (job.begin - first * grid.step[0].by.value) >> 4;
    const int64_t last_cell = (last_byte - last * grid.step[0].by.value + 15) >> 4;
    return {first, skipped, (last - first) * grid.by_cells.value + last_cell + 1 - skipped};
}

struct cell {
    char *memory;        // aligned to 16
    const char *packed;  // of the byte at `memory`
    int begin, end;      // of these 16 bytes, those of the row
};
MPIX_FN cell find_cell(const packing_job<grid_map> &job, int64_t first_row, int64_t k) {
    const mpix_grid &grid = job.map.grid;
    const int64_t q = is_narrow(k) ? divide_narrow(static_cast<uint32_t>(k), grid.by_cells) : divide(k, grid.by_cells);
    const int64_t x = (first_row + q) * grid.step[0].by.value, in_message = x - job.begin;  // of the row's first byte
    char *const memory = job.memory + job.map.locate(x).offset;
    const int64_t at =
        16 * (k - q * grid.by_cells.value) - static_cast<int64_t>(reinterpret_cast<uint64_t>(memory) & 15);
    int64_t begin = in_message < 0 ? -in_message : 0,
            end = job.bytes - in_message < grid.run ? job.bytes - in_message : grid.run;
    begin = begin < at ? at : begin;
    end = end > at + 16 ? at + 16 : end;
    return {memory + at, job.packed + in_message + at, static_cast<int>(begin - at),
            end < begin ? 0 : static_cast<int>(end - at)};
}

template <int U>
MPIX_FN void unpack_cells(const packing_job<grid_map> &job, int64_t first, int64_t step) {
    const cell_range range = cells_of(job);
    cell c[U];
    raw_words<16> raw[U] = {};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) {
        const int64_t k = first + u * step;
        c[u] = {nullptr, nullptr, 0, 0};
        if (k >= range.cells) continue;
        c[u] = find_cell(job, range.row, k + range.skipped);
        if (words_end_before(c[u].packed + c[u].end, job.readable_end)) {
            raw[u] = load_raw<16>(c[u].packed, c[u].begin, c[u].end);
        } else {
            for (int i = c[u].begin; i < c[u].end; ++i)
                store_word(c[u].memory + i, load_word<uint8_t>(c[u].packed + i));
            c[u].end = 0;
        }
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u)
        if (c[u].begin < c[u].end) store_part(c[u].memory, assemble(raw[u]), c[u].begin, c[u].end);
}

// ---- unpack of other maps ---------------------------------------------------------------------------------------

// The words of the memory side that begin in bytes [from, to) after packed: those at 16-byte boundaries, and what of
// a run comes before its first boundary. A run that the message's first byte lies in begins with that byte.
template <class Map>
MPIX_FN void scatter_aligned(const packing_job<Map> &job, int64_t from, int64_t to) {
    cursor c = job.map.locate(job.begin + from);
    const auto move = [&](char *memory, int64_t at, int n) {
        store_bytes(memory, load_bytes(job.packed + at, n, job.readable_end), n);
    };
    for (int64_t at = from;;) {
        char *const memory = job.memory + c.offset;
        const int64_t left = c.left < job.bytes - at ? c.left : job.bytes - at;
        const int64_t boundary = static_cast<int64_t>((0 - reinterpret_cast<uint64_t>(memory)) & 15);
        if (boundary != 0 && (c.into == 0 || at == 0))
            move(memory, at, static_cast<int>(boundary < left ? boundary : left));
        if (boundary < left && at + boundary < to)
            move(memory + boundary, at + boundary, static_cast<int>(left - boundary < 16 ? left - boundary : 16));
        at += left;
        if (at >= to) return;
        job.map.advance(c, left);
    }
}

template <class Map>
MPIX_FN void unpack_aligned(const packing_job<Map> &job, int64_t first, int64_t step, int64_t end) {
    for (int64_t k = first; k < end; k += step) {
        const auto p = job.word(16, k);
        scatter_aligned(job, p.from, p.to);
    }
}

// The same for U units, each of them in the middle of a run; false, with nothing done, where one is not.
template <int U, class Map>
MPIX_FN bool unpack_inner_units(const packing_job<Map> &job, int64_t first, int64_t step) {
    const int64_t from = job.word_begin(16, first);
    raw_words<16> raw[U];
    char *to[U];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) {
        const int64_t at = from + 16 * u * step;
        const cursor c = job.map.locate(job.begin + at);
        char *const memory = job.memory + c.offset;
        const int64_t boundary = static_cast<int64_t>((0 - reinterpret_cast<uint64_t>(memory)) & 15);
        const char *const source = job.packed + at + boundary;
        // What is read ends before the message's last byte, and so does the word that is written.
        if (c.left < boundary + 16 || c.into == 0 || !words_end_before(source + 16, job.readable_end)) return false;
        to[u] = memory + boundary;
        raw[u] = load_raw<16>(source, 0, 16);
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) store_word(to[u], assemble(raw[u]));
    return true;
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_BYTES_CUH
