// SPDX-License-Identifier: BSD-3-Clause
//
// Unpacking of grids, one word per lane, so that the words that a warp stores at once are close together in memory. (A
// sector that several instructions write costs the second-level cache as many writes.) Neighbouring lanes take
// neighbouring words of the packed side.
#ifndef MPIX_IMPL_PACK_LANES_CUH
#define MPIX_IMPL_PACK_LANES_CUH

#include <mpix/impl/pack/job.cuh>

namespace mpix::detail {

// Words that lie `step` apart, all of them whole. All loads come first, and each dimension is handled for all words.
template <int W, int U>
MPIX_FN void unpack_whole_lanes(const packing_job<grid_map> &job, int64_t first, int64_t step) {
    using word = typename word_of<W>::type;
    word v[U];
    const char *const from = job.packed + job.word_begin(W, first);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) v[u] = load_word<word>(from + u * step * W);
    constexpr int together = U < 8 ? U : 8;  // more places are more registers, and fewer threads
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int part = 0; part < U; part += together) {
        int64_t offset[together];
        job.map.offsets(job.begin + job.word_begin(W, first + part * step), step * W, offset);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int u = 0; u < together; ++u) store_word(job.memory + offset[u], v[part + u]);
    }
}

template <int W>
MPIX_FN void unpack_lane(const packing_job<grid_map> &job, int64_t k) {
    using word = typename word_of<W>::type;
    int64_t from = job.word_begin(W, k), to = from + W;
    if (from >= 0 && to <= job.bytes) {
        store_word(job.memory + job.map.locate(job.begin + from).offset, load_word<word>(job.packed + from));
        return;
    }
    if (to > job.bytes) to = job.bytes;
    for (int64_t x = from < 0 ? 0 : from; x < to; ++x)
        store_word(job.memory + job.map.locate(job.begin + x).offset, load_word<uint8_t>(job.packed + x));
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_LANES_CUH
