// SPDX-License-Identifier: BSD-3-Clause
//
// The field as a VTK XML image, which ParaView opens.
#ifndef JACOBI3D_VOLUME_HPP
#define JACOBI3D_VOLUME_HPP

#include "decomposition.hpp"

#include <string>
#include <vector>

namespace jacobi3d {

/**
 * Write the grid as cell data named "temperature", the longest axis one unit long. Throws
 * std::runtime_error that names the file.
 */
template <class Real>
void write_vti(const std::string &path, const std::vector<Real> &cells, const extent3 &grid);

}  // namespace jacobi3d

#endif  // JACOBI3D_VOLUME_HPP
