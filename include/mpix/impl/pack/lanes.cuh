// SPDX-License-Identifier: BSD-3-Clause
//
// Unpacking of grids by one word a lane, so that what a warp stores at once lies close together in memory: a sector
// written by several instructions costs the second-level cache as many writes. Neighbouring lanes take neighbouring
// words of the packed side.
#ifndef MPIX_IMPL_PACK_LANES_CUH
#define MPIX_IMPL_PACK_LANES_CUH

#include <mpix/impl/pack/job.cuh>

namespace mpix::detail {

// Words that lie `step` apart, all whole: all loads first, and each dimension is gone through for all of them.
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
