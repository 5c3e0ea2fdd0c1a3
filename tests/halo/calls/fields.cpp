// SPDX-License-Identifier: BSD-3-Clause
//
// Fields in the memory of the program, and in that of the library's arrays, with points between the cells too.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::radius;
using halo_test::expect;
using halo_test::rank;

namespace {

// Three components in arrays of their own, rows that begin at multiples of 64 bytes, two cells on each side of the box.
struct velocity {
    explicit velocity(const halo::grid &g) : local(g.local()) {
        const auto n = local.size();
        layout = {.components = 3, .below = {2, 2, 2}, .above = {2, 2, 2}};
        layout.row_bytes = (static_cast<std::size_t>(n[0] + 4) * sizeof(float) + 63) / 64 * 64;
        layout.plane_bytes = static_cast<std::size_t>(n[1] + 4) * layout.row_bytes;
        layout.component_bytes = static_cast<std::size_t>(n[2] + 4) * layout.plane_bytes;
        memory.resize(3 * layout.component_bytes / sizeof(float));
    }

    halo::field field() { return {memory.data(), halo::radius::all(2), layout}; }

    float &operator()(std::int64_t x, std::int64_t y, std::int64_t z, int c) {
        const std::size_t bytes = static_cast<std::size_t>(z - local.lo[2] + 2) * layout.plane_bytes +
                                  static_cast<std::size_t>(y - local.lo[1] + 2) * layout.row_bytes +
                                  static_cast<std::size_t>(x - local.lo[0] + 2) * sizeof(float) +
                                  static_cast<std::size_t>(c) * layout.component_bytes;
        return memory[bytes / sizeof(float)];
    }

    halo::box local;
    halo::field_layout layout;
    std::vector<float> memory;
};

}  // namespace

// Memory of the program's own, as docs/halo.md describes it.
void own_memory() {
    const halo::grid g(MPI_COMM_WORLD, {5, 6, 7}, {.periodic = {true, true, true}});
    velocity u(g);
    halo::exchange x(g, {u.field()});
    box all = g.local();
    for (int a = 0; a < 3; ++a) all.lo[a] -= 2, all.hi[a] += 2;
    int wrong = 0;
    for (const bool fill : {true, false}) {
        const box &b = fill ? g.local() : all;
        for (auto k = b.lo[2]; k < b.hi[2]; ++k)
            for (auto j = b.lo[1]; j < b.hi[1]; ++j)
                for (auto i = b.lo[0]; i < b.hi[0]; ++i)
                    for (int c = 0; c < 3; ++c) {
                        const auto value =
                            static_cast<float>(1 + c + 3 * ((i + 5) % 5 + 5 * ((j + 6) % 6 + 6 * ((k + 7) % 7))));
                        if (fill) u(i, j, k, c) = value;
                        wrong += u(i, j, k, c) != value;
                    }
        if (!fill) break;
        x.start();
        x.finish();
    }
    expect(wrong == 0, std::to_string(wrong) + " values of the program's own memory are wrong");
}

// Arrays of the library's own, in each number of dimensions.
void arrays() {
    for (const std::vector<std::int64_t> &extent : std::vector<std::vector<std::int64_t>>{{9}, {5, 6}, {4, 3, 5}}) {
        const halo::grid g(MPI_COMM_WORLD, extent, {.periodic = {true, extent.size() > 1, extent.size() > 2}});
        halo::array<int> u(g, radius::all(2));
        halo::exchange x(g, {u});
        const auto value = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
            const auto inside = [&](std::int64_t c, int a) { return (c + g.extent()[a]) % g.extent()[a]; };
            return static_cast<int>(inside(i, 0) + 10 * inside(j, 1) + 100 * inside(k, 2) + 1);
        };
        const auto over = [&](const box &b, const auto &each) {
            for (auto k = b.lo[2]; k < b.hi[2]; ++k)
                for (auto j = b.lo[1]; j < b.hi[1]; ++j)
                    for (auto i = b.lo[0]; i < b.hi[0]; ++i) each(i, j, k);
        };
        over(g.local(), [&](auto i, auto j, auto k) { u(i, j, k) = value(i, j, k); });
        x.start();
        x.finish();
        box all = g.local();
        for (std::size_t a = 0; a < extent.size(); ++a) all.lo[a] -= 2, all.hi[a] += 2;
        int wrong = 0;
        over(all, [&](auto i, auto j, auto k) { wrong += u(i, j, k) != value(i, j, k); });
        expect(wrong == 0,
               std::to_string(extent.size()) + "-D: " + std::to_string(wrong) + " cells of the array are wrong");
    }
}

// Flow through the faces of cells: what a cell reads above itself is there, and nothing else in the interior.
void staggered() {
    const halo::grid g(MPI_COMM_WORLD, {5, 6}, {.periodic = {true, false, false}});
    const std::array<bool, 3> in_x{true, false, false}, in_y{false, true, false};
    halo::array<int> u(g, radius::of({{1, 0, 0}}), in_x), v(g, radius::of({{0, 1, 0}}), in_y);
    halo::exchange x(g, {u, v});
    const auto over = [](const box &b, const auto &each) {
        for (auto j = b.lo[1]; j < b.hi[1]; ++j)
            for (auto i = b.lo[0]; i < b.hi[0]; ++i) each(i, j);
    };
    const auto value = [](std::int64_t i, std::int64_t j) { return static_cast<int>(1 + i % 5 + 10 * j); };
    const box &local = g.local();
    box with_ends = local;
    with_ends.hi[1] += rank == 1;
    expect(g.points(local, in_x) == local && g.points(local, in_y) == with_ends, "the points");
    expect(g.points({local.hi, local.hi}, in_y).empty(), "points of no cells");
    over(g.points(local, in_x), [&](auto i, auto j) { u(i, j) = value(i, j); });
    over(g.points(local, in_y), [&](auto i, auto j) { v(i, j) = value(i, j); });
    int wrong = 0;
    const auto check = [&](auto i, auto j) {
        wrong += u(i + 1, j) != value(i + 1, j) || v(i, j + 1) != value(i, j + 1);
    };
    x.start();
    over(x.interior(), check);
    x.finish();
    for (const box &b : x.boundary()) over(b, check);
    expect(wrong == 0, "values on the faces");
    // Rank 1 fills nothing above: what its last cells read there is the domain's end.
    expect(x.interior() == box{local.lo, {4, local.hi[1] - (rank == 0), 1}}, "the interior");
    std::vector<int> all(5 * 7), expected;
    over({{}, {5, 7, 1}}, [&](auto i, auto j) { expected.push_back(value(i, j)); });
    halo::gather(g, v, all.data(), 1);
    expect(rank == 0 || all == expected, "gathered");
    expect(halo::field_bytes(g, v) == 4U * 5 * (rank == 0 ? 4 : 5), "field_bytes");
}
