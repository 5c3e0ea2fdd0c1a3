// SPDX-License-Identifier: BSD-3-Clause
//
// Arithmetic on boxes: the radius of a stencil, interiors, differences.
#include "host/field/neighbours.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/halo_cells.hpp"

using namespace mpix::halo;
using halo_cells::between;
using halo_cells::for_each_cell;

namespace {

// A radius has no list of numbers: {1} would be that of one corner.
template <class Radius>
concept takes_a_number = requires {
    Radius{1};
};
template <class Field>
concept takes_a_number_for_a_radius = requires(double *data) {
    Field{data, {1}};
};
static_assert(!takes_a_number<radius> && !takes_a_number_for_a_radius<field>);

}  // namespace

TEST_CASE("the radius of a stencil is what its cells read beyond a box") {
    std::mt19937 random(5);
    for (int round = 0; round < 100; ++round) {
        std::vector<std::array<int, 3>> offsets(static_cast<std::size_t>(between(random, 1, 4)));
        for (std::array<int, 3> &offset : offsets)
            for (int &along : offset) along = between(random, 0, 1) * between(random, -3, 3);
        const bool small = round % 2 == 1;
        const box local{{}, {small ? between(random, 1, 3) : 4, small ? 1 : 4, 4}};
        radius read;
        for_each_cell(local, [&](const index3 &cell) {
            for (const std::array<int, 3> &offset : offsets) {
                int step[3] = {};
                std::int64_t deepest = 0;
                for (int a = 0; a < 3; ++a) {
                    const auto at = cell[a] + offset[a];
                    step[a] = at < local.lo[a] ? -1 : at >= local.hi[a] ? 1 : 0;
                    deepest = std::max({deepest, local.lo[a] - at, at - local.hi[a] + 1});
                }
                int &depth = read.cells[direction_number(step[0], step[1], step[2])];
                depth = std::max(depth, static_cast<int>(deepest));
            }
        });
        const radius needed = radius::of(offsets);
        for (int number = 0; number < directions; ++number) {
            CHECK(needed.cells[number] >= read.cells[number]);
            if (!small) CHECK(needed.cells[number] == read.cells[number]);  // all of which some cell reads
        }
    }
}

TEST_CASE("interior and boundary are the box") {
    std::mt19937 random(2);
    for (int round = 0; round < 200; ++round) {
        box local;
        std::array<index3, 2> depth{};
        for (int a = 0; a < 3; ++a) {
            local.lo[a] = between(random, -3, 3);
            local.hi[a] = local.lo[a] + between(random, 0, 6);
            depth[0][a] = between(random, 0, 3);
            depth[1][a] = between(random, 0, 3);
        }
        const box inner = shrunk(local, depth);
        std::map<index3, int> times;
        for_each_cell(inner, [&](const index3 &cell) { ++times[cell]; });
        for (const box &b : difference(local, inner)) for_each_cell(b, [&](const index3 &cell) { ++times[cell]; });
        CHECK(static_cast<std::int64_t>(times.size()) == local.cells());
        for (const auto &[cell, n] : times) {
            bool inside = true;
            for (int a = 0; a < 3; ++a)
                inside = inside && cell[a] >= local.lo[a] + depth[0][a] && cell[a] < local.hi[a] - depth[1][a];
            CHECK(n == 1);
            CHECK(intersection(inner, {cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1}}).empty() != inside);
        }
    }
}

TEST_CASE("the difference of boxes is what is in one and not in the other") {
    std::mt19937 random(6);
    const auto any = [&] {
        box b;
        for (int a = 0; a < 3; ++a) {
            b.lo[a] = between(random, -4, 4);
            b.hi[a] = b.lo[a] + between(random, 0, 6);
        }
        return b;
    };
    for (int round = 0; round < 300; ++round) {
        const box outer = any(), inner = any();
        std::map<index3, int> times, expected;
        const std::vector<box> rest = difference(outer, inner);
        CHECK(rest.size() <= 6);
        for (const box &b : rest) for_each_cell(b, [&](const index3 &cell) { ++times[cell]; });
        for_each_cell(outer, [&](const index3 &cell) {
            if (intersection(inner, {cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1}}).empty()) ++expected[cell];
        });
        CHECK(times == expected);
    }
}
