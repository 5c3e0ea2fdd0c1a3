// SPDX-License-Identifier: BSD-3-Clause
//
// Up to 16 bytes between memory and registers, at any alignment.
#ifndef MPIX_IMPL_GROUP_WORDS_CUH
#define MPIX_IMPL_GROUP_WORDS_CUH

#include <mpix/impl/group/copy.cuh>

#if !defined(__CUDA_ARCH__)
#include <string.h>
#endif

// A test on the host may watch every access.
#ifndef MPIX_ON_WORD
#define MPIX_ON_WORD(at, bytes) static_cast<void>(0)
#endif

namespace mpix::detail {

// `at` is aligned to T.
template <class T>
MPIX_FN T load_word(const char *at) {
#ifdef __CUDA_ARCH__
    return *reinterpret_cast<const T *>(at);
#else
    MPIX_ON_WORD(at, sizeof(T));
    T value;
    memcpy(&value, at, sizeof value);
    return value;
#endif
}
template <class T>
MPIX_FN void store_word(char *at, T value) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<T *>(at) = value;
#else
    MPIX_ON_WORD(at, sizeof(T));
    memcpy(at, &value, sizeof value);
#endif
}

// Bytes are numbered from the low end of `low`.
MPIX_FN block16 shift_up(const block16 &v, int bytes) {
    const int bits = 8 * bytes;
    if (bits == 0) return v;
    if (bits >= 64) return {0, v.low << (bits - 64)};
    return {v.low << bits, v.high << bits | v.low >> (64 - bits)};
}
MPIX_FN block16 shift_down(const block16 &v, int bytes) {
    const int bits = 8 * bytes;
    if (bits == 0) return v;
    if (bits >= 64) return {v.high >> (bits - 64), 0};
    return {v.low >> bits | v.high << (64 - bits), v.high >> bits};
}
MPIX_FN block16 first_bytes(const block16 &v, int bytes) {
    const uint64_t all = ~uint64_t{0};
    if (bytes >= 16) return v;
    if (bytes >= 8) return {v.low, bytes == 8 ? 0 : v.high & (all >> (128 - 8 * bytes))};
    return {bytes == 0 ? 0 : v.low & (all >> (64 - 8 * bytes)), 0};
}

// The low word of (high:low) >> bits, bits below 32.
MPIX_FN uint32_t funnel(uint32_t low, uint32_t high, int bits) {
#ifdef __CUDA_ARCH__
    return __funnelshift_r(low, high, static_cast<unsigned>(bits));
#else
    return static_cast<uint32_t>(((static_cast<uint64_t>(high) << 32) | low) >> bits);
#endif
}

// Bytes [0, n) of a word; n may be less than 0, or more than 4.
MPIX_FN uint32_t low_bytes(int n) { return n <= 0 ? 0 : n >= 4 ? ~uint32_t{0} : (uint32_t{1} << (8 * n)) - 1; }

template <int N>
struct word_of;
template <>
struct word_of<1> {
    using type = uint8_t;
};
template <>
struct word_of<4> {
    using type = uint32_t;
};
template <>
struct word_of<8> {
    using type = uint64_t;
};
template <>
struct word_of<16> {
    using type = block16;
};

template <int N>
MPIX_FN typename word_of<N>::type join_words(const uint32_t (&word)[N / 4]) {
    const auto pair = [&](int i) { return static_cast<uint64_t>(word[i + 1]) << 32 | word[i]; };
    if constexpr (N == 16)
        return {pair(0), pair(2)};
    else if constexpr (N == 8)
        return pair(0);
    else
        return word[0];
}

// The aligned 4-byte words in which N bytes lie. They are put together later, so that other loads can be under way
// meanwhile.
template <int N>
struct raw_words {
    uint32_t word[N / 4 + 1];
    int bits;  // where in word[0] the bytes begin
    MPIX_FN uint32_t at(int i) const { return funnel(word[i], word[i + 1], bits); }
};
// Loads the aligned word at `at`; of its bytes only [begin, end) are defined. A GPU loads all four. The host does not
// touch the others: another thread may be writing them.
MPIX_FN uint32_t load_part(const char *at, int begin, int end) {
#ifdef __CUDA_ARCH__
    (void)begin, (void)end;
    return load_word<uint32_t>(at);
#else
    if (begin <= 0 && end >= 4) return load_word<uint32_t>(at);
    MPIX_ON_WORD(at, sizeof(uint32_t));  // as on a GPU
    uint32_t value = 0;
    for (int i = begin < 0 ? 0 : begin; i < 4 && i < end; ++i)
        value |= uint32_t{static_cast<unsigned char>(at[i])} << (8 * i);
    return value;
#endif
}
// Of N bytes at `from`, loads the words that contain any of [begin, end).
template <int N>
MPIX_FN raw_words<N> load_raw(const char *from, int begin, int end) {
    const int skew = static_cast<int>(reinterpret_cast<uint64_t>(from) & 3);
    raw_words<N> raw;
    raw.bits = 8 * skew;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i <= N / 4; ++i) {
        const int at = 4 * i - skew;
        raw.word[i] = at < end && at + 4 > begin ? load_part(from + at, begin - at, end - at) : 0;
    }
    return raw;
}
// Whether that is allowed for bytes before `last`, if memory may be read up to `end`.
MPIX_FN bool words_end_before(const char *last, const char *end) {
    return last + ((0 - reinterpret_cast<uint64_t>(last)) & 3) <= end;
}
MPIX_FN block16 assemble(const raw_words<16> &raw) {
    const uint32_t word[4] = {raw.at(0), raw.at(1), raw.at(2), raw.at(3)};
    return join_words<16>(word);
}

// `bytes` (1 to 16) bytes at `from`; the rest of the result is undefined. Reads the aligned words in which these bytes
// lie, as far as they are before `end`, where readable memory ends.
MPIX_FN block16 load_bytes(const char *from, int bytes, const char *end) {
    if (words_end_before(from + bytes, end)) return assemble(load_raw<16>(from, 0, bytes));
    block16 value{0, 0};
    for (int i = bytes - 1; i >= 0; --i) {
        value = shift_up(value, 1);
        value.low |= load_word<uint8_t>(from + i);
    }
    return value;
}

MPIX_FN uint64_t upper_half(const block16 &value) { return value.high; }
MPIX_FN uint64_t lower_half(const block16 &value) { return value.low; }
MPIX_FN uint32_t upper_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
MPIX_FN uint32_t lower_half(uint64_t value) { return static_cast<uint32_t>(value); }
MPIX_FN uint16_t upper_half(uint32_t value) { return static_cast<uint16_t>(value >> 16); }
MPIX_FN uint16_t lower_half(uint32_t value) { return static_cast<uint16_t>(value); }
MPIX_FN uint8_t upper_half(uint16_t value) { return static_cast<uint8_t>(value >> 8); }
MPIX_FN uint8_t lower_half(uint16_t value) { return static_cast<uint8_t>(value); }

// Stores bytes [begin, end) of an aligned word, by the widest stores.
template <class T>
MPIX_FN void store_part(char *to, const T &value, int begin, int end) {
    constexpr int half = sizeof(T) / 2;
    if (begin <= 0 && end >= static_cast<int>(sizeof(T))) {
        store_word(to, value);
    } else if constexpr (half != 0) {
        if (begin < half) store_part(to, lower_half(value), begin, end);
        if (end > half) store_part(to + half, upper_half(value), begin - half, end - half);
    }
}

// Stores the first `bytes` (0 to 16) bytes of `value`, by the widest stores that the address allows.
MPIX_FN void store_bytes(char *to, block16 value, int bytes) {
    const uint64_t at = reinterpret_cast<uint64_t>(to);
    if (bytes == 16 && (at & 15) == 0) {
        store_word(to, value);
        return;
    }
    const auto put = [&](auto part) {
        constexpr int n = static_cast<int>(sizeof part);
        store_word(to, static_cast<decltype(part)>(value.low));
        value = shift_down(value, n);
        to += n;
        bytes -= n;
    };
    // Small steps up to an aligned address, then large ones.
    if ((at & 1) != 0 && bytes >= 1) put(uint8_t{});
    if ((reinterpret_cast<uint64_t>(to) & 2) != 0 && bytes >= 2) put(uint16_t{});
    if ((reinterpret_cast<uint64_t>(to) & 4) != 0 && bytes >= 4) put(uint32_t{});
    while (bytes >= 8) put(uint64_t{});
    if (bytes >= 4) put(uint32_t{});
    if (bytes >= 2) put(uint16_t{});
    if (bytes >= 1) put(uint8_t{});
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_GROUP_WORDS_CUH
