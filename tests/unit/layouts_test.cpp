// SPDX-License-Identifier: BSD-3-Clause
//
// From one datatype to another in one pass, the receiver's as it comes from the wire; against the offsets that the
// standard gives the types. Every byte of both sides is checked.
#include "host/datatype/decode.h"
#include "host/datatype/plan_wire.h"
#include "host/datatype/typemap.h"

#include <mpix/impl/pack/typed_copy.cuh>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/random_type.hpp"

using namespace mpix;

namespace {

// A message of elements of a type, or packed, with room on both sides that nothing may touch.
struct side {
    sample made;
    std::shared_ptr<const plan> type;  // null: packed
    std::shared_ptr<const typemap> map;
    std::int64_t size = 1, extent = 1, low = 0;
    std::vector<unsigned char> memory;

    std::int64_t offset(std::int64_t x) const {
        if (type == nullptr) return x;
        return x / size * extent + made.map[static_cast<std::size_t>(x % size)];
    }
    std::size_t at(std::int64_t x) const { return static_cast<std::size_t>(64 + offset(x) - low); }
    detail::layout layout() {
        return {reinterpret_cast<char *>(memory.data()) + 64 - low, map == nullptr ? nullptr : &map->map};
    }
    void lay_out(std::int64_t bytes, std::mt19937_64 &random) {
        std::int64_t high = low = offset(0);
        for (std::int64_t x = 0; x < bytes; ++x) {
            low = std::min(low, offset(x));
            high = std::max(high, offset(x) + 1);
        }
        memory.resize(static_cast<std::size_t>(high - low) + 128);
        for (unsigned char &byte : memory) byte = static_cast<unsigned char>(random());
    }
};

// False: not one for this test.
bool draw(side &s, type_maker &maker, bool wired, bool packed) {
    if (packed) return true;
    s.made = maker.make(maker.below(4));
    if (s.made.map.empty() || s.made.map.size() > 400) return false;
    status why;
    s.type = plan_of(s.made.type, why);
    REQUIRE(s.type != nullptr);
    if (wired) {
        const std::vector<char> bytes = to_bytes(*s.type);
        for (std::size_t n : {std::size_t{0}, std::size_t{8}, bytes.size() - 1}) {
            status problem;
            REQUIRE(plan_from_bytes(bytes.data(), n, problem) == nullptr);
            REQUIRE(!problem.ok());
        }
        s.type = plan_from_bytes(bytes.data(), bytes.size(), why);
        REQUIRE(why.ok());
        REQUIRE(to_bytes(*s.type) == bytes);
    }
    s.map = typemap_of(*s.type);
    s.size = s.type->size;
    s.extent = s.type->extent;
    REQUIRE(s.size == static_cast<std::int64_t>(s.made.map.size()));
    return true;
}

bool overlaps_itself(const side &s, std::int64_t bytes) {
    std::vector<bool> used(s.memory.size());
    for (std::int64_t x = 0; x < bytes; ++x) {
        if (used[s.at(x)]) return true;
        used[s.at(x)] = true;
    }
    return false;
}

}  // namespace

TEST_CASE("any interval moves from one type to another") {
    std::mt19937_64 random(20261122);
    int done = 0, both = 0, wide = 0;
    for (int n = 0; n < 6000; ++n) {
        type_maker maker(random());
        side from, to;
        if (!draw(from, maker, false, n % 5 == 1) || !draw(to, maker, true, n % 5 == 2)) continue;
        const std::int64_t unit = std::lcm(from.size, to.size);
        if (unit > 20000) continue;
        const std::int64_t bytes = unit * maker.between(1, 4);
        from.lay_out(bytes, random);
        to.lay_out(bytes, random);
        if (from.memory.size() + to.memory.size() > 4000000 || overlaps_itself(to, bytes)) continue;
        if (to.type != nullptr) {
            const memory_span span = span_of(*to.type, bytes / to.size);
            REQUIRE(span.low == to.low);
            REQUIRE(span.high == to.low + static_cast<std::int64_t>(to.memory.size()) - 128);
        }
        const bool words = n % 2 == 0;  // whole words where they are made of words
        std::int64_t begin = maker.below(static_cast<int>(bytes));
        if (words) begin &= ~std::int64_t{15};
        std::int64_t length = 1 + maker.below(static_cast<int>(bytes - begin));
        if (words) length = bytes - begin;
        std::vector<unsigned char> expected = to.memory;
        for (std::int64_t x = begin; x < begin + length; ++x) expected[to.at(x)] = from.memory[from.at(x)];
        const int threads = maker.between(1, 9);
        for (int t = 0; t < threads; ++t) detail::move_share(to.layout(), from.layout(), begin, length, t, threads);
        CAPTURE(from.made.text, to.made.text, begin, length);
        REQUIRE(to.memory == expected);
        ++done;
        both += from.type != nullptr && to.type != nullptr;
        wide +=
            words &&
            ((detail::alignment_of(to.layout(), begin, length) | detail::alignment_of(from.layout(), begin, length)) &
             3) == 0;
    }
    // Enough of all kinds.
    CHECK(done > 2000);
    CHECK(both > 1000);
    CHECK(wide > 50);
}

TEST_CASE("plans that are none are refused") {
    status problem;
    const auto good = make_plan({{{0, 0, 4, {{3, 8, 4}}}, {100, 12, 2, {}}}, 14, 200}, problem);
    REQUIRE(good != nullptr);
    const auto refused = [&](const plan &bad) {
        const std::vector<char> bytes = to_bytes(bad);
        status why;
        return plan_from_bytes(bytes.data(), bytes.size(), why) == nullptr && !why.ok();
    };
    REQUIRE(!refused(*good));
    const auto changed = [&](auto change) {
        plan bad;
        bad.size = good->size;
        bad.extent = good->extent;
        bad.boxes = good->boxes;
        bad.loose = good->loose;
        change(bad);
        return refused(bad);
    };
    REQUIRE(good->boxes.size() >= 1);
    CHECK(changed([](plan &p) { p.size = 0; }));
    CHECK(changed([](plan &p) { p.size = 15; }));
    CHECK(changed([](plan &p) { p.extent = std::int64_t{1} << 60; }));
    CHECK(changed([](plan &p) { p.boxes[0].run = 0; }));
    CHECK(changed([](plan &p) { p.boxes[0].packed = 1; }));
    CHECK(changed([](plan &p) { p.boxes[0].offset = std::int64_t{1} << 60; }));
    CHECK(changed([](plan &p) { p.boxes[0].dimensions = 7; }));
    CHECK(changed([](plan &p) { p.boxes[0].dimensions = -1; }));
    CHECK(changed([](plan &p) { p.boxes[0].dimension[0].count = 4; }));
    CHECK(changed([](plan &p) { p.boxes[0].dimension[0].packed = 3; }));
    CHECK(changed([](plan &p) { p.boxes[0].dimension[0].stride = std::int64_t{1} << 60; }));
    CHECK(changed([](plan &p) { p.boxes.pop_back(); }));
    CHECK(changed([](plan &p) { p.loose.push_back({0, 0, 1}); }));
}
