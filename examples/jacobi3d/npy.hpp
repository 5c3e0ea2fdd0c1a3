// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a NumPy .npy file. It comes from outside, so nothing in it is believed unchecked.
#ifndef JACOBI3D_NPY_HPP
#define JACOBI3D_NPY_HPP

#include <cstdint>
#include <string_view>
#include <vector>

namespace jacobi3d {

struct npy_header {
    int element_size = 0;  // 4 or 8: IEEE floats
    bool big_endian = false;
    bool fortran_order = false;
    std::vector<std::uint64_t> shape;
    std::uint64_t data_offset = 0;  // of the first element, in bytes from the start of the file
};

// A longer header is refused: a plain array's takes some hundred bytes.
inline constexpr std::uint64_t npy_max_header = 65536;

/**
 * Read the header at the beginning of a file, format versions 1, 2 and 3. `start` holds the file's first
 * bytes: all of them, or at least npy_max_header. Throws std::runtime_error with a phrase that says what is
 * wrong (the caller knows the file's name).
 */
npy_header parse_npy_header(std::string_view start);

}  // namespace jacobi3d

#endif  // JACOBI3D_NPY_HPP
