// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/reduction.h"

#include <cstring>
#include <iterator>
#include <type_traits>

namespace mpix::halo {
namespace {

template <reduction How, class T>
T combined(T a, T b) {
    if constexpr (How == reduction::min) {
        return b < a ? b : a;
    } else if constexpr (How == reduction::max) {
        return a < b ? b : a;
    } else if constexpr (std::is_integral_v<T>) {  // signed ones must not overflow
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
        return a + b;
    }
}

template <reduction How, class T>
void combine_all(const std::byte *from, std::byte *to, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(sizeof(T))) {
        T a, b;
        std::memcpy(&a, to + at, sizeof(T));
        std::memcpy(&b, from + at, sizeof(T));
        a = combined<How>(a, b);
        std::memcpy(to + at, &a, sizeof(T));
    }
}

template <class T>
combine_function combine_function_for(reduction how) {
    switch (how) {
        case reduction::sum:
            return combine_all<reduction::sum, T>;
        case reduction::min:
            return combine_all<reduction::min, T>;
        case reduction::max:
            return combine_all<reduction::max, T>;
        default:
            return nullptr;
    }
}

struct described_type {
    const char *name;
    std::size_t bytes;
    combine_function (*combine)(reduction);
};

template <class T>
constexpr described_type describe(const char *name) {
    return {name, sizeof(T), combine_function_for<T>};
}

// By the numbers of the types.
constexpr described_type types[] = {
    {"bytes", 0, [](reduction) -> combine_function { return nullptr; }},
    describe<std::int8_t>("int8"),
    describe<std::int16_t>("int16"),
    describe<std::int32_t>("int32"),
    describe<std::int64_t>("int64"),
    describe<std::uint8_t>("uint8"),
    describe<std::uint16_t>("uint16"),
    describe<std::uint32_t>("uint32"),
    describe<std::uint64_t>("uint64"),
    describe<float>("float32"),
    describe<double>("float64"),
    describe<long double>("long_double"),
};
static_assert(std::size(types) == static_cast<std::size_t>(value_type::long_double) + 1);

const described_type &described(value_type type) {
    const auto number = static_cast<std::size_t>(type);
    return number < std::size(types) ? types[number] : types[0];
}

}  // namespace

combine_function combine_function_of(value_type type, reduction how) { return described(type).combine(how); }
std::size_t size_of(value_type type) { return described(type).bytes; }
const char *name_of(value_type type) { return described(type).name; }

}  // namespace mpix::halo
