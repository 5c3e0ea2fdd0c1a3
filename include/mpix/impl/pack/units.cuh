// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and unpacking in units of 16 packed bytes, each by one thread. Of a message's packed bytes [begin, end) unit
// k has those that lie in 16-byte word k of the packed memory, counted from the one with the first byte.
//
// Pack: the side that is written is contiguous, so a thread gathers its word in registers and stores it at once.
// Unpack (for grids, see pack/lanes.cuh): a thread loads its word at once and scatters it.
#ifndef MPIX_IMPL_PACK_UNITS_CUH
#define MPIX_IMPL_PACK_UNITS_CUH

#include <mpix/impl/pack/job.cuh>

namespace mpix::detail {

// `bytes` (1 to 16) packed bytes from x on, in registers.
template <class Map>
MPIX_FN block16 gather_bytes(const packing_job<Map> &job, int64_t x, int bytes) {
    cursor c = job.map.locate(x);
    if (c.left >= bytes) return load_bytes(job.memory + c.offset, bytes, job.readable_end);
    block16 all{0, 0};
    for (int have = 0; have < bytes;) {
        const int n = c.left < bytes - have ? static_cast<int>(c.left) : bytes - have;
        const block16 v = first_bytes(load_bytes(job.memory + c.offset, n, job.readable_end), n);
        const block16 placed = shift_up(v, have);
        all.low |= placed.low;
        all.high |= placed.high;
        have += n;
        if (have < bytes) job.map.advance(c, n);
    }
    return all;
}

template <class Map>
MPIX_FN void scatter_bytes(const packing_job<Map> &job, int64_t x, block16 value, int bytes) {
    cursor c = job.map.locate(x);
    for (;;) {
        const int n = c.left < bytes ? static_cast<int>(c.left) : bytes;
        store_bytes(job.memory + c.offset, value, n);
        bytes -= n;
        if (bytes == 0) return;
        value = shift_down(value, n);
        job.map.advance(c, n);
    }
}

// A whole unit by words of W bytes.
template <int W, class Map>
MPIX_FN block16 gather_words(const packing_job<Map> &job, int64_t x) {
    using word = typename word_of<W>::type;
    cursor c = job.map.locate(x);
    if constexpr (W == 16) {
        return load_word<word>(job.memory + c.offset);
    } else {
        word part[16 / W];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < 16 / W; ++i) {
            part[i] = load_word<word>(job.memory + c.offset);
            if (i + 1 < 16 / W) job.map.advance(c, W);
        }
        uint64_t half[2] = {0, 0};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < 16 / W; ++i) half[i * W / 8] |= static_cast<uint64_t>(part[i]) << (8 * (i * W % 8));
        return {half[0], half[1]};
    }
}

template <int W, class Map>
MPIX_FN void scatter_words(const packing_job<Map> &job, int64_t x, const block16 &value) {
    using word = typename word_of<W>::type;
    cursor c = job.map.locate(x);
    if constexpr (W == 16) {
        store_word<word>(job.memory + c.offset, value);
    } else {
        const uint64_t half[2] = {value.low, value.high};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < 16 / W; ++i) {
            store_word<word>(job.memory + c.offset, static_cast<word>(half[i * W / 8] >> (8 * (i * W % 8))));
            if (i + 1 < 16 / W) job.map.advance(c, W);
        }
    }
}

template <int W, class Map>
MPIX_FN void pack_units(const packing_job<Map> &job, int64_t first, int64_t step, int64_t end) {
    for (int64_t k = first; k < end; k += step) {
        const auto p = job.word(16, k);
        if (p.bytes() == 16)
            store_word(job.packed + p.from, gather_words<W>(job, job.begin + p.from));
        else
            store_bytes(job.packed + p.from, gather_bytes(job, job.begin + p.from, p.bytes()), p.bytes());
    }
}

template <int W, class Map>
MPIX_FN void unpack_units(const packing_job<Map> &job, int64_t first, int64_t step, int64_t end) {
    for (int64_t k = first; k < end; k += step) {
        const auto p = job.word(16, k);
        if (p.bytes() == 16)
            scatter_words<W>(job, job.begin + p.from, load_word<block16>(job.packed + p.from));
        else
            scatter_bytes(job, job.begin + p.from, load_bytes(job.packed + p.from, p.bytes(), job.readable_end),
                          p.bytes());
    }
}

// Several units that lie `step` apart and are all whole: their loads are all under way before the first store.
template <int W, int U, class Map>
MPIX_FN void pack_whole_units(const packing_job<Map> &job, int64_t first, int64_t step) {
    block16 v[U];
    const int64_t from = job.word_begin(16, first);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) v[u] = gather_words<W>(job, job.begin + from + 16 * u * step);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) store_word(job.packed + from + 16 * u * step, v[u]);
}

template <int W, int U, class Map>
MPIX_FN void unpack_whole_units(const packing_job<Map> &job, int64_t first, int64_t step) {
    block16 v[U];
    const int64_t from = job.word_begin(16, first);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) v[u] = load_word<block16>(job.packed + from + 16 * u * step);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) scatter_words<W>(job, job.begin + from + 16 * u * step, v[u]);
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_UNITS_CUH
