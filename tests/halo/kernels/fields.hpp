// SPDX-License-Identifier: BSD-3-Clause
//
// Random fields as kernels and the host find their way in them, and what each of their bytes is in an exchange.
#ifndef MPIX_TESTS_HALO_KERNELS_FIELDS_HPP
#define MPIX_TESTS_HALO_KERNELS_FIELDS_HPP

#include <cstddef>
#include <cstdint>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"

namespace halo_test {

using mpix::halo::box;
using mpix::halo::index3;

constexpr int most_fields = 3, most_boxes = 3;

// What byte `byte` of a cell is in an exchange.
MPIX_FN unsigned char value_at(std::uint64_t field, const index3 &cell, std::int64_t byte, std::uint64_t step) {
    std::uint64_t h = field * 1000003 + step * 7919 + static_cast<std::uint64_t>(byte);
    for (int a = 0; a < 3; ++a)
        h = (h ^ static_cast<std::uint64_t>(cell[static_cast<std::size_t>(a)])) * 0x9e3779b97f4a7c15 + (h >> 29);
    return static_cast<unsigned char>(h >> 56);
}

struct domain {
    index3 extent;
    bool periodic[3];

    // The cell of the domain that a ghost cell is a copy of; false if it lies outside.
    MPIX_FN bool inside(index3 &cell) const {
        for (std::size_t a = 0; a < 3; ++a) {
            if (periodic[a]) cell[a] = (cell[a] % extent[a] + extent[a]) % extent[a];
            if (cell[a] < 0 || cell[a] >= extent[a]) return false;
        }
        return true;
    }
};

// A field in one box. Its cells are points, if it is staggered.
struct view {
    domain whole;
    box local;
    index3 more;                                      // points beyond the last cell
    int reach[mpix::halo::directions];                // the radius: kernels cannot look into a std::array
    index3 origin, size;                              // of what is allocated
    std::int64_t value, cell, row, plane, component;  // bytes of one, and from one to the next
    std::int64_t cell_bytes;                          // of all components
    std::int64_t all_bytes;
    std::uint64_t seed;

    // Where byte `byte` of a cell lies, component by component.
    MPIX_FN std::int64_t at(const index3 &c, std::int64_t byte) const {
        return (c[2] - origin[2]) * plane + (c[1] - origin[1]) * row + (c[0] - origin[0]) * cell +
               byte / value * component + byte % value;
    }
    // Of the cells of a tile.
    MPIX_FN box points(const box &cells) const {
        box all = cells;
        for (std::size_t a = 0; a < 3; ++a)
            if (cells.hi[a] == whole.extent[a] - more[a]) all.hi[a] += more[a];
        return all;
    }
    std::size_t bytes() const { return static_cast<std::size_t>(all_bytes); }
};

// A rank's fields, passed to kernels by value.
struct views {
    view of[most_fields][most_boxes];
    int count;  // of fields
    bool two_allocations[most_fields];
};

// Whether a cell is in the box, or a ghost cell that an exchange fills.
MPIX_FN bool is_exchanged(const view &field, index3 cell) {
    int number = 0;
    std::int64_t beyond = 0;
    for (int a = 2; a >= 0; --a) {
        const auto axis = static_cast<std::size_t>(a);
        const std::int64_t below = field.local.lo[axis] - cell[axis], above = cell[axis] - field.local.hi[axis] + 1;
        number = 3 * number + (below > 0 ? 0 : above > 0 ? 2 : 1);
        if (below > beyond) beyond = below;
        if (above > beyond) beyond = above;
    }
    if (number == mpix::halo::no_direction) return true;
    return beyond <= field.reach[number] && field.whole.inside(cell);
}

// Calls each(cell) for this thread's cells of a box.
template <class Block, class Each>
DEVICE_FN void for_cells(const Block &block, const box &b, const Each &each) {
    const index3 n = b.size();
    if (b.empty()) return;
    const std::int64_t all = n[0] * n[1] * n[2];
    for (auto i = static_cast<std::int64_t>(block.thread_rank()); i < all;
         i += static_cast<std::int64_t>(block.num_threads()))
        each(index3{b.lo[0] + i % n[0], b.lo[1] + i / n[0] % n[1], b.lo[2] + i / (n[0] * n[1])});
}

}  // namespace halo_test

#endif  // MPIX_TESTS_HALO_KERNELS_FIELDS_HPP
