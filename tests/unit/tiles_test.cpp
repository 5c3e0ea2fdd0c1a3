// SPDX-License-Identifier: BSD-3-Clause
//
// Boxes cut into tiles, and what each of them sends and reads (host/halo_tables/tiles.cc).
#include "host/halo_tables/tiles.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix::halo;

namespace {

// Two boxes side by side along x, of ranks 0 and 1.
domain two_boxes(bool periodic) {
    domain d;
    d.dimensions = 2;
    d.extent = {8, 5, 1};
    d.periodic = {periodic, false, false};
    d.boxes = {{{0, 0, 0}, {4, 5, 1}}, {{4, 0, 0}, {8, 5, 1}}};
    d.owners = {0, 1};
    return d;
}

exchanged_fields one_field(const radius &r, std::array<bool, 3> staggered = {}) { return {{8, r, staggered}}; }

}  // namespace

TEST_CASE("tiles of a box") {
    const tiling tiles({{1, 2, 0}, {8, 6, 1}}, {3, 0, 1});
    REQUIRE(tiles.count() == 3);
    CHECK(tiles.at(0) == box{{1, 2, 0}, {4, 6, 1}});
    CHECK(tiles.at(2) == box{{7, 2, 0}, {8, 6, 1}});
    CHECK(tiles.touched({{3, 0, 0}, {5, 9, 1}}) == std::vector<int>{0, 1});
    CHECK(tiles.touched({{8, 2, 0}, {9, 6, 1}}).empty());
    // A point beyond the last cell is the last tile's.
    CHECK(tiles.touched_by_points({{8, 2, 0}, {9, 6, 1}}) == std::vector<int>{2});
    CHECK(tiling({{1, 2, 0}, {8, 6, 1}}, {100, 100, 100}).count() == 1);
    CHECK(tiling({{1, 2, 0}, {1, 6, 1}}, {2, 2, 1}).count() == 0);
    // More than 2^31.
    CHECK(tiling({{0, 0, 0}, {65536, 65537, 1}}, {1, 1, 1}).count() == std::int64_t{65536} * 65537);
}

TEST_CASE("both ends of a message make the same parcels") {
    for (const bool periodic : {false, true})
        for (const radius &r : {radius::faces(1), radius::all(2), radius::all(6)}) {
            const domain d = two_boxes(periodic);
            const exchanged_fields fields = one_field(r, {true, false, false});
            const auto to = parcels_received(d, {1}, {2, 2, 1}, fields), from = parcels_sent(d, {0}, {2, 2, 1}, fields);
            REQUIRE(to.count(0) == 1);
            REQUIRE(from.count(1) == 1);
            const parcels &received = to.at(0), &sent = from.at(1);
            REQUIRE(received.all.size() == sent.all.size());
            CHECK(received.cut.bytes == sent.cut.bytes);
            CHECK(received.cut.first == sent.cut.first);
            for (std::size_t i = 0; i < sent.all.size(); ++i) {
                const parcel &a = received.all[i], &b = sent.all[i];
                CHECK((a.tile == b.tile && a.first == b.first && a.last == b.last));
                REQUIRE(a.parts.size() == b.parts.size());
                for (std::size_t k = 0; k < a.parts.size(); ++k)
                    CHECK((a.parts[k].source == b.parts[k].source && a.parts[k].ghosts == b.parts[k].ghosts &&
                           a.parts[k].packed == b.parts[k].packed));
            }
        }
}

TEST_CASE("a tile sends what lies at its sides") {
    const domain d = two_boxes(false);
    const auto from = parcels_sent(d, {0}, {2, 2, 1}, one_field(radius::faces(1)));
    REQUIRE(from.size() == 1);
    // Tiles 1, 3 and 5 are at the upper side along x.
    const parcels &all = from.at(1);
    REQUIRE(all.all.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(all.all[i].tile == static_cast<int>(2 * i + 1));
    CHECK(all.all[2].parts.at(0).source == box{{3, 4, 0}, {4, 5, 1}});
    CHECK(all.all[2].parts.at(0).ghosts == box{{3, 4, 0}, {4, 5, 1}});
}

TEST_CASE("the tiles that read ghost cells") {
    const domain d = two_boxes(false);
    const tiling tiles(d.boxes[1], {2, 2, 1});
    const box beside{{3, 2, 0}, {4, 3, 1}};  // the lower side along x, at the second row of tiles
    const auto readers = [&](const radius &r) { return readers_of(d, tiles, beside, one_field(r).front()); };
    CHECK(readers(radius::faces(1)) == std::vector<int>{2});
    CHECK(readers(radius::all(1)) == std::vector<int>{0, 2});
    CHECK(readers(radius::faces(3)) == std::vector<int>{2, 3});
    CHECK(readers(radius::faces(0)).empty());
}

TEST_CASE(
    "tiles of the library's kernels are a quarter of the longest box, from 8 cells on, while their sides are small") {
    const auto chosen = [](const std::vector<box> &boxes, const index3 &given = {}, int dimensions = 3,
                           std::int64_t depth_bytes = 1) { return choose_tile(boxes, dimensions, given, depth_bytes); };
    CHECK(chosen({{{0, 0, 0}, {128, 40, 33}}}) == index3{32, 10, 9});
    CHECK(chosen({{{0, 0, 0}, {31, 256, 257}}}) == index3{8, 64, 65});
    // Along each axis of the box that is longest there, of all ranks' boxes; those without cells do not count.
    CHECK(chosen({{{0, 0, 0}, {40, 60, 1}}, {{40, 0, 0}, {100, 48, 1}}}) == index3{15, 15, 8});
    CHECK(chosen({{{0, 0, 0}, {40, 40, 1}}, {{40, 0, 0}, {40, 200, 1}}}) == index3{10, 10, 8});
    // What is given stays, and so do axes that the domain lacks.
    CHECK(chosen({{{0, 0, 0}, {128, 128, 128}}}, {0, 3, 500}) == index3{32, 3, 500});
    CHECK(chosen({{{0, 0, 0}, {128, 128, 1}}}, {}, 2) == index3{32, 32, 0});
    // On a line a tile's side is a point, however long the tile.
    CHECK(chosen({{{0, 0, 0}, {5000, 1, 1}}}, {}, 1, 1 << 20) == index3{1250, 0, 0});
    CHECK(chosen({{{0, 0, 0}, {512, 512, 512}}}, {0, 300, 0}, 3, 96) == index3{16, 300, 8});

    // Cubes: one value of 8 bytes beyond each side, and 12 of them.
    const auto edge = [&](std::int64_t length, std::int64_t depth_bytes) {
        const index3 tile = chosen({{{0, 0, 0}, {length, length, length}}}, {}, 3, depth_bytes);
        CHECK(tile == index3{tile[0], tile[0], tile[0]});
        return tile[0];
    };
    CHECK(edge(64, 8) == 16);
    CHECK(edge(256, 8) == 64);
    CHECK(edge(512, 8) == 64);
    CHECK(edge(64, 96) == 16);
    CHECK(edge(128, 96) == 16);
    CHECK(edge(256, 96) == 32);
    CHECK(edge(512, 96) == 32);

    std::mt19937 random(17);
    for (int round = 0; round < 100; ++round) {
        const auto pick = [&](std::int64_t low, std::int64_t high) {
            return std::uniform_int_distribution<std::int64_t>(low, high)(random);
        };
        const index3 length{pick(1, 900), pick(1, 900), pick(1, 900)};
        const std::int64_t depth_bytes = pick(0, 500);
        const index3 tile = chosen({{{0, 0, 0}, {length[0], length[1], length[2]}}}, {}, 3, depth_bytes);
        CAPTURE(length, depth_bytes);
        const std::int64_t tiles = tiling({{0, 0, 0}, length}, tile).count();
        const bool is_least = tiles >= 4096 || tile == index3{8, 8, 8};
        std::int64_t largest = 0, tiles_of_largest = 0;
        for (std::size_t a = 0; a < 3; ++a) {
            CHECK(tile[a] >= 8);
            CHECK(tile[a] <= std::max<std::int64_t>(8, (length[a] + 3) / 4));
            const std::int64_t side_bytes = tile[(a + 1) % 3] * tile[(a + 2) % 3] * depth_bytes;
            CHECK((side_bytes <= 128 << 10 || is_least));
            if (side_bytes <= largest) continue;
            const auto along = [&](std::size_t axis) { return (length[axis] + tile[axis] - 1) / tile[axis]; };
            largest = side_bytes;
            tiles_of_largest = along((a + 1) % 3) * along((a + 2) % 3);
        }
        CHECK((largest <= 32 << 10 || tiles_of_largest >= 64 || is_least));
    }
}
