// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange is made of, without MPI: who fills which ghost cells, runs of memory, partitions.
#include "host/field/box_index.h"
#include "host/field/layout.h"
#include "host/field/neighbours.h"
#include "host/halo/partitions.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix::halo;

namespace {

int between(std::mt19937 &random, int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); }

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

// Cuts `all` at random places into n boxes, some of which may be empty.
std::vector<box> random_boxes(const box &all, int n, std::mt19937 &random) {
    std::vector<box> boxes{all};
    while (static_cast<int>(boxes.size()) < n) {
        box &cut = boxes[static_cast<std::size_t>(between(random, 0, static_cast<int>(boxes.size()) - 1))];
        const int a = between(random, 0, 2);
        const auto at = cut.lo[a] + between(random, 0, static_cast<int>(cut.size()[a]));
        box other = cut;
        cut.hi[a] = other.lo[a] = at;
        boxes.push_back(other);
    }
    std::shuffle(boxes.begin(), boxes.end(), random);
    return boxes;
}

bool same(const std::vector<piece> &a, const std::vector<piece> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const piece &p, const piece &q) {
        return p.receiver == q.receiver && p.owner == q.owner && p.direction == q.direction && p.ghosts == q.ghosts &&
               p.source == q.source;
    });
}

template <class Each>
void for_each_cell(const box &b, Each each) {
    for (auto z = b.lo[2]; z < b.hi[2]; ++z)
        for (auto y = b.lo[1]; y < b.hi[1]; ++y)
            for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(index3{x, y, z});
}

}  // namespace

TEST_CASE("each ghost cell within the domain has one source, its owner's cell") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        domain d;
        for (int a = 0; a < 3; ++a) {
            d.extent[a] = between(random, 1, 7);
            d.periodic[a] = between(random, 0, 1) == 1;
        }
        d.boxes = random_boxes({{}, d.extent}, between(random, 1, 6), random);
        REQUIRE(why_not_a_cover(d).empty());
        std::array<bool, 3> staggered{};
        index3 points = d.extent;
        for (int a = 0; a < 3; ++a) {
            staggered[a] = between(random, 0, 2) == 0;
            points[a] += staggered[a] && !d.periodic[a];
        }
        d = points_of(d, staggered);
        CHECK(d.extent == points);
        REQUIRE(why_not_a_cover(d).empty());
        radius some;
        for (int &depth : some.cells)
            depth = between(random, 0, 9);  // also beyond the neighbour, and around the domain
        for (int me = 0; me < static_cast<int>(d.boxes.size()); ++me) {
            std::map<index3, int> filled;
            for (int owner = 0; owner < static_cast<int>(d.boxes.size()); ++owner)
                for (const piece &p : pieces_between(d, me, owner, some)) {
                    CHECK(p.ghosts.size() == p.source.size());
                    CHECK(intersection(p.source, d.boxes[owner]) == p.source);
                    for_each_cell(p.ghosts, [&](const index3 &cell) {
                        ++filled[cell];
                        for (int a = 0; a < 3; ++a) {
                            const auto source = cell[a] - p.ghosts.lo[a] + p.source.lo[a];
                            if ((source - cell[a]) % d.extent[a] != 0 || (!d.periodic[a] && source != cell[a]))
                                FAIL_CHECK("another cell");
                        }
                    });
                }
            std::map<index3, int> expected;
            if (!d.boxes[me].empty())
                for (int number = 0; number < directions; ++number)
                    if (number != no_direction)
                        for_each_cell(ghosts_of(d.boxes[me], number, some.cells[number]), [&](const index3 &cell) {
                            for (int a = 0; a < 3; ++a)
                                if (!d.periodic[a] && (cell[a] < 0 || cell[a] >= d.extent[a])) return;
                            ++expected[cell];
                        });
            CHECK(filled == expected);
        }
    }
}

TEST_CASE("an index finds all pieces, in the order of the receivers and then of the owners") {
    std::mt19937 random(8);
    for (int round = 0; round < 200; ++round) {
        domain cells;
        for (int a = 0; a < 3; ++a) {
            cells.extent[a] = between(random, 1, 9);
            cells.periodic[a] = between(random, 0, 1) == 1;
        }
        cells.boxes = random_boxes({{}, cells.extent}, between(random, 1, 9), random);
        const int n = static_cast<int>(cells.boxes.size());
        const domain d =
            points_of(cells, {between(random, 0, 1) == 1, between(random, 0, 1) == 1, between(random, 0, 1) == 1});
        radius some;
        for (int &depth : some.cells) depth = between(random, 0, 1) * between(random, 0, round % 2 == 0 ? 2 : 20);
        std::vector<int> mine;
        for (int number = 0; number < n; ++number)
            if (between(random, 0, 1)) mine.push_back(number);
        const auto is_mine = [&](int number) { return std::find(mine.begin(), mine.end(), number) != mine.end(); };
        std::vector<piece> to, from;
        for (int receiver = 0; receiver < n; ++receiver)
            for (int owner = 0; owner < n; ++owner)
                for (const piece &p : pieces_between(d, receiver, owner, some)) {
                    if (is_mine(receiver)) to.push_back(p);
                    if (is_mine(owner)) from.push_back(p);
                }
        const box_index index(cells);
        CHECK(same(pieces_to(d, index, mine, some), to));
        CHECK(same(pieces_from(d, index, mine, some), from));
    }
}

TEST_CASE("boxes that do not cover the domain are told") {
    domain d{.extent = {4, 4, 1}};
    d.boxes = {{{0, 0, 0}, {4, 2, 1}}, {{0, 2, 0}, {4, 4, 1}}};
    CHECK(why_not_a_cover(d).empty());
    d.boxes[1].lo[1] = 1;
    CHECK(why_not_a_cover(d) == "boxes[0] and boxes[1] overlap, in [0, 1, 0] to [4, 2, 1]");
    d.boxes[1].lo[1] = 3;
    CHECK(why_not_a_cover(d) == "they hold 12 of the domain's 16 cells");
    d.boxes[1] = {{0, 2, 0}, {5, 4, 1}};
    CHECK(why_not_a_cover(d) == "boxes[1], [0, 2, 0] to [5, 4, 1], is not within the domain");
    d.boxes = {{{0, 0, 0}, {4, 4, 1}}, {{9, 9, 9}, {9, 9, 9}}};
    CHECK(why_not_a_cover(d).empty());
    d.dimensions = 2;
    d.boxes = {{{0, 0}, {4, 2}}, {{0, 2}, {4, 4}}};
    CHECK(why_not_a_cover(d) ==
          "they hold 0 of the domain's 16 cells (along axes that the domain lacks, lo is 0 and hi is 1)");
}

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
    CHECK(told(twice) == "other: the CPU cannot write there; kernel_exchange takes memory of a GPU");
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

TEST_CASE("each field has partitions of its own, with little padding") {
    const partitions one = choose_partitions({1000});
    CHECK(one.bytes == 1000);
    CHECK(one.first == std::vector<int>{0, 1});
    const partitions equal = choose_partitions({512, 512, 512});
    CHECK(equal.bytes == 512);
    CHECK(equal.count() == 3);
    const partitions none = choose_partitions({0, 64, 0});
    CHECK(none.first == std::vector<int>{0, 0, 1, 1});

    std::mt19937 random(4);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::int64_t> bytes(static_cast<std::size_t>(between(random, 1, 6)));
        std::int64_t sum = 0;
        for (auto &b : bytes) sum += b = between(random, 0, 3) == 0 ? 0 : between(random, 1, 100000);
        if (sum == 0) continue;
        const partitions p = choose_partitions(bytes);
        for (std::size_t f = 0; f < bytes.size(); ++f) {
            const auto room = p.bytes * (p.first[f + 1] - p.first[f]);
            CHECK(room >= bytes[f]);
            CHECK(room < bytes[f] + p.bytes);
        }
        // Never more than one partition for each field would take.
        const auto longest = *std::max_element(bytes.begin(), bytes.end());
        CHECK(p.bytes * p.count() <= (longest + 64) * static_cast<std::int64_t>(bytes.size()));
    }
}
