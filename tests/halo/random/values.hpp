// SPDX-License-Identifier: BSD-3-Clause
//
// What the bytes and numbers of random fields are, and what a reverse exchange makes of them.
#ifndef MPIX_TESTS_HALO_RANDOM_VALUES_HPP
#define MPIX_TESTS_HALO_RANDOM_VALUES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <mpix/halo.hpp>

namespace random_halo {

namespace halo = mpix::halo;
using halo::box;
using halo::index3;

inline constexpr auto poison = std::byte{0xd5};

// What a byte of a cell is, in an epoch.
inline std::byte value_at(std::uint64_t field, const index3 &cell, std::uint64_t byte, std::uint64_t epoch) {
    std::uint64_t h = field * 1000003 + epoch * 7919 + byte;
    for (const std::int64_t c : cell.along) h = (h ^ static_cast<std::uint64_t>(c)) * 0x9e3779b97f4a7c15 + (h >> 29);
    return static_cast<std::byte>(h >> 56);
}

// The same for values of an arithmetic type; of real numbers such that each order of a sum gives other bits. `holder`:
// the number of the box beside which it lies, or whose it is.
template <class T>
T number_at(std::uint64_t field, const index3 &cell, std::uint64_t component, std::uint64_t epoch, int holder) {
    std::uint64_t bits = 0;
    for (std::uint64_t byte = 0; byte < 8; ++byte)
        bits |= static_cast<std::uint64_t>(
                    value_at(field + 100, cell, 8 * component + byte, epoch * 64 + static_cast<std::uint64_t>(holder)))
                << (8 * byte);
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits >> 8)) - 0x1p55,
                                         static_cast<int>(bits % 12)));
    else
        return static_cast<T>(bits);
}

template <class T>
T combined(halo::reduction how, T a, T b) {
    if (how == halo::reduction::min) return std::min(a, b);
    if (how == halo::reduction::max) return std::max(a, b);
    if constexpr (std::is_integral_v<T>) {
        using natural = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<natural>(static_cast<natural>(a) + static_cast<natural>(b)));
    } else {
        return a + b;
    }
}

// Calls each(T{}) of the type that has this number.
template <class Each>
void with_type(halo::value_type type, Each each) {
    using halo::value_type;
    const auto one_of = [&]<class... T>(T... values) {
        ((halo::value_type_of<T>() == type ? each(values) : static_cast<void>(0)), ...);
    };
    one_of(std::int8_t{}, std::int16_t{}, std::int32_t{}, std::int64_t{}, std::uint8_t{}, std::uint16_t{},
           std::uint32_t{}, std::uint64_t{}, float{}, double{});
}

}  // namespace random_halo

#endif  // MPIX_TESTS_HALO_RANDOM_VALUES_HPP
