// SPDX-License-Identifier: BSD-3-Clause
//
// A slice of the field as a PNG picture.
#ifndef JACOBI3D_IMAGE_HPP
#define JACOBI3D_IMAGE_HPP

#include "decomposition.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace jacobi3d {

/** Whether the program was built with libpng. */
bool can_write_png();

/**
 * A colour for 0 <= t <= 1: from near black over purple and orange to light yellow, with lightness rising
 * evenly to the eye (linear in OKLab), so that it also reads in grey. Values
 * outside are clamped, NaN is grey.
 */
std::array<std::uint8_t, 3> heat_colour(double t);

/**
 * Write layer z of the grid, x to the right, y upwards, its values spread over the colours from their
 * least to their greatest. Small grids are enlarged, a cell to a square; large ones thinned out. Throws
 * std::runtime_error.
 */
template <class Real>
void write_slice_png(const std::string &path, const std::vector<Real> &cells, const extent3 &grid, int z);

}  // namespace jacobi3d

#endif  // JACOBI3D_IMAGE_HPP
