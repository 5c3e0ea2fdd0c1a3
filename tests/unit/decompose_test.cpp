// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/decompose.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix::halo;

TEST_CASE("prime factors are sorted, the largest first") {
    CHECK(prime_factors(1).empty());
    CHECK(prime_factors(2) == std::vector<int>{2});
    CHECK(prime_factors(360) == std::vector<int>{5, 3, 3, 2, 2, 2});
    CHECK(prime_factors(2147483647) == std::vector<int>{2147483647});
    for (int n = 1; n < 500; ++n) {
        int rest = 1;
        for (const int p : prime_factors(n)) rest *= p;
        CHECK(rest == n);
    }
}

TEST_CASE("all splits of a count into three") {
    for (int n = 1; n <= 60; ++n) {
        std::vector<count3> expected;
        for (int x = 1; x <= n; ++x)
            for (int y = 1; y <= n; ++y)
                for (int z = 1; z <= n; ++z)
                    if (x * y * z == n) expected.push_back({x, y, z});
        CHECK(all_splits(n) == expected);
    }
}

TEST_CASE("the longest axis is cut by the largest prime factor, nodes first") {
    const auto one_node = decompose({1440, 1452, 700}, 1, 6);
    REQUIRE(one_node);
    CHECK(one_node->per_node == count3{2, 3, 1});
    CHECK(one_node->at(3) == box{{720, 484, 0}, {1440, 968, 700}});

    const auto two_levels = decompose({100, 40, 10}, 5, 4);
    REQUIRE(two_levels);
    CHECK(two_levels->nodes == count3{5, 1, 1});
    CHECK(two_levels->per_node == count3{1, 4, 1});  // 20 x 40 x 10, then 20 x 20 x 10, of which the slower

    const auto cube = decompose({64, 64, 64}, 1, 2);
    REQUIRE(cube);
    CHECK(cube->per_node == count3{1, 1, 2});
}

TEST_CASE("where prime factors lead nowhere, another cut is found") {
    const auto d = decompose({6, 5, 1}, 1, 30);  // 5 along x would leave no 2 anywhere
    REQUIRE(d);
    CHECK(d->along() == count3{6, 5, 1});
    CHECK_FALSE(decompose({4, 4, 4}, 1, 7));
    CHECK_FALSE(decompose({4, 4, 4}, 7, 1));
    CHECK(decompose({4, 4, 4}, 8, 8));
    CHECK_FALSE(decompose({4, 4, 4}, 8, 8, {1, 2, 1}));
    CHECK(decompose({4, 8, 4}, 8, 8, {1, 2, 1}));
}

TEST_CASE("boxes cover the domain exactly once, and differ by little") {
    std::mt19937 random(1);
    const auto between = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
    int cut = 0;
    for (int round = 0; round < 300; ++round) {
        const index3 extent{between(1, 40), between(1, 30), between(1, 20)}, shortest{between(1, 2), 1, between(1, 3)};
        const int nodes = between(1, 12), per_node = between(1, 8);
        const auto d = decompose(extent, nodes, per_node, shortest);
        if (!d) {
            for (const count3 &n : all_splits(nodes))
                for (const count3 &g : all_splits(per_node)) CHECK_FALSE(feasible({extent, n, g}, shortest));
            continue;
        }
        ++cut;
        REQUIRE(product(d->nodes) == nodes);
        REQUIRE(product(d->per_node) == per_node);
        std::vector<int> covered(static_cast<std::size_t>(extent[0] * extent[1] * extent[2]));
        index3 least = extent, most{};
        for (int i = 0; i < d->boxes(); ++i) {
            CHECK(d->number(d->place(i)) == i);
            const box b = d->at(i);
            for (int a = 0; a < 3; ++a) {
                least[a] = std::min(least[a], b.size()[a]);
                most[a] = std::max(most[a], b.size()[a]);
            }
            for (auto z = b.lo[2]; z < b.hi[2]; ++z)
                for (auto y = b.lo[1]; y < b.hi[1]; ++y)
                    for (auto x = b.lo[0]; x < b.hi[0]; ++x)
                        ++covered.at(static_cast<std::size_t>((z * extent[1] + y) * extent[0] + x));
        }
        CHECK(std::count(covered.begin(), covered.end(), 1) == static_cast<std::ptrdiff_t>(covered.size()));
        for (int a = 0; a < 3; ++a) {
            CHECK(least[a] >= shortest[a]);
            CHECK(most[a] - least[a] <= 1);
        }
        // Boxes of a node are together.
        for (int node = 0; node < nodes; ++node) {
            const count3 first = d->place(node * per_node);
            for (int i = 0; i < per_node; ++i)
                for (int a = 0; a < 3; ++a)
                    CHECK(d->place(node * per_node + i)[a] / d->per_node[a] == first[a] / d->per_node[a]);
        }
    }
    CHECK(cut > 100);
}

TEST_CASE("boxes of a very large domain") {
    const std::int64_t length = std::int64_t{1} << 40;
    const auto d = decompose({length, 1, 1}, 4096, 8);
    REQUIRE(d);
    CHECK(d->along() == count3{32768, 1, 1});
    CHECK(d->at(32767).hi[0] == length);
}

TEST_CASE("boxes are cut further, all in the same way") {
    const auto d = decompose({100, 40, 10}, 5, 1);  // 20 x 40 x 10
    REQUIRE(d);
    CHECK(cut_further(*d, 6) == count3{2, 3, 1});
    CHECK(cut_further(*d, 1) == count3{1, 1, 1});
    const auto rows = decompose({5, 6, 1}, 1, 1);
    CHECK(cut_further(*rows, 30) == count3{5, 6, 1});  // 5 along y would leave no 3 anywhere
    CHECK_FALSE(cut_further(*rows, 7));
    CHECK_FALSE(cut_further(*rows, 30, {1, 2, 1}));
    CHECK(cut({{1, 2, 3}, {6, 4, 4}}, {2, 2, 1}) ==
          std::vector<box>{
              {{1, 2, 3}, {4, 3, 4}}, {{4, 2, 3}, {6, 3, 4}}, {{1, 3, 3}, {4, 4, 4}}, {{4, 3, 3}, {6, 4, 4}}});

    std::mt19937 random(2);
    const auto between = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
    int feasible_ones = 0;
    for (int round = 0; round < 500; ++round) {
        const index3 extent{between(1, 20), between(1, 20), between(1, 20)};
        const index3 shortest{between(1, 3), between(1, 3), between(1, 3)};
        const auto some = decompose(extent, between(1, 3), between(1, 4), shortest);
        if (!some) continue;
        const int n = between(1, 12);
        const auto more = cut_further(*some, n, shortest);
        const count3 along = some->along();
        bool possible = false;
        for (const count3 &split : all_splits(n)) {
            bool fits = true;
            for (int a = 0; a < 3; ++a) fits = fits && extent[a] / (along[a] * split[a]) >= shortest[a];
            possible = possible || fits;
        }
        CHECK(more.has_value() == possible);
        if (!more) continue;
        ++feasible_ones;
        CHECK(product(*more) == n);
        std::vector<int> owned(static_cast<std::size_t>(extent[0] * extent[1] * extent[2]));
        for (int number = 0; number < some->boxes(); ++number)
            for (const box &b : cut(some->at(number), *more)) {
                for (int a = 0; a < 3; ++a) CHECK(b.size()[a] >= shortest[a]);
                for (auto z = b.lo[2]; z < b.hi[2]; ++z)
                    for (auto y = b.lo[1]; y < b.hi[1]; ++y)
                        for (auto x = b.lo[0]; x < b.hi[0]; ++x)
                            ++owned[static_cast<std::size_t>((z * extent[1] + y) * extent[0] + x)];
            }
        CHECK(std::all_of(owned.begin(), owned.end(), [](int times) { return times == 1; }));
    }
    CHECK(feasible_ones > 100);
}
