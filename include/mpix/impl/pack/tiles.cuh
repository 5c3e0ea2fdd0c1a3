// SPDX-License-Identifier: BSD-3-Clause
//
// How a message is moved, and one block's share of it.
#ifndef MPIX_IMPL_PACK_TILES_CUH
#define MPIX_IMPL_PACK_TILES_CUH

#include <mpix/impl/pack/bytes.cuh>
#include <mpix/impl/pack/lanes.cuh>
#include <mpix/impl/pack/units.cuh>

namespace mpix::detail {

// The kernels' word size W, and what it stands for:
//   16, 8, 4  units: a thread moves 16 packed bytes. Right if the written side is contiguous, or has such words. Grids
//             are unpacked by W < 16 one word per lane, as smaller words are scattered.
//   1         at any alignment. Pack: packed words that come from two runs. Unpack of grids: by cells; or by single
//             bytes, one per lane, if the rows are so short that their ends, stored in parts, would be most of the
//             work.
constexpr int64_t shortest_row_of_cells = 128;
// Packed rows shorter than 16 bytes, and farther apart than this, go by W = 1, so that neighbouring lanes have
// neighbouring rows. By units, each lane's four rows would be far from the next lane's.
constexpr int64_t far_apart = 64;

MPIX_FN bool goes_by_cells(const grid_map &map) { return map.run() >= shortest_row_of_cells; }

template <bool Unpack>
MPIX_FN int kernel_word(const mpix_typemap &type, const char *memory, const char *packed, int64_t begin,
                        int64_t bytes) {
    const int word = word_size(type, memory, packed, begin, bytes);
    if (word == 16 || type.kind != MPIX_TYPEMAP_GRID) return word;
    const int64_t distance = type.grid.step[0].stride;
    if (Unpack && goes_by_cells(grid_map(type))) return 1;
    if (!Unpack && type.grid.run < 16 && (distance >= far_apart || -distance >= far_apart)) return 1;
    return word;
}

template <int W, bool Unpack, class Map>
inline constexpr bool goes_by_lanes = is_grid<Map> &&Unpack &&W < 16;

// How many words a thread has under way, U being 1 or 4: the more bytes the better, as far as there are registers.
template <int W, int U>
inline constexpr int lanes_each = U == 1 ? 2 : 8;
template <int U>
inline constexpr int row_lanes_each = U == 1 ? 2 : 4;
template <int U>
inline constexpr int cells_each = U == 1 ? 1 : 2;
template <int N, int U, class Map>
inline constexpr int joined_each = U == 1         ? 1
                                   : N < 16       ? 4
                                   : is_grid<Map> ? 3
                                                  : 2;

// Calls f(packed_word) with the longest packed word that always comes from at most two runs.
template <int N>
struct packed_word {
    static constexpr int bytes = N;
};
template <class Map, class F>
MPIX_FN auto with_packed_word(const Map &map, const F &f) {
    if constexpr (is_grid<Map>) {
        if (map.run() < 7) return f(packed_word<4>{});
        if (map.run() < 15) return f(packed_word<8>{});
    }
    return f(packed_word<16>{});
}

template <int W, int U, bool Unpack, class Map>
MPIX_FN int64_t number_of_tiles(const packing_job<Map> &job, int64_t threads) {
    const auto tiles = [&](int64_t all, int each) { return (all + threads * each - 1) / (threads * each); };
    if constexpr (goes_by_lanes<W, Unpack, Map>) {
        if (W == 1 && goes_by_cells(job.map)) return tiles(cells_of(job).cells, cells_each<U>);
        if (W == 1 && goes_by_row_lanes(job.map.grid)) return tiles(number_of_row_lanes(job), row_lanes_each<U>);
        return tiles(job.template words<W>(), lanes_each<W, U>);
    } else if constexpr (W == 1 && !Unpack) {
        return with_packed_word(job.map, [&](auto word) {
            constexpr int N = decltype(word)::bytes;
            return tiles(job.template words<N>(), joined_each<N, U, Map>);
        });
    } else {
        return tiles(job.template words<16>(), U);
    }
}

template <int W, int U>
MPIX_FN void unpack_lane_tile(const packing_job<grid_map> &job, int64_t index, int64_t rank, int64_t threads) {
    if constexpr (W == 1)
        if (goes_by_cells(job.map))
            return unpack_cells<cells_each<U>>(job, index * threads * cells_each<U> + rank, threads);
    if constexpr (W == 1)
        if (goes_by_row_lanes(job.map.grid))
            return unpack_row_lanes<row_lanes_each<U>>(job, index * threads * row_lanes_each<U> + rank, threads);
    constexpr int n = lanes_each<W, U>;
    const int64_t words = job.words<W>(), first = index * threads * n, end = first + threads * n;
    // The first and the last word of a message may be parts of one.
    if (first > 0 && end < words && is_narrow(job.begin + end * W))
        return unpack_whole_lanes<W, n>(job, job.begin + job.word_begin(W, first + rank), threads * W);
    for (int64_t k = first + rank; k < end && k < words; k += threads) unpack_lane<W>(job, job.word_begin(W, k));
}

template <int U, class Map>
MPIX_FN void pack_byte_tile(const packing_job<Map> &job, int64_t index, int64_t rank, int64_t threads) {
    int bytes = 0;
    int64_t first = 0;
    unsigned undone = 0;
    with_packed_word(job.map, [&](auto word) {
        constexpr int N = decltype(word)::bytes, each = joined_each<N, U, Map>;
        bytes = N;
        first = index * threads * each + rank;
        undone = pack_words<N, each>(job, first, threads);
    });
    for (; undone != 0; first += threads, undone >>= 1) {
        const auto p = job.word(bytes, first);
        if ((undone & 1) == 0) continue;
        if constexpr (is_grid<Map>) {  // the ends of the message, and tiny rows where they are not straight
            for (int64_t x = p.from; x < p.to; ++x)
                store_word(job.packed + x, load_word<uint8_t>(job.memory + job.map.locate(job.begin + x).offset));
        } else if (p.from < p.to) {
            store_bytes(job.packed + p.from, gather_bytes(job, job.begin + p.from, p.bytes()), p.bytes());
        }
    }
}

// Tile `index`, by thread `rank` of it.
template <int W, int U, bool Unpack, class Map>
MPIX_FN void do_tile(const packing_job<Map> &job, int64_t index, int64_t rank, int64_t threads) {
    if constexpr (goes_by_lanes<W, Unpack, Map>) {
        unpack_lane_tile<W, U>(job, index, rank, threads);
    } else if constexpr (W == 1 && !Unpack) {
        pack_byte_tile<U>(job, index, rank, threads);
    } else {
        const int64_t units = job.template words<16>(), first = index * threads * U;
        int64_t end = first + threads * U;
        // The first and the last unit of a message may be parts of one.
        const bool inside = U > 1 && first > 0 && end < units;
        if (end > units) end = units;
        if constexpr (W == 1) {
            if (!inside || !unpack_inner_units<U>(job, first + rank, threads))
                unpack_aligned(job, first + rank, threads, end);
        } else if constexpr (Unpack) {
            if (inside)
                unpack_whole_units<W, U>(job, first + rank, threads);
            else
                unpack_units<W>(job, first + rank, threads, end);
        } else {
            if (inside)
                pack_whole_units<W, U>(job, first + rank, threads);
            else
                pack_units<W>(job, first + rank, threads, end);
        }
    }
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_TILES_CUH
