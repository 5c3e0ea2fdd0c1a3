// SPDX-License-Identifier: BSD-3-Clause
//
// Division by a number that many threads divide by: a multiplication.
#ifndef MPIX_DETAIL_DIVIDE_H
#define MPIX_DETAIL_DIVIDE_H

#include <mpix/detail/order.h>

// With l = ceil(log2 divisor): floor(2^(63+l) / divisor) + 1, and l. Exact for all dividends from 0 to 2^63-1
// (Granlund and Montgomery, 1994, theorem 4.2, with 63 bits). The same with 31 bits: `narrow` has the upper half, and
// is 0 for divisors beyond, which gives the quotient 0.
struct mpix_divisor {
    int64_t value;
    uint64_t magic;
    uint32_t shift, narrow;
};

// Of it, what dividends below 2^31 need.
struct mpix_narrow_divisor {
    uint32_t magic, shift;
};

namespace mpix::detail {

MPIX_FN uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
#endif
}

// `value` at least 1. Long division, bit by bit: there is no 128-bit type in standard C++.
inline mpix_divisor make_divisor(int64_t value) {
    const uint64_t d = static_cast<uint64_t>(value);
    uint32_t shift = 0;
    while (shift < 63 && (uint64_t{1} << shift) < d) ++shift;
    uint64_t quotient = 0, rest = 1;
    for (uint64_t bit = 0; bit < 63 + shift; ++bit) {
        // rest < d <= 2^63, so nothing is lost.
        quotient = rest >= d ? 2 * quotient + 1 : 2 * quotient;
        rest = 2 * (rest >= d ? rest - d : rest);
    }
    quotient = rest >= d ? 2 * quotient + 1 : 2 * quotient;
    return {value, quotient + 1, shift, value >> 31 != 0 ? 0 : static_cast<uint32_t>(quotient >> 32) + 1};
}

// x / by.value, for 0 <= x.
MPIX_FN int64_t divide(int64_t x, const mpix_divisor &by) {
    return static_cast<int64_t>(high_product(2 * static_cast<uint64_t>(x), by.magic) >> by.shift);
}

// The same for x below 2^31, at a quarter of the cost.
MPIX_FN bool is_narrow(int64_t x) { return static_cast<uint64_t>(x) >> 31 == 0; }
MPIX_FN uint32_t divide_narrow(uint32_t x, const mpix_narrow_divisor &by) {
#ifdef __CUDA_ARCH__
    return __umulhi(2 * x, by.magic) >> (by.shift & 31);  // beyond 31, `magic` is 0
#else
    return static_cast<uint32_t>(static_cast<uint64_t>(2 * x) * by.magic >> 32) >> (by.shift & 31);
#endif
}
MPIX_FN mpix_narrow_divisor narrowed(const mpix_divisor &by) { return {by.narrow, by.shift}; }
MPIX_FN uint32_t divide_narrow(uint32_t x, const mpix_divisor &by) { return divide_narrow(x, narrowed(by)); }

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_DIVIDE_H
