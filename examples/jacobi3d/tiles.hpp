// SPDX-License-Identifier: BSD-3-Clause
//
// How a face is cut into tiles, which are the partitions of its MPI requests. Plain data, for kernels too.
#ifndef JACOBI3D_TILES_HPP
#define JACOBI3D_TILES_HPP

#include <cstdint>

namespace jacobi3d {

/**
 * A face packed row by row: the rows and columns are z and y of an x face, z and x of a y face, y and x of a
 * z face. A tile is a band of rows. MPI's partitions are all of one size, so the last tile is padded.
 */
struct face_shape {
    int width, rows;
    int tile_rows;  // rows of one tile
    int tiles;

    std::int64_t tile_cells() const { return std::int64_t{tile_rows} * width; }
    std::int64_t padded_cells() const { return tiles * tile_cells(); }
};

/**
 * Cut face `face` (0 to 5: -x +x -y +y -z +z) of a box of nx*ny*nz cells. `tiles` is how many are wanted;
 * there are fewer where rows do not divide so. 0 asks for tiles of at least 32x32 cells, at most 64 of them.
 * Throws std::invalid_argument if a tile would have more than 2^31-1 cells.
 */
face_shape cut_face(int nx, int ny, int nz, int face, int tiles);

}  // namespace jacobi3d

#endif  // JACOBI3D_TILES_HPP
