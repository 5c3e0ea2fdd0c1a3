// SPDX-License-Identifier: BSD-3-Clause
//
// The initial field: computed, or from a file of which every rank reads its own part.
#ifndef JACOBI3D_FIELD_INPUT_HPP
#define JACOBI3D_FIELD_INPUT_HPP

#include "decomposition.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace jacobi3d {

/** Where the cells of a grid lie in a file: x fastest, without gaps, from data_offset on. */
struct field_file {
    std::string path;
    extent3 grid;
    int element_size;  // 4 or 8: IEEE floats
    bool swap_bytes;
    std::uint64_t data_offset;
};

/** Both throw std::runtime_error with a sentence that names the file, if it is not what it should be. */
field_file open_raw(const std::string &path, const extent3 &grid, int element_size);
field_file open_npy(const std::string &path);

/** The cells of `box`, converted if the file's precision is another. Throws std::runtime_error. */
template <class Real>
std::vector<Real> read_box(const field_file &file, const box3 &box);

/**
 * A smooth bump over the whole grid, lopsided so that no two axes look alike, and a hot sphere off its
 * centre; between 0 and 2. A function of the global position alone, made of additions and products only, so
 * that every rank, on whatever machine, gets the same bits.
 */
template <class Real>
std::vector<Real> analytic_box(const extent3 &grid, const box3 &box);

}  // namespace jacobi3d

#endif  // JACOBI3D_FIELD_INPUT_HPP
