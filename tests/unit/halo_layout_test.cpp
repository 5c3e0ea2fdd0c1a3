// SPDX-License-Identifier: BSD-3-Clause
//
// Where the cells of a field lie in memory: runs, and what is wrong with a layout.
#include "host/field/layout.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/halo_cells.hpp"

using namespace mpix::halo;
using halo_cells::between;
using halo_cells::for_each_cell;

TEST_CASE("runs are a box's bytes in order, and nothing else") {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        const box local{{5, 6, 7}, {5 + between(random, 1, 5), 6 + between(random, 1, 4), 7 + between(random, 1, 3)}};
        const int depth = between(random, 0, 2), components = between(random, 1, 3);
        const std::size_t value = static_cast<std::size_t>(between(random, 1, 9));
        field_layout l{.components = components, .interleaved = between(random, 0, 1) == 1};
        const index3 size = local.size();
        const auto cell = static_cast<std::int64_t>(value) * (l.interleaved ? components : 1);
        auto row = (size[0] + 2 * depth) * cell, plane = row * (size[1] + 2 * depth);
        if (between(random, 0, 1))
            row += 5, plane = row * (size[1] + 2 * depth) + 3, l.row_bytes = row, l.plane_bytes = plane;
        auto component = plane * (size[2] + 2 * depth);
        if (between(random, 0, 1) && !l.interleaved) component += 11, l.component_bytes = component;
        std::vector<std::byte> memory(static_cast<std::size_t>(component * components));
        for (std::byte &b : memory) b = static_cast<std::byte>(random());

        field_view view;
        REQUIRE(field_view::make(field(memory.data(), value, radius::all(depth), l), {&local, 1}, 3, view).ok());
        box part = local;
        for (int a = 0; a < 3; ++a) {
            part.lo[a] =
                between(random, static_cast<int>(local.lo[a]) - depth, static_cast<int>(local.hi[a]) + depth - 1);
            part.hi[a] = between(random, static_cast<int>(part.lo[a]) + 1, static_cast<int>(local.hi[a]) + depth);
        }
        // The order: by component, unless they are interleaved; then by cell, x fastest.
        std::vector<std::size_t> places;
        const auto add = [&](int c) {
            for_each_cell(part, [&](const index3 &at) {
                for (int k = l.interleaved ? 0 : c; k < (l.interleaved ? components : c + 1); ++k)
                    for (std::size_t byte = 0; byte < value; ++byte)
                        places.push_back(static_cast<std::size_t>(
                                             (at[0] - local.lo[0] + depth) * cell +
                                             (at[1] - local.lo[1] + depth) * row +
                                             (at[2] - local.lo[2] + depth) * plane +
                                             k * (l.interleaved ? static_cast<std::int64_t>(value) : component)) +
                                         byte);
            });
        };
        for (int c = 0; c < (l.interleaved ? 1 : components); ++c) add(c);
        const runs r = view.of(0, part);
        REQUIRE(r.total() == static_cast<std::int64_t>(places.size()));
        std::vector<std::byte> packed(places.size());
        CHECK(pack(r, packed.data()) == r.total());
        for (std::size_t i = 0; i < places.size(); ++i)
            if (packed[i] != memory[places[i]]) FAIL_CHECK("another byte");

        std::vector<std::byte> expected = memory;
        for (std::size_t i = 0; i < places.size(); ++i) expected[places[i]] = packed[i] = ~packed[i];
        CHECK(unpack(packed.data(), r) == r.total());
        CHECK(memory == expected);
    }
}

TEST_CASE("a box without gaps is one run") {
    std::vector<float> memory(6 * 4 * 3);
    field_view view;
    const box local{{}, {4, 2, 1}};
    REQUIRE(field_view::make(field(memory.data(), radius::faces(1)), {&local, 1}, 3, view).ok());
    CHECK(view.of(0, {{-1, -1, -1}, {5, 3, 2}}).bytes == 6 * 4 * 3 * 4);
    CHECK(view.of(0, {{-1, -1, 1}, {5, 3, 2}}).count == std::array<std::int64_t, 3>{1, 1, 1});
    const runs rows = view.of(0, {{0, 0, 0}, {4, 2, 1}});
    CHECK(rows.bytes == 16);
    CHECK(rows.count == std::array<std::int64_t, 3>{2, 1, 1});
}

TEST_CASE("a field that is wrong is named") {
    double value = 0;
    const auto told = [&](const field &f) {
        field_view view;
        const box local{{}, {4, 4, 1}};
        return field_view::make(f, {&local, 1}, 2, view).message();
    };
    CHECK(told(field(&value, radius::all(1))).empty());
    CHECK(told(field(static_cast<double *>(nullptr), radius::all(1))) == "data is null");
    CHECK(told(field(&value, 0, radius::all(1))) == "value_bytes is 0; it is at least 1");
    field narrow(&value, 4, radius::all(1)), twice(&value, radius::all(1));
    narrow.type = value_type::float64;
    CHECK(told(narrow) == "type is float64, and value_bytes is 4; one of them is wrong");
    twice.other = reinterpret_cast<void *>(std::uintptr_t{64});
    CHECK(told(twice) == "other: the CPU cannot write there");
    CHECK(told(field(&value, radius::all(1), {.components = 0})) == "layout.components is 0; it is at least 1");
    CHECK(told(field(&value, radius::all(1), {.staggered = {true, true, false}})).empty());
    CHECK(told(field(&value, radius::all(1), {.staggered = {true, false, true}})) ==
          "layout.staggered[2]: the domain has 2 axes");
    CHECK(told(field(&value, radius{}.set(-1, 1, 0, -2))) == "radius is -2 in direction -x+y; it is at least 0");
    // Also along an axis that the domain lacks.
    CHECK(told(field(&value, radius{}.set(0, 0, 1, -2))) == "radius is -2 in direction +z; it is at least 0");
    CHECK(told(field(&value, radius{}.set(0, 0, 1, INT_MAX))).empty());
    CHECK(told(field(&value, radius::all(2), {.above = {1, -1, -1}})) ==
          "layout.above[0] is 1; the radius needs 2 cells there");
    CHECK(told(field(&value, radius::all(1), {.row_bytes = 47})) == "layout.row_bytes is 47; its cells take 48 bytes");
    CHECK(told(field(&value, radius::all(1), {.plane_bytes = 287})) ==
          "layout.plane_bytes is 287; its cells take 288 bytes");
    CHECK(told(field(&value, radius::all(1), {.row_bytes = std::size_t{1} << 61})) ==
          "layout.row_bytes is 2305843009213693952; it is at most 2^60");
    CHECK(told(field(&value, radius::all(1), {.below = {INT64_MAX, -1, -1}})) ==
          "layout.below[0] is 9223372036854775807; it is at most 2^60");
    CHECK(told(field(&value, std::size_t{1} << 58, radius::all(1))) == "more than 2^60 bytes, ghost cells included");
    CHECK(told(field(&value, radius::all(1), {.interleaved = true, .component_bytes = 4096})) ==
          "layout.component_bytes is for components that are not interleaved; leave it 0");
}

TEST_CASE("a field of several boxes has memory for each") {
    std::vector<float> memory(600);
    const std::vector<box> boxes{
        {{}, {4, 4, 1}}, {{4, 0, 0}, {4, 4, 1}}, {{4, 0, 0}, {6, 4, 1}}};  // the second is empty
    field_view view;
    const auto told = [&](const field &f) { return field_view::make(f, boxes, 2, view).message(); };
    float *const first = memory.data();
    const field good(std::vector<float *>{first, nullptr, first + 100}, radius::all(1));
    CHECK(told(good).empty());
    CHECK(view.bytes(0) == 6 * 6 * 4);
    CHECK(view.bytes(1) == 0);
    CHECK(view.bytes(2) == 4 * 6 * 4);
    CHECK(view.of(2, {{4, 0, 0}, {6, 1, 1}}).first == reinterpret_cast<std::byte *>(first + 100 + 4 + 1));
    CHECK_FALSE(view.has_second_allocation());
    CHECK(told(field(first, radius::all(1))) == "allocations has 0 entries; this rank has 3 boxes");
    CHECK(told(field(std::vector<float *>{first}, radius::all(1))) ==
          "allocations has 1 entries; this rank has 3 boxes");
    CHECK(told(field(std::vector<float *>{first, nullptr, nullptr}, radius::all(1))) == "allocations[2].data is null");
    const std::span<float> all(memory);
    const std::vector<std::span<float>> spans{all.first(36), {}, all.subspan(100, 23)};
    CHECK(told(field(spans, radius::all(1))) ==
          "allocations[2].allocated is 92 bytes; the box and its ghost cells take 96");
    // The distance that is given holds for all boxes.
    CHECK(told(field(spans, radius::all(1), {.row_bytes = 20})) == "layout.row_bytes is 20; its cells take 24 bytes");
    const field second(std::vector<float *>{first + 200, nullptr, first + 300}, radius::all(1));
    const field both = double_buffered(good, second);
    CHECK(told(both).empty());
    CHECK(view.has_second_allocation());
    CHECK(view.of(2, {{4, 0, 0}, {6, 1, 1}}).other == reinterpret_cast<std::byte *>(first + 300 + 4 + 1));
    field half = both;
    half.allocations[0].other = nullptr;
    CHECK(told(half) == "allocations: some have `other`, and others have none");
    CHECK(field_view::make(field(first, radius::all(1)), {}, 2, view).ok());  // a rank without boxes
    CHECK(field_view::make(good, {}, 2, view).message() == "allocations has 3 entries; this rank has 0 boxes");
}

TEST_CASE("fields overlap if they have a byte in common") {
    std::mt19937 random(7);
    std::vector<std::byte> memory(4000);
    int apart = 0, interleaved = 0;
    for (int round = 0; round < 2000; ++round) {
        // Distances that are often the same, so that rows and planes of one lie in gaps of the other.
        const std::int64_t row = between(random, 4, 12), plane = row * between(random, 2, 4), component = 3 * plane;
        runs pair[2];
        std::vector<int> bytes(memory.size());
        std::int64_t ends[2] = {};
        for (int i = 0; i < 2; ++i) {
            runs &r = pair[i];
            const std::int64_t wider = between(random, 0, 4) == 0 ? 1 : 0;
            r.bytes = between(random, 1, static_cast<int>(row));
            r.count = {between(random, 1, 2), between(random, 1, 3), between(random, 1, 2)};
            r.stride = {row + wider, plane + 2 * wider, component + 6 * wider};
            const int first = between(random, 0, static_cast<int>(2 * plane));
            r.first = memory.data() + first;
            for (std::int64_t k = 0; k < r.count[2]; ++k)
                for (std::int64_t j = 0; j < r.count[1]; ++j)
                    for (std::int64_t n = 0; n < r.count[0]; ++n)
                        for (std::int64_t b = 0; b < r.bytes; ++b) {
                            const std::int64_t at = first + k * r.stride[2] + j * r.stride[1] + n * r.stride[0] + b;
                            bytes[static_cast<std::size_t>(at)] |= 1 << i;
                            ends[i] = at + 1;
                        }
        }
        const bool common = std::find(bytes.begin(), bytes.end(), 3) != bytes.end();
        const bool told = overlap(pair[0], pair[1]);
        CHECK(overlap(pair[1], pair[0]) == told);
        if (common) CHECK(told);
        if (told) continue;
        const bool between_each_other =
            pair[0].first < memory.data() + ends[1] && pair[1].first < memory.data() + ends[0];
        ++(between_each_other ? interleaved : apart);
    }
    CHECK(apart > 100);
    CHECK(interleaved > 100);

    // Rows of two fields in turn; and the same with one row that is a cell longer.
    field_view even, odd;
    const box local{{}, {4, 3, 1}};
    const field_layout alternating{.row_bytes = 48, .plane_bytes = 240};
    REQUIRE(field_view::make(field(memory.data(), 4, radius::faces(1), alternating), {&local, 1}, 2, even).ok());
    REQUIRE(field_view::make(field(memory.data() + 24, 4, radius::faces(1), alternating), {&local, 1}, 2, odd).ok());
    CHECK_FALSE(overlap(even.allocated(0), odd.allocated(0)));
    REQUIRE(field_view::make(field(memory.data() + 20, 4, radius::faces(1), alternating), {&local, 1}, 2, odd).ok());
    CHECK(overlap(even.allocated(0), odd.allocated(0)));
}

TEST_CASE("an overlapping pair among many is found if comparing all of them finds one") {
    std::mt19937 random(9);
    std::vector<std::byte> memory(4000);
    int found = 0, none = 0;
    for (int round = 0; round < 2000; ++round) {
        // Short ones that most often lie apart, and long ones whose gaps others may lie in.
        std::vector<runs> all(static_cast<std::size_t>(between(random, 0, 12)));
        for (runs &r : all) {
            r.first = memory.data() + 4 * between(random, 0, 500);
            r.bytes = 4;
            if (between(random, 0, 3) > 0) continue;
            r.count = {between(random, 1, 12), between(random, 1, 3), 1};
            r.stride = {8, 160, 0};
        }
        bool expected = false;
        for (std::size_t i = 0; i < all.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) expected = expected || overlap(all[i], all[j]);
        const auto told = overlapping_pair(all);
        CHECK(told.has_value() == expected);
        if (told) CHECK((told->first < told->second && overlap(all[told->first], all[told->second])));
        ++(expected ? found : none);
    }
    CHECK(found > 100);
    CHECK(none > 100);
}

TEST_CASE("a field's memory is as long as its cells need") {
    const box local{{5, 6, 7}, {9, 9, 9}};  // 4 x 3 x 2 cells
    std::vector<float> memory(1000);
    const auto needs = [&](const field_layout &layout, std::int64_t bytes) {
        for (const std::int64_t less : {0, 1}) {
            field f(memory.data(), radius::all(1), layout);
            f.allocated = static_cast<std::size_t>(bytes - less);
            field_view view;
            const std::string told = field_view::make(f, {&local, 1}, 3, view).message();
            CHECK(view.bytes(0) == bytes);
            CHECK(told == (less == 0 ? ""
                                     : "allocated is " + std::to_string(bytes - 1) +
                                           " bytes; the box and its ghost cells take " + std::to_string(bytes)));
        }
    };
    // 6 x 5 x 4 cells with their ghost cells. What follows the last cell need not be there.
    needs({}, 6 * 5 * 4 * 4);
    needs({.components = 3}, 3 * 6 * 5 * 4 * 4);
    needs({.components = 3, .interleaved = true}, 3 * 6 * 5 * 4 * 4);
    needs({.row_bytes = 32}, (5 * 4 - 1) * 32 + 24);
    needs({.plane_bytes = 200}, 3 * 200 + 5 * 24);
    needs({.components = 2, .component_bytes = 500}, 500 + 480);
    needs({.below = {2, 1, 1}}, 7 * 5 * 4 * 4);

    // Less room than the radius needs, where that will do; -1 stands for what it needs.
    field_view small;
    const field tight(memory.data(), radius::all(1), {.below = {0, 0, -1}, .above = {0, 1, 0}});
    CHECK(field_view::make(tight, {&local, 1}, 3, small).message() ==
          "layout.below[0] is 0; the radius needs 1 cells there");
    REQUIRE(field_view::make(tight, {&local, 1}, 3, small, false, ghost_room::any).ok());
    CHECK(small.bytes(0) == 4 * 4 * 3 * 4);
    const field negative(memory.data(), radius::all(1), {.above = {0, -2, 0}});
    CHECK(field_view::measure(negative, {&local, 1}, 3, small, ghost_room::any).message() ==
          "layout.above[1] is -2; it is at least 0, or -1 for what the radius needs");

    field f(memory.data(), radius::all(1));
    f.allocated = 1;
    field_view none;
    const box empty{local.lo, local.lo};
    CHECK(field_view::make(f, {&empty, 1}, 3, none).ok());
    CHECK(none.bytes(0) == 0);
    CHECK(field(std::span<float>(memory), radius::all(1)).allocated == 4000);
    CHECK(field(memory.data(), radius::all(1)).allocated == 0);
    // The shorter of two allocations; an unknown one is not checked.
    const std::span<float> all(memory);
    const field longer(all, radius::all(1)), shorter(all.first(10), radius::all(1));
    CHECK(double_buffered(longer, shorter).allocated == 40);
    CHECK(double_buffered(shorter, longer).allocated == 40);
    CHECK(double_buffered(f = field(memory.data(), radius::all(1)), shorter).allocated == 40);
    CHECK(double_buffered(shorter, f).allocated == 40);
}
