// SPDX-License-Identifier: BSD-3-Clause
//
// Which way a message is packed on a GPU, by the constants of an H200; and that what the copy engine would be told is
// what the plan says, byte by byte.
#include "device/kernels/pack_choice.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "host/datatype/plan.h"
#include "host/datatype/typemap.h"
#include "host/protocol/pack_explain.h"
#include "tests/catch.hpp"

using namespace mpix;
using gpu::pack_way;
using gpu::packed_place;

namespace {

struct planned {
    std::shared_ptr<const plan> type;
    std::shared_ptr<const typemap> map;
};

planned make(std::vector<strided> parts, std::int64_t size, std::int64_t extent) {
    status problem;
    planned p{make_plan({std::move(parts), size, extent}, problem), nullptr};
    REQUIRE(problem.ok());
    p.map = typemap_of(*p.type);
    return p;
}

// `height` rows of `width` bytes, `pitch` apart, an element.
planned rows(std::int64_t width, std::int64_t pitch, std::int64_t height) {
    return make({{0, 0, width, {{height, pitch, width}}}}, width * height, pitch * height);
}
planned cube(std::int64_t width, std::int64_t pitch, std::int64_t height, std::int64_t slice, std::int64_t depth) {
    return make({{0, 0, width, {{height, pitch, width}, {depth, slice, width * height}}}}, width * height * depth,
                slice * depth);
}

gpu::pack_shape shape(const planned &p, std::int64_t begin, std::int64_t bytes, bool unpack = false,
                      packed_place place = packed_place::same_gpu) {
    const int word = detail::word_size(p.map->map, nullptr, reinterpret_cast<const char *>(begin), begin, bytes);
    return {&p.map->map, begin, bytes, unpack, word, place};
}

pack_way taken(const gpu::pack_shape &s, gpu::pack_mode mode = gpu::pack_mode::none) {
    return consider(s, gpu::pack_costs{}, mode).taken;
}

std::int64_t place_of(const typemap &map, std::int64_t x) { return detail::grid_map(map.map).locate(x).offset; }

}  // namespace

TEST_CASE("rows that a copy of rows is told are the plan's") {
    std::mt19937_64 random(20261122);
    const auto upto = [&](int n) { return 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
    int possible = 0, of_slices = 0, later = 0;
    for (int i = 0; i < 4000; ++i) {
        const std::int64_t width = upto(9), pitch = width + upto(5) - 1, height = upto(4),
                           slice = random() % 2 ? pitch * (height + upto(3) - 1) : pitch * height + upto(3),
                           depth = upto(4);
        const planned p = cube(width, pitch, height, slice, depth);
        if (p.map->map.kind != MPIX_TYPEMAP_GRID) continue;
        const std::int64_t all = 3 * p.type->size;
        std::int64_t begin = static_cast<std::int64_t>(random() % static_cast<unsigned>(all)),
                     bytes = upto(static_cast<int>(all - begin));
        if (random() % 4 != 0) {
            const std::int64_t unit = random() % 2 ? width : width * height;
            begin = begin / unit * unit;
            bytes = std::max<std::int64_t>(bytes / unit, 1) * unit;
        }
        gpu::pitched_rows r;
        if (!gpu::as_rows(shape(p, begin, bytes), r)) continue;
        ++possible;
        of_slices += r.depth > 1;
        later += begin > 0;
        REQUIRE(r.width * r.height * r.depth == bytes);
        REQUIRE(r.pitch >= r.width);
        if (r.depth > 1) REQUIRE(r.slice >= r.height);
        std::int64_t x = begin, wrong = 0;
        for (std::int64_t z = 0; z < r.depth; ++z)
            for (std::int64_t y = 0; y < r.height; ++y)
                for (std::int64_t b = 0; b < r.width; ++b, ++x)
                    wrong += r.offset + (z * r.slice + y) * r.pitch + b != place_of(*p.map, x);
        REQUIRE(wrong == 0);
    }
    CHECK(possible > 400);
    CHECK(of_slices > 100);
    CHECK(later > 100);
}

TEST_CASE("no copy of rows for what is none") {
    gpu::pitched_rows r;
    CHECK(gpu::as_rows(shape(rows(16, 1024, 8), 0, 128), r));
    CHECK_FALSE(gpu::as_rows(shape(rows(16, 1024, 8), 8, 64), r));   // begins within a row
    CHECK_FALSE(gpu::as_rows(shape(rows(16, 1024, 8), 0, 120), r));  // ends within one
    CHECK_FALSE(gpu::as_rows(shape(rows(16, -1024, 8), 0, 128), r));
    CHECK_FALSE(gpu::as_rows(shape(rows(16, std::int64_t{1} << 31, 8), 0, 128), r));  // beyond the longest pitch
    CHECK_FALSE(gpu::as_rows(shape(cube(16, 64, 4, 1000, 4), 0, 256), r));            // slices at no row
    CHECK(gpu::as_rows(shape(cube(16, 64, 4, 1000, 4), 64, 64), r));                  // one of them
    CHECK_FALSE(gpu::as_rows(shape(make({{0, 0, 8, {}}}, 8, 8), 0, 64), r));          // one piece
    CHECK_FALSE(gpu::as_rows(shape(make({{0, 0, 8, {}}, {16, 8, 4, {}}, {30, 12, 4, {}}}, 16, 64), 0, 16), r));
}

TEST_CASE("an H200's choices") {
    const std::int64_t MiB = 1 << 20;
    // Within the GPU kernels win, except for rows so long that both take what it takes to launch.
    for (const std::int64_t width : {1, 4, 16, 64})
        CHECK(taken(shape(rows(width, 1024, 64), 0, MiB)) == pack_way::kernel);
    for (const std::int64_t width : {16, 512, 4096})
        CHECK(taken(shape(rows(width, 2 * width, 64), 0, 16 * MiB)) == pack_way::kernel);
    CHECK(taken(shape(rows(512, 1024, 64), 0, 65536)) == pack_way::rows);
    for (const std::int64_t width : {200, 1001, 4096})
        for (const bool unpack : {false, true})
            CHECK(taken(shape(rows(width, 2 * width + 1, 64), 0, 4096 * width * 64, unpack)) == pack_way::kernel);
    // Into page-locked host memory: short rows by the kernel, long ones by the copy engine.
    const auto host = packed_place::mapped_host;
    CHECK(taken(shape(rows(16, 1024, 64), 0, MiB, false, host)) == pack_way::kernel);
    CHECK(taken(shape(rows(512, 1024, 64), 0, MiB, false, host)) == pack_way::rows);
    CHECK(taken(shape(rows(512, 1024, 64), 0, 16 * MiB, true, host)) == pack_way::rows);
    // What leaves no choice.
    CHECK(taken(shape(rows(512, 1024, 64), 0, MiB, false, packed_place::other_gpu)) == pack_way::kernel);
    CHECK(taken(shape(rows(512, 1024, 64), 0, MiB, false, packed_place::unreachable)) == pack_way::staged);
    for (const auto place : {packed_place::same_gpu, packed_place::other_gpu, host, packed_place::unreachable})
        CHECK(taken(shape(make({{0, 0, 8, {}}}, 8, 8), 0, MiB, false, place)) == pack_way::copy);
    // What was wished for, where it is possible.
    CHECK(taken(shape(rows(512, 1024, 64), 0, 65536), gpu::pack_mode::kernel) == pack_way::kernel);
    CHECK(taken(shape(rows(16, 1024, 64), 0, MiB), gpu::pack_mode::rows) == pack_way::rows);
    CHECK(taken(shape(rows(16, 1024, 64), 8, MiB), gpu::pack_mode::rows) == pack_way::kernel);
    CHECK(taken(shape(rows(16, 1024, 64), 0, MiB, false, packed_place::unreachable), gpu::pack_mode::kernel) ==
          pack_way::staged);
}

TEST_CASE("a large message in the GPU is no copy of rows because constants of small ones say so") {
    gpu::pack_costs flattering;
    flattering.copied_rows[1] = 3e6;
    flattering.moved[0][gpu::long_joined] = 1e6;
    const auto choice = consider(shape(rows(4096, 8193, 64), 0, 65536 * 4096), flattering, gpu::pack_mode::none);
    CHECK(choice.candidates[2].us < choice.candidates[1].us);
    CHECK(choice.taken == pack_way::kernel);
}

TEST_CASE("predictions come near an H200's times") {
    const auto us = [](const gpu::pack_shape &s) { return consider(s, gpu::pack_costs{}, gpu::pack_mode::none).us(); };
    const auto near = [](double predicted, double measured) {
        return predicted > 0.6 * measured && predicted < 1.7 * measured;
    };
    const std::int64_t MiB = 1 << 20;
    CHECK(near(us(shape(rows(1, 1024, 64), 0, MiB)), 40));
    CHECK(near(us(shape(rows(16, 1024, 64), 0, MiB)), 11));
    CHECK(near(us(shape(rows(16, 1024, 64), 0, 16 * MiB)), 45));
    CHECK(near(us(shape(rows(16, 1024, 64), 0, 16 * MiB, true)), 79));
    CHECK(near(us(shape(rows(64, 1024, 64), 0, 16 * MiB)), 21));
    CHECK(near(us(shape(rows(4096, 8192, 64), 0, 16 * MiB)), 16));
    CHECK(near(us(shape(rows(1001, 2003, 64), 0, 1001 * 64 * 4096)), 190));
    CHECK(near(us(shape(rows(4096, 8192, 64), 0, 16 * MiB, false, packed_place::mapped_host)), 309));
}

TEST_CASE("what is said of a choice") {
    const planned p = cube(16, 1024, 64, 65536, 4);
    const auto lines = explain_pack("MPI_Pack", *p.type, 4096, 2,
                                    consider(shape(p, 0, 4096), gpu::pack_costs{}, gpu::pack_mode::kernel));
    REQUIRE(lines.size() == 5);
    CHECK(lines[0] == "MPI_Pack of 4096 bytes, GPU 2: runs of 16 bytes, 256 at 1024");
    CHECK(lines[1] == "  copy         not possible the elements have gaps");
    CHECK(lines[2].rfind("  kernel       chosen       10.", 0) == 0);
    CHECK(lines[3].rfind("  copy by rows not used     8.", 0) == 0);
    CHECK(lines[4] == "  staged       not possible kernels reach the packed bytes");
}
