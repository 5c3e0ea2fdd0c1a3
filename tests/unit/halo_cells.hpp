// SPDX-License-Identifier: BSD-3-Clause
//
// For the unit tests of boxes and fields: random numbers, and the cells of a box.
#ifndef MPIX_TESTS_UNIT_HALO_CELLS_HPP
#define MPIX_TESTS_UNIT_HALO_CELLS_HPP

#include <mpix/halo.hpp>

#include <random>

namespace halo_cells {

inline int between(std::mt19937 &random, int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); }

template <class Each>
void for_each_cell(const mpix::halo::box &b, Each each) {
    for (auto z = b.lo[2]; z < b.hi[2]; ++z)
        for (auto y = b.lo[1]; y < b.hi[1]; ++y)
            for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(mpix::halo::index3{x, y, z});
}

}  // namespace halo_cells

#endif  // MPIX_TESTS_UNIT_HALO_CELLS_HPP
