// SPDX-License-Identifier: BSD-3-Clause
//
// Unpacking of grids, one word per lane, so that the words that a warp stores at once are close together in memory. (A
// sector that several instructions write costs the second-level cache as many writes.) Neighbouring lanes take
// neighbouring words of the packed side. Short rows of bytes have a power of two of lanes each, some of which have
// nothing to do, so that one instruction stores a whole row.
#ifndef MPIX_IMPL_PACK_LANES_CUH
#define MPIX_IMPL_PACK_LANES_CUH

#include <mpix/impl/pack/job.cuh>

namespace mpix::detail {

// The words at packed bytes x, x + step, ..., all of them whole. All loads come first, and each dimension is handled
// for all words.
template <int W, int U>
MPIX_FN void unpack_whole_lanes(const packing_job<grid_map> &job, int64_t x, int64_t step) {
    using word = typename word_of<W>::type;
    word v[U];
    const char *const from = job.packed + (x - job.begin);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) v[u] = load_word<word>(from + u * step);
    constexpr int together = U < 8 ? U : 8;  // more places are more registers, and fewer threads
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int part = 0; part < U; part += together) {
        int64_t offset[together];
        job.map.offsets(x + part * step, step, offset);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int u = 0; u < together; ++u) store_word(job.memory + offset[u], v[part + u]);
    }
}

// The word `from` bytes after job.packed, or the part of it that is in the message.
template <int W>
MPIX_FN void unpack_lane(const packing_job<grid_map> &job, int64_t from) {
    using word = typename word_of<W>::type;
    int64_t to = from + W;
    if (from >= 0 && to <= job.bytes) {
        store_word(job.memory + job.map.locate(job.begin + from).offset, load_word<word>(job.packed + from));
        return;
    }
    if (to > job.bytes) to = job.bytes;
    for (int64_t x = from < 0 ? 0 : from; x < to; ++x)
        store_word(job.memory + job.map.locate(job.begin + x).offset, load_word<uint8_t>(job.packed + x));
}

constexpr int sector = 32, most_row_lanes = 16;

// Whether rows are so short that this is the fastest way, as measured on an H200, and no two share a sector.
MPIX_FN bool goes_by_row_lanes(const mpix_grid &grid) {
    const int64_t distance = grid.step[0].stride < 0 ? -grid.step[0].stride : grid.step[0].stride;
    return grid.dimensions != 0 && grid.run <= most_row_lanes && distance >= grid.run + sector - 1;
}
// The logarithm of the lanes of a row.
MPIX_FN int lanes_shift(int64_t run) {
    int shift = 0;
    while (1 << shift < run) ++shift;
    return shift;
}
MPIX_FN int64_t number_of_row_lanes(const packing_job<grid_map> &job) {
    const mpix_divisor &by_run = job.map.grid.step[0].by;
    return (divide(job.begin + job.bytes - 1, by_run) - divide(job.begin, by_run) + 1) << lanes_shift(job.map.run());
}

// Lanes first, first + step, ..., counted from the first row of the message on.
template <int U>
MPIX_FN void unpack_row_lanes(const packing_job<grid_map> &job, int64_t first, int64_t step) {
    const int shift = lanes_shift(job.map.run());
    const int64_t first_row = divide(job.begin, job.map.grid.step[0].by), mask = (int64_t{1} << shift) - 1;
    const int64_t run = job.map.run(), end = job.begin + job.bytes;
    if ((step & mask) == 0) {
        if ((first & mask) >= run) return;
        const int64_t x = (first_row + (first >> shift)) * run + (first & mask), packed_step = (step >> shift) * run;
        const int64_t last = x + (U - 1) * packed_step;
        if (x >= job.begin && last < end && is_narrow(last)) return unpack_whole_lanes<1, U>(job, x, packed_step);
    }
    for (int64_t k = first; k < first + U * step; k += step) {
        const int64_t into = k & mask, x = (first_row + (k >> shift)) * run + into;
        if (into < run && x >= job.begin && x < end) unpack_lane<1>(job, x - job.begin);
    }
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_LANES_CUH
