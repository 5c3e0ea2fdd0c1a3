// SPDX-License-Identifier: BSD-3-Clause
//
// Copies packed bytes from one layout to another in one pass, by any group of threads. Pready uses it where a datatype
// has gaps on either side. Between two GPUs, each byte is stored straight to its place.
#ifndef MPIX_IMPL_PACK_TYPED_COPY_CUH
#define MPIX_IMPL_PACK_TYPED_COPY_CUH

#include <mpix/detail/typemap.h>
#include <mpix/impl/group/words.cuh>

namespace mpix::detail {

// One side of a message: elements of a type, the first of them at `memory`; without a type, the packed bytes
// themselves.
struct layout {
    char *memory;
    const mpix_typemap *type;
};

// Where packed byte x is. Not inlined: it is long, and callers look up several.
MPIX_COLD_FN int64_t offset_of(const mpix_typemap *type, int64_t x) {
    if (type == nullptr) return x;
    if (type->kind == MPIX_TYPEMAP_GRID) return grid_map(*type).locate(x).offset;
    if (type->kind == MPIX_TYPEMAP_RUNS) return run_map(*type).locate(x).offset;
    return box_map(*type).locate(x).offset;
}

// Where packed bytes x, x + step, ... are. Grids, which most types are, are looked up dimension by dimension: one
// lookup after another would wait for memory N times as often.
template <int N>
MPIX_FN void offsets_of(const mpix_typemap *type, int64_t x, int64_t step, int64_t (&out)[N]) {
    if (type != nullptr && type->kind == MPIX_TYPEMAP_GRID && is_narrow(x + (N - 1) * step)) {
        grid_map(*type).offsets<N>(x, step, out);
        return;
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < N; ++i) out[i] = offset_of(type, x + i * step);
}

// What decides how wide words may be on this side.
MPIX_FN uint64_t alignment_of(const layout &side, int64_t begin, int64_t bytes) {
    uint64_t all = reinterpret_cast<uint64_t>(side.memory);
    if (side.type == nullptr) return all;
    all |= side.type->alignment;
    if (begin + bytes > side.type->size)
        all |= static_cast<uint64_t>(side.type->extent) | static_cast<uint64_t>(side.type->size);
    return all;
}

// Lane after lane in packing order, so that a warp's words are as close together as the layouts allow.
template <class Word>
MPIX_FN void move_words(const layout &to, const layout &from, int64_t begin, int64_t bytes, int64_t rank,
                        int64_t threads) {
    constexpr int64_t width = sizeof(Word);
    constexpr int each = 4;  // words under way per thread
    const int64_t end = begin + bytes, step = threads * width;
    int64_t x = begin + rank * width;
    for (; x + (each - 1) * step < end; x += each * step) {
        Word word[each];
        int64_t at[each];
        offsets_of(from.type, x, step, at);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < each; ++i) word[i] = load_word<Word>(from.memory + at[i]);
        offsets_of(to.type, x, step, at);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int i = 0; i < each; ++i) store_word<Word>(to.memory + at[i], word[i]);
    }
    for (; x < end; x += step)
        store_word<Word>(to.memory + offset_of(to.type, x), load_word<Word>(from.memory + offset_of(from.type, x)));
}

// The share of thread `rank` of `threads` in packed bytes [begin, begin + bytes). No barrier.
MPIX_COLD_FN void move_share(const layout &to, const layout &from, int64_t begin, int64_t bytes, int64_t rank,
                             int64_t threads) {
    const uint64_t all = alignment_of(to, begin, bytes) | alignment_of(from, begin, bytes) |
                         static_cast<uint64_t>(begin) | static_cast<uint64_t>(bytes);
    if ((all & 15) == 0)
        move_words<block16>(to, from, begin, bytes, rank, threads);
    else if ((all & 7) == 0)
        move_words<uint64_t>(to, from, begin, bytes, rank, threads);
    else if ((all & 3) == 0)
        move_words<uint32_t>(to, from, begin, bytes, rank, threads);
    else
        move_words<uint8_t>(to, from, begin, bytes, rank, threads);
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_TYPED_COPY_CUH
