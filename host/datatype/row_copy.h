// SPDX-License-Identifier: BSD-3-Clause
//
// How the CPU copies runs between memory and the packed form: one, a row of them, or the rows of a plane. Nothing
// outside a run is written; only what lies between two runs a few bytes apart is read as well, see copy_even.
#ifndef MPIX_HOST_DATATYPE_ROW_COPY_H
#define MPIX_HOST_DATATYPE_ROW_COPY_H

#include <mpix/detail/plan.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace mpix {

// Lengths that the compiler knows become loads and stores without a call. Those in between become two of the next
// smaller that overlap: n bytes, Half <= n <= 2 * Half.
template <std::int64_t N>
using exactly = std::integral_constant<std::int64_t, N>;
template <std::int64_t Half>
struct overlapping {
    std::int64_t n;
};

template <std::int64_t N>
void copy_bytes(char *to, const char *from, exactly<N>) {
    std::memcpy(to, from, N);
}
template <std::int64_t Half>
void copy_bytes(char *to, const char *from, overlapping<Half> length) {
    std::memcpy(to, from, Half);
    std::memcpy(to + length.n - Half, from + length.n - Half, Half);
}
inline void copy_bytes(char *to, const char *from, std::int64_t n) {
    std::memcpy(to, from, static_cast<std::size_t>(n));
}

// Calls `copy` with `n` as one of the three.
template <class Copy>
void with_length(std::int64_t n, const Copy &copy) {
    switch (n) {
        case 1:
            return copy(exactly<1>{});
        case 2:
            return copy(exactly<2>{});
        case 3:
            return copy(overlapping<2>{n});
        case 4:
            return copy(exactly<4>{});
        case 8:
            return copy(exactly<8>{});
        case 12:
            return copy(exactly<12>{});
        case 16:
            return copy(exactly<16>{});
        case 24:
            return copy(exactly<24>{});
        case 32:
            return copy(exactly<32>{});
        case 64:
            return copy(exactly<64>{});
        default:
            if (n < 1 || n > 128) return copy(n);
            if (n > 64) return copy(overlapping<64>{n});
            if (n > 32) return copy(overlapping<32>{n});
            if (n > 16) return copy(overlapping<16>{n});
            if (n > 8) return copy(overlapping<8>{n});
            return copy(overlapping<4>{n});
    }
}

// Which way the bytes go.
struct packing {
    static constexpr bool packs = true;
    const char *memory;
    char *packed;
    template <class Length>
    static void move(const char *in_memory, char *in_packed, Length length) {
        copy_bytes(in_packed, in_memory, length);
    }
};
struct unpacking {
    static constexpr bool packs = false;
    char *memory;
    const char *packed;
    template <class Length>
    static void move(char *in_memory, const char *in_packed, Length length) {
        copy_bytes(in_memory, in_packed, length);
    }
};

// `count` runs, the next `stride` and `step` bytes further on. By fours: of short runs the counting is half the work.
template <class Way, class Memory, class Packed, class Length>
void copy_runs(Memory *memory, Packed *packed, Length length, std::int64_t stride, std::int64_t step,
               std::int64_t count) {
    for (; count >= 4; count -= 4, memory += 4 * stride, packed += 4 * step) {
        Way::move(memory, packed, length);
        Way::move(memory + stride, packed + step, length);
        Way::move(memory + 2 * stride, packed + 2 * step, length);
        Way::move(memory + 3 * stride, packed + 3 * step, length);
    }
    for (; count > 0; --count, memory += stride, packed += step) Way::move(memory, packed, length);
}

// Runs of N bytes with gaps of N bytes are packed a vector at a time: two are loaded, the gaps among them, and the
// runs sorted out. The gaps cannot be on another page than the runs at both sides, but another thread may be writing
// there, so ThreadSanitizer is not shown this.
#if defined __SANITIZE_THREAD__
#define MPIX_COPY_EVEN 0
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define MPIX_COPY_EVEN 0
#endif
#endif
#ifndef MPIX_COPY_EVEN
#define MPIX_COPY_EVEN 1
#endif

template <std::int64_t N>
using word = std::conditional_t<N == 1, std::uint8_t, std::conditional_t<N == 2, std::uint16_t, std::uint32_t>>;

// Does so with as many as it can; the last run is never among them, for the gap behind it may be nobody's. How many.
template <std::int64_t N>
std::int64_t copy_even(const char *memory, char *packed, std::int64_t count) {
    typedef word<N> vector __attribute__((vector_size(16)));
    constexpr std::int64_t several = 16 / N;
    std::int64_t done = 0;
    for (; count - done > several; done += several, memory += 32, packed += 16) {
        vector a, b, both;
        std::memcpy(&a, memory, 16);
        std::memcpy(&b, memory + 16, 16);
        if constexpr (N == 1)
            both = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        else if constexpr (N == 2)
            both = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
        else
            both = __builtin_shufflevector(a, b, 0, 2, 4, 6);
        std::memcpy(packed, &both, 16);
    }
    return done;
}

template <class Way, class Memory, class Packed, class Length>
void copy_row(Memory *memory, Packed *packed, Length length, const mpix_dimension &d, std::int64_t count) {
    copy_runs<Way>(memory, packed, length, d.stride, d.packed, count);
}
template <class Way, class Memory, class Packed, std::int64_t N>
void copy_row(Memory *memory, Packed *packed, exactly<N> length, const mpix_dimension &d, std::int64_t count) {
    if constexpr (Way::packs && N <= 4 && MPIX_COPY_EVEN) {
        if (d.stride == 2 * N && d.packed == N) {
            const std::int64_t done = copy_even<N>(memory, packed, count);
            memory += done * 2 * N;
            packed += done * N;
            count -= done;
        }
    }
    copy_runs<Way>(memory, packed, length, d.stride, d.packed, count);
}

// `rows` rows of `count` runs: the row's runs are `inner` apart, the rows `outer`.
//
// A transpose has the rows' runs far from each other, and the next row's beside them in the same cache lines. It goes
// by columns of so many runs that their lines are still there for the next row.
template <class Way>
void copy_plane(const Way &way, std::int64_t run, std::int64_t offset, std::int64_t at, const mpix_dimension &inner,
                std::int64_t count, const mpix_dimension &outer, std::int64_t rows) {
    constexpr std::int64_t line = 64, lines = 16;
    const bool transpose = std::abs(outer.stride) < line && std::abs(inner.stride) >= line;
    const std::int64_t width = transpose ? lines : count;
    with_length(run, [&](auto length) {
        for (std::int64_t column = 0; column < count; column += width) {
            const std::int64_t n = std::min(width, count - column);
            auto *memory = way.memory + offset + column * inner.stride;
            auto *packed = way.packed + at + column * inner.packed;
            for (std::int64_t row = 0; row < rows; ++row, memory += outer.stride, packed += outer.packed)
                copy_row<Way>(memory, packed, length, inner, n);
        }
    });
}

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_ROW_COPY_H
