// SPDX-License-Identifier: BSD-3-Clause
//
// Up to 16 bytes between memory and registers, at any alignment.
#ifndef MPIX_DEVICE_WORDS_CUH
#define MPIX_DEVICE_WORDS_CUH

#include <mpix/device/copy.cuh>

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

// The aligned words that 16 bytes at `from` lie in, not put together yet, so that others can be loaded meanwhile.
struct raw_words {
    uint32_t word[5];
    int bits;  // where in word[0] the bytes begin
};
MPIX_FN bool raw_words_end_before(const char *from, const char *end) {
    return from - (reinterpret_cast<uint64_t>(from) & 3) + 20 <= end;
}
MPIX_FN raw_words load_raw(const char *from, int words) {
    const int skew = static_cast<int>(reinterpret_cast<uint64_t>(from) & 3);
    raw_words raw;
    raw.bits = 8 * skew;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < 5; ++i) raw.word[i] = i < words ? load_word<uint32_t>(from - skew + 4 * i) : 0;
    return raw;
}
MPIX_FN block16 assemble(const raw_words &raw) {
    const auto at = [&](int i) -> uint64_t { return funnel(raw.word[i], raw.word[i + 1], raw.bits); };
    return {at(1) << 32 | at(0), at(3) << 32 | at(2)};
}

// `bytes` (1 to 16) bytes at `from`; what is above them is undefined. Reads the aligned words that these bytes lie in,
// as far as they are before `end`, where memory that may be read ends.
MPIX_FN block16 load_bytes(const char *from, int bytes, const char *end) {
    const int skew = static_cast<int>(reinterpret_cast<uint64_t>(from) & 3), words = (skew + bytes + 3) >> 2;
    if (from - skew + 4 * words <= end) return assemble(load_raw(from, words));
    block16 value{0, 0};
    for (int i = bytes - 1; i >= 0; --i) {
        value = shift_up(value, 1);
        value.low |= load_word<uint8_t>(from + i);
    }
    return value;
}

// The first `bytes` (0 to 16) bytes of `value`, by the widest stores that the address allows.
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
    // Up to an aligned address by small steps, and on by large ones.
    if ((at & 1) != 0 && bytes >= 1) put(uint8_t{});
    if ((reinterpret_cast<uint64_t>(to) & 2) != 0 && bytes >= 2) put(uint16_t{});
    if ((reinterpret_cast<uint64_t>(to) & 4) != 0 && bytes >= 4) put(uint32_t{});
    while (bytes >= 8) put(uint64_t{});
    if (bytes >= 4) put(uint32_t{});
    if (bytes >= 2) put(uint16_t{});
    if (bytes >= 1) put(uint8_t{});
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_WORDS_CUH
