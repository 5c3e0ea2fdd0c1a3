// SPDX-License-Identifier: BSD-3-Clause
//
// Memory for elements of a random type, and where its bytes are in it.
#ifndef MPIX_TESTS_UNIT_ARENA_HPP
#define MPIX_TESTS_UNIT_ARENA_HPP

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/random_type.hpp"

// Memory around a buffer's address that `count` elements of a type reach.
struct arena {
    std::vector<char> bytes;
    std::int64_t origin = 0;

    arena(const sample &type, int count) {
        const std::int64_t extent = type.extent();
        std::int64_t low = 0, high = 0;
        for (int n = 0; n < count; ++n)
            for (const std::int64_t at : type.map) {
                low = std::min(low, n * extent + at);
                high = std::max(high, n * extent + at + 1);
            }
        origin = 64 - low;
        bytes.resize(static_cast<std::size_t>(high - low + 128));
    }
    char *buffer() { return bytes.data() + origin; }
};

inline void fill(std::vector<char> &bytes, std::mt19937_64 &random) {
    for (char &b : bytes) b = static_cast<char>(random());
}

// All offsets, element by element.
inline std::vector<std::int64_t> offsets(const sample &type, int count) {
    std::vector<std::int64_t> all;
    for (int n = 0; n < count; ++n)
        for (const std::int64_t at : type.map) all.push_back(n * type.extent() + at);
    return all;
}

inline bool overlaps(std::vector<std::int64_t> at) {
    std::sort(at.begin(), at.end());
    return std::adjacent_find(at.begin(), at.end()) != at.end();
}

#endif  // MPIX_TESTS_UNIT_ARENA_HPP
