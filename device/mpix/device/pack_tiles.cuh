// SPDX-License-Identifier: BSD-3-Clause
//
// How a message is moved, and one block's share of it.
#ifndef MPIX_DEVICE_PACK_TILES_CUH
#define MPIX_DEVICE_PACK_TILES_CUH

#include <mpix/device/pack_lanes.cuh>
#include <mpix/device/pack_words.cuh>

namespace mpix::detail {

// Units: a thread moves 16 packed bytes, which is right where the written side is contiguous or made of such words.
// Where smaller words are scattered, one a lane. Rows that are not made of words: from some length on, the cells, of
// which at most two a row are moved by bytes, are fewer than the bytes.
// (An H200 says otherwise: rows of 15 bytes by bytes reach 0.79 of the limit, of 16 and more by cells 0.28 to 0.53.)
// So of the kernels that are made, those of grids that unpack by W < 16 go by lanes, and with W = 1:
constexpr int64_t shortest_row_of_cells = 16;
MPIX_FN bool goes_by_cells(const grid_map &map) { return map.run() >= shortest_row_of_cells; }

template <int W, bool Unpack, class Map>
inline constexpr bool goes_by_lanes = is_grid<Map> &&Unpack &&W < 16;

// A thread's share is U units, or so many lanes that several bytes are under way.
template <int U>
inline constexpr int lanes_each = U == 1 ? 2 : 2 * U;

template <int W, int U, bool Unpack, class Map>
MPIX_FN int64_t number_of_tiles(const packing_job<Map> &job, int64_t threads) {
    int64_t all = job.units(), each = threads * U;
    if constexpr (goes_by_lanes<W, Unpack, Map>) {
        const bool cells = W == 1 && goes_by_cells(job.map);
        all = cells ? cells_of(job).cells : words_in<W>(job);
        each = threads * (cells ? U : lanes_each<U>);
    }
    return (all + each - 1) / each;
}

template <int W, int U>
MPIX_FN void unpack_lane_tile(const packing_job<grid_map> &job, int64_t index, int64_t rank, int64_t threads) {
    if constexpr (W == 1)
        if (goes_by_cells(job.map)) return unpack_cells<U>(job, index * threads * U + rank, threads);
    constexpr int n = lanes_each<U>;
    const int64_t words = words_in<W>(job), first = index * threads * n, end = first + threads * n;
    // The first and the last word of a message may be parts of one.
    if (first > 0 && end < words && is_narrow(job.begin + end * W))
        return unpack_whole_lanes<W, n>(job, first + rank, threads);
    for (int64_t k = first + rank; k < end && k < words; k += threads) unpack_lane<W>(job, k);
}

// Tile `index`, by thread `rank` of it.
template <int W, int U, bool Unpack, class Map>
MPIX_FN void do_tile(const packing_job<Map> &job, int64_t index, int64_t rank, int64_t threads) {
    if constexpr (goes_by_lanes<W, Unpack, Map>) {
        unpack_lane_tile<W, U>(job, index, rank, threads);
    } else {
        const int64_t units = job.units(), first = index * threads * U;
        int64_t end = first + threads * U;
        // The first and the last unit of a message may be parts of one.
        if (U > 1 && first > 0 && end < units) {
            if constexpr (W == 1) {
                if (Unpack ? unpack_inner_units<U>(job, first + rank, threads)
                           : pack_inner_units<U>(job, first + rank, threads))
                    return;
            } else {
                if constexpr (Unpack)
                    unpack_whole_units<W, U>(job, first + rank, threads);
                else
                    pack_whole_units<W, U>(job, first + rank, threads);
                return;
            }
        }
        if (end > units) end = units;
        if constexpr (Unpack)
            unpack_units<W>(job, first + rank, threads, end);
        else
            pack_units<W>(job, first + rank, threads, end);
    }
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_PACK_TILES_CUH
