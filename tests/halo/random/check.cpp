// SPDX-License-Identifier: BSD-3-Clause
//
// What is compared after exchanges: every byte of every allocation, interiors, gathered fields.
#include <algorithm>
#include <array>

#include "tests/halo/random/program.hpp"

namespace random_halo {

int program::check_data(const std::vector<halo::exchange> &exchanges, const std::vector<std::vector<int>> &sets) const {
    int wrong = 0;
    for (std::size_t x = 0; x < exchanges.size(); ++x)
        for (std::size_t f = 0; f < sets[x].size(); ++f) {
            const std::vector<test_box> &boxes = fields_[static_cast<std::size_t>(sets[x][f])].boxes;
            for (std::size_t i = 0; i < boxes.size(); ++i)
                wrong += exchanges[x].data(static_cast<int>(f), static_cast<int>(i)) != boxes[i].memory.data();
        }
    return wrong;
}

int program::check_gather(const halo::grid &g, test_field &f, std::uint64_t epoch) {
    std::vector<std::vector<std::byte>> before;
    for (const test_box &b : f.boxes) before.push_back(b.memory);
    const int root = pick(0, ranks_ - 1);
    const auto components = static_cast<std::size_t>(f.layout.components);
    const box all{{}, f.extent};
    const std::size_t cells = static_cast<std::size_t>(all.cells()), bytes = cells * components * f.value;
    std::vector<std::byte> gathered(bytes + 32, poison), expected(bytes + 32, poison);
    halo::gather(g, f.description(), rank_ == root ? gathered.data() : nullptr, root);
    std::size_t number = 0;
    for_each_cell(all, [&](const index3 &cell) {
        for (std::size_t c = 0; rank_ == root && c < components; ++c)
            for (std::size_t byte = 0; byte < f.value; ++byte)
                expected[(f.layout.interleaved ? number * components + c : c * cells + number) * f.value + byte] =
                    value_at(f.number, cell, c * f.value + byte, epoch);
        ++number;
    });
    int wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += expected[i] != gathered[i];
    for (std::size_t i = 0; i < before.size(); ++i) wrong += before[i] != f.boxes[i].memory;
    return wrong;
}

int program::check_interior(const halo::grid &g, const halo::exchange &x, const std::vector<int> &set) const {
    int wrong = 0;
    for (const int number : set) {
        const test_field &f = fields_[static_cast<std::size_t>(number)];
        const std::array<index3, 2> depth = halo::ghost_depth(f.radius, dimensions_);
        for (std::size_t i = 0; i < f.boxes.size(); ++i) {
            const box &local = f.boxes[i].local;
            const box inner = g.points(x.interior(static_cast<int>(i)), f.layout.staggered);
            for_each_ghost(f, local, [&](const index3 &where, const index3 &) {
                bool read = !inner.empty();
                for (int a = 0; a < 3; ++a)
                    read = read && where[a] >= inner.lo[a] - depth[0][a] && where[a] < inner.hi[a] + depth[1][a];
                wrong += read;
            });
            // All points, each once.
            std::int64_t points = inner.cells();
            for (const box &b : x.boundary(static_cast<int>(i))) {
                const box outer = g.points(b, f.layout.staggered);
                for_each_cell(outer, [&](const index3 &at) { wrong += !inside(local, at) || inside(inner, at); });
                points += outer.cells();
            }
            wrong += points != local.cells();
        }
    }
    return wrong;
}

int program::check(const test_field &f, std::uint64_t epoch) const {
    int wrong = 0;
    for (const test_box &b : f.boxes) wrong += check(f, b, epoch);
    return wrong;
}

int program::check(const test_field &f, const test_box &b, std::uint64_t epoch) const {
    std::vector<std::byte> expected(b.memory.size(), poison);
    const box &local = b.local;
    box all = local;
    for (int a = 0; a < 3; ++a) {
        all.lo[a] -= f.below[a];
        all.hi[a] += f.above[a];
    }
    if (!local.empty())
        for_each_cell(all, [&](const index3 &where) {
            std::array<int, 3> step{};
            std::int64_t distance = 0;
            index3 cell = where;
            for (int a = 0; a < 3; ++a) {
                if (where[a] < local.lo[a]) step[a] = -1, distance = std::max(distance, local.lo[a] - where[a]);
                if (where[a] >= local.hi[a]) step[a] = 1, distance = std::max(distance, where[a] - local.hi[a] + 1);
                if (options_.periodic[a]) cell[a] = ((cell[a] % f.extent[a]) + f.extent[a]) % f.extent[a];
                if (cell[a] < 0 || cell[a] >= f.extent[a]) return;
            }
            if (distance > f.radius.cells[halo::direction_number(step[0], step[1], step[2])]) return;
            for (int a = dimensions_; a < 3; ++a)
                if (step[a] != 0) return;
            put(f, b, expected, where, cell, epoch);
        });
    int wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += expected[i] != b.memory[i];
    for (const std::byte c : b.second) wrong += c != poison;
    return wrong;
}

}  // namespace random_halo
