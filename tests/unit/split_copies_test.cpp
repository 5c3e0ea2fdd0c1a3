// SPDX-License-Identifier: BSD-3-Clause
//
// Copies split into lists (host/halo_tables/split_copies.h) write each word as the copies did, once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "host/halo_tables/copies.h"
#include "host/halo_tables/split_copies.h"
#include "tests/catch.hpp"

using namespace mpix::halo;
using detail::device_copy;

namespace {

// From where each word comes, by where it goes; the addresses are numbers.
using words_copied = std::multimap<std::uintptr_t, std::uintptr_t>;
void follow(const device_copy &c, int allocation, words_copied &all) {
    const auto to = reinterpret_cast<std::uintptr_t>(c.cells[allocation]),
               from = reinterpret_cast<std::uintptr_t>(c.own_cells[allocation]);
    for (std::uint32_t k = 0; k < c.count[2]; ++k)
        for (std::uint32_t j = 0; j < c.count[1]; ++j)
            for (std::uint32_t i = 0; i < c.count[0]; ++i)
                for (std::uint32_t w = 0; w < c.words; ++w) {
                    const auto place = [&](const std::int64_t(&stride)[3]) {
                        return static_cast<std::uintptr_t>(i * stride[0] + j * stride[1] + k * stride[2] +
                                                           std::int64_t{w} * c.word_bytes);
                    };
                    all.emplace(to + place(c.stride), from + place(c.own_stride));
                }
}

std::vector<std::pair<std::uintptr_t, std::uintptr_t>> sorted(const words_copied &all) {
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> pairs(all.begin(), all.end());
    std::sort(pairs.begin(), pairs.end());
    return pairs;
}

}  // namespace

TEST_CASE("copies split into lists") {
    std::mt19937 random(Catch::rngSeed());
    const auto pick = [&](int low, int high) {
        return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    for (int round = 0; round < 200; ++round) {
        std::vector<device_copy> copies(static_cast<std::size_t>(pick(0, 6)));
        for (std::size_t n = 0; n < copies.size(); ++n) {
            device_copy &c = copies[n];
            c.word_bytes = 1 << pick(0, 4);
            c.words = static_cast<std::uint32_t>(pick(1, 9));
            for (int loop = 0; loop < 3; ++loop) {
                c.count[loop] = static_cast<std::uint32_t>(pick(1, 7));
                c.stride[loop] = pick(-4, 4) * 1000 * (loop + 1);
                c.own_stride[loop] = pick(-4, 4) * 1000 * (loop + 1);
            }
            // Numbers only: nothing is read there.
            for (int i = 0; i < 2; ++i) {
                c.cells[i] = reinterpret_cast<std::byte *>((n + 1) << 32 | static_cast<unsigned>(i) << 28);
                c.own_cells[i] = reinterpret_cast<std::byte *>((n + 9) << 32 | static_cast<unsigned>(i) << 28);
            }
            c.message = -1;
        }
        const auto most = static_cast<std::uint32_t>(pick(1, 200));
        const auto lists = split_copies(copies, most);
        std::uint32_t before = most;
        for (const std::vector<device_copy> &list : lists) {
            std::uint32_t words = 0;
            for (const device_copy &c : list) {
                words += words_of(c);
                CHECK(c.message == -1);
                CHECK(mpix::detail::divide_narrow(1000, c.by_words) == 1000 / c.words);
                for (int loop = 0; loop < 2; ++loop)
                    CHECK(mpix::detail::divide_narrow(1000, c.by_count[loop]) == 1000 / c.count[loop]);
            }
            CHECK(!list.empty());
            CHECK(words <= most);
            // No two neighbours would have fitted into one.
            CHECK(before + words_of(list.front()) > most);
            before = words;
        }
        for (int allocation = 0; allocation < 2; ++allocation) {
            words_copied expected, found;
            for (const device_copy &c : copies) follow(c, allocation, expected);
            for (const auto &list : lists)
                for (const device_copy &c : list) follow(c, allocation, found);
            CHECK(sorted(found) == sorted(expected));
        }
    }
}

// Ghost cells at both ends of the rows of a box, in x fastest order: from the own cells of the other end.
TEST_CASE("both ends of short rows are copied at the same time") {
    constexpr int cells = 20, radius = 2, value = 8;
    constexpr std::int64_t row = (cells + 2 * radius) * value, plane = row * 6;
    const auto at = [](int allocation, std::int64_t place) {
        return reinterpret_cast<std::byte *>((std::int64_t{allocation} + 1) << 32 | place);
    };
    const auto end = [&](int first_ghost, int first_own) {
        device_copy c{};
        c.word_bytes = value;
        c.words = radius;
        const std::uint32_t counts[3] = {5, 4, 1};
        const std::int64_t strides[3] = {row, plane, 0};
        for (int loop = 0; loop < 3; ++loop) {
            c.count[loop] = counts[loop];
            c.stride[loop] = c.own_stride[loop] = strides[loop];
        }
        for (int i = 0; i < 2; ++i) {
            c.cells[i] = at(i, first_ghost * value);
            c.own_cells[i] = at(i, first_own * value);
        }
        c.claim = c.message = -1;
        return c;
    };
    const device_copy low = end(0, cells), high = end(radius + cells, radius);
    const auto is_joined = [](const device_copy &a, const device_copy &b) {
        for (const std::uint32_t most : {1000U, 17U, 5U, 1U})
            for (int allocation = 0; allocation < 2; ++allocation) {
                words_copied expected, found;
                for (const device_copy &c : {a, b}) follow(c, allocation, expected);
                for (const auto &list : split_copies({a, b}, most))
                    for (const device_copy &c : list) follow(c, allocation, found);
                CHECK(sorted(found) == sorted(expected));
            }
        return split_copies({a, b}, 1000).at(0).size() == 1;
    };
    CHECK(is_joined(low, high));
    CHECK(is_joined(high, low));

    device_copy other = high;
    other.count[1] = 3;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.own_stride[0] += row;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.own_cells[1] += value;  // the allocations are laid out differently
    CHECK_FALSE(is_joined(low, other));
    other = high;
    for (std::byte *&cells_of : other.cells) cells_of += row;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.cells[1] += value;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.claim = 0;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.words = 1;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.word_bytes = 4;
    CHECK_FALSE(is_joined(low, other));
    other = high;
    other.stride[1] += row;
    CHECK_FALSE(is_joined(low, other));
    device_copy low_in_three = low, high_in_three = high;
    for (device_copy *c : {&low_in_three, &high_in_three}) {
        c->count[2] = 2;
        c->stride[2] = c->own_stride[2] = 6 * plane;
    }
    CHECK_FALSE(is_joined(low_in_three, high_in_three));
    device_copy claimed = low;
    claimed.claim = 0;
    CHECK_FALSE(is_joined(claimed, high));
    device_copy long_low = low, long_high = high;
    long_low.words = long_high.words = 9;
    CHECK_FALSE(is_joined(long_low, long_high));
}
