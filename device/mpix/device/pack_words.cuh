// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and unpacking in units of 16 packed bytes, each by one thread. Of a message's packed bytes [begin, end) unit
// k has those that lie in 16-byte word k of the packed memory, counted from the one with the first byte.
//
// Pack: the side that is written is contiguous, so a thread gathers its word in registers and stores it at once.
// Unpack by words of W bytes (for grids, see pack_lanes.cuh): a thread loads its word at once and scatters it. Where that would mean single bytes
// (W = 1), the thread writes the 16-byte words of the *memory* side that begin in its unit, so that long runs are
// written by full words however they are aligned.
#ifndef MPIX_DEVICE_PACK_WORDS_CUH
#define MPIX_DEVICE_PACK_WORDS_CUH

#include <mpix/device/packing_job.cuh>

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

// Calls f(i, address) for 16 bytes in tiny runs. No branches, so that all loads, or stores, are under way together.
template <class Map, class F>
MPIX_FN void each_byte(const packing_job<Map> &job, const cursor &c, const F &f) {
    const int64_t run = job.map.run(), skip = job.map.distance() - run;
    char *at = job.memory + c.offset;
    int64_t left = c.left;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < 16; ++i) {
        f(i, at);
        --left;
        at += left == 0 ? skip + 1 : 1;
        left = left == 0 ? run : left;
    }
}

// A whole unit by words of W bytes.
template <int W, class Map>
MPIX_FN block16 gather_words(const packing_job<Map> &job, int64_t x) {
    if constexpr (W == 1) {
        if constexpr (is_grid<Map>) {
            const cursor c = job.map.locate(x);
            if (job.map.tiny_runs() && job.map.straight(c)) {
                uint64_t byte[16];
                each_byte(job, c, [&](int i, const char *at) { byte[i] = load_word<uint8_t>(at); });
                block16 all{0, 0};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
                for (int i = 0; i < 8; ++i) {
                    all.low |= byte[i] << (8 * i);
                    all.high |= byte[i + 8] << (8 * i);
                }
                return all;
            }
        }
        return gather_bytes(job, x, 16);
    } else {
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

template <int W, class Map>
MPIX_FN void pack_units(const packing_job<Map> &job, int64_t first, int64_t step, int64_t end) {
    for (int64_t k = first; k < end; k += step) {
        const auto p = job.unit(k);
        if (p.whole())
            store_word(job.packed + p.from, gather_words<W>(job, job.begin + p.from));
        else
            store_bytes(job.packed + p.from, gather_bytes(job, job.begin + p.from, p.bytes()), p.bytes());
    }
}

template <int W, class Map>
MPIX_FN void unpack_units(const packing_job<Map> &job, int64_t first, int64_t step, int64_t end) {
    for (int64_t k = first; k < end; k += step) {
        const auto p = job.unit(k);
        if constexpr (W == 1) {
            scatter_aligned(job, p.from, p.to);
        } else {
            if (p.whole())
                scatter_words<W>(job, job.begin + p.from, load_word<block16>(job.packed + p.from));
            else
                scatter_bytes(job, job.begin + p.from, load_bytes(job.packed + p.from, p.bytes(), job.readable_end),
                              p.bytes());
        }
    }
}

// Several units that lie `step` apart and are all whole: their loads are all under way before the first store.
template <int W, int U, class Map>
MPIX_FN void pack_whole_units(const packing_job<Map> &job, int64_t first, int64_t step) {
    block16 v[U];
    const int64_t from = 16 * first - job.skew();
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
    const int64_t from = 16 * first - job.skew();
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) v[u] = load_word<block16>(job.packed + from + 16 * u * step);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) scatter_words<W>(job, job.begin + from + 16 * u * step, v[u]);
}

// The same for W = 1, where each of them is in the middle of a run; false, with nothing done, where one is not.
template <int U, class Map>
MPIX_FN bool pack_inner_units(const packing_job<Map> &job, int64_t first, int64_t step) {
    const int64_t from = 16 * first - job.skew();
    raw_words raw[U];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) {
        const cursor c = job.map.locate(job.begin + from + 16 * u * step);
        const char *const at = job.memory + c.offset;
        if (c.left < 16 || !raw_words_end_before(at, job.readable_end)) return false;
        raw[u] = load_raw(at, 5);
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) store_word(job.packed + from + 16 * u * step, assemble(raw[u]));
    return true;
}

template <int U, class Map>
MPIX_FN bool unpack_inner_units(const packing_job<Map> &job, int64_t first, int64_t step) {
    const int64_t from = 16 * first - job.skew();
    raw_words raw[U];
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
        if (c.left < boundary + 16 || c.into == 0 || !raw_words_end_before(source, job.readable_end)) return false;
        to[u] = memory + boundary;
        raw[u] = load_raw(source, 5);
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int u = 0; u < U; ++u) store_word(to[u], assemble(raw[u]));
    return true;
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_PACK_WORDS_CUH
