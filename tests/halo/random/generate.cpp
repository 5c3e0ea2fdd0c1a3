// SPDX-License-Identifier: BSD-3-Clause
//
// The random boxes and fields.
#include <algorithm>

#include "tests/halo/random/program.hpp"

namespace random_halo {

std::vector<box> program::random_boxes(int n) {
    std::vector<box> boxes{{{}, extent_}};
    while (static_cast<int>(boxes.size()) < n) {
        box &cut = boxes[static_cast<std::size_t>(pick(0, static_cast<int>(boxes.size()) - 1))];
        const int a = pick(0, dimensions_ - 1);
        box other = cut;
        cut.hi[a] = other.lo[a] = cut.lo[a] + pick(0, static_cast<int>(cut.size()[a]));
        boxes.push_back(other);
    }
    std::shuffle(boxes.begin(), boxes.end(), shared_);
    return boxes;
}

void program::make_field(const halo::grid &g, int number) {
    fields_.emplace_back();
    test_field &f = fields_.back();
    f.number = static_cast<std::uint64_t>(number);
    f.extent = extent_;
    for (int a = 0; a < dimensions_; ++a)
        if (pick(0, 2) == 0) {
            f.layout.staggered[a] = true;
            f.extent[a] += !options_.periodic[a];
        }
    const std::size_t values[] = {1, 2, 4, 8, 12, 16};
    f.value = values[pick(0, 5)];
    std::vector<halo::value_type> types{halo::value_type::bytes};
    for (int type = 1; type <= static_cast<int>(halo::value_type::float64); ++type)
        with_type(static_cast<halo::value_type>(type), [&](auto zero) {
            if (sizeof zero == f.value) types.push_back(static_cast<halo::value_type>(type));
        });
    f.type = types[static_cast<std::size_t>(pick(0, 3)) % types.size()];
    f.layout.components = pick(0, 7) == 0 ? pick(60, 200) : pick(1, 3);  // so some messages are large
    switch (pick(0, 3)) {
        case 0:
            f.radius = halo::radius::all(pick(0, 3));
            break;
        case 1:
            f.radius = halo::radius::faces(pick(1, 3));
            break;
        default:
            for (int &depth : f.radius.cells) depth = pick(0, 1) * pick(0, 3);
            f.radius.cells[halo::no_direction] = 0;
    }
    f.layout.interleaved = pick(0, 1) == 1;
    // Padding and gaps are each rank's own.
    for (int number_of = 0; number_of < halo::directions; ++number_of)
        for (int a = 0; a < dimensions_; ++a) {
            bool exists = true;
            for (int b = dimensions_; b < 3; ++b) exists = exists && halo::direction(number_of)[b] == 0;
            const std::int64_t depth = exists ? f.radius.cells[number_of] : 0;
            if (halo::direction(number_of)[a] < 0) f.below[a] = std::max(f.below[a], depth);
            if (halo::direction(number_of)[a] > 0) f.above[a] = std::max(f.above[a], depth);
        }
    if (pick_own(0, 1))
        for (int a = 0; a < 3; ++a) {
            f.layout.below[a] = f.below[a] += pick_own(0, 2);
            f.layout.above[a] = f.above[a] += pick_own(0, 2);
        }
    f.cell = f.value * static_cast<std::size_t>(f.layout.interleaved ? f.layout.components : 1);
    f.two_allocations = pick(0, 2) == 0;
    for (std::size_t i = 0; i < g.boxes().size(); ++i)
        f.boxes.push_back({.number = g.boxes()[i], .local = points_of(f, g.local(static_cast<int>(i)))});
    allocate(f, 1);
}

void program::allocate(test_field &f, int gap) {
    // Each distance, of `unit` bytes for each of the cells along an axis; given ones are the same for all boxes.
    const auto distance = [&](std::size_t test_box::*which, int a, const auto &unit, bool may_be_given) {
        std::size_t longest = 0;
        for (test_box &b : f.boxes) {
            b.*which = unit(b) * static_cast<std::size_t>(b.local.size()[a] + f.below[a] + f.above[a]);
            longest = std::max(longest, b.*which);
        }
        if (!pick_own(0, 1) || longest == 0 || !may_be_given) return std::size_t{0};
        longest += static_cast<std::size_t>(pick_own(1, 20) * gap);
        for (test_box &b : f.boxes) b.*which = longest;
        return longest;
    };
    f.layout.row_bytes = distance(
        &test_box::row, 0, [&](const test_box &) { return f.cell; }, true);
    f.layout.plane_bytes = distance(
        &test_box::plane, 1, [](const test_box &b) { return b.row; }, true);
    f.layout.component_bytes = distance(
        &test_box::component, 2, [](const test_box &b) { return b.plane; }, !f.layout.interleaved);
    for (test_box &b : f.boxes) {
        b.memory.resize(b.component * static_cast<std::size_t>(f.layout.interleaved ? 1 : f.layout.components) + 1);
        if (f.two_allocations) b.second.resize(b.memory.size());
    }
}

}  // namespace random_halo
