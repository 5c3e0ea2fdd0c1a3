// SPDX-License-Identifier: BSD-3-Clause
#include "tiles.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace jacobi3d {

face_shape cut_face(int nx, int ny, int nz, int face, int tiles) {
    face_shape shape;
    shape.width = face < 2 ? ny : nx;
    shape.rows = face < 4 ? nz : ny;
    std::int64_t wanted = tiles;
    if (tiles == 0) {
        constexpr std::int64_t least_cells = 32 * 32, most_tiles = 64;
        wanted = std::min(most_tiles, std::int64_t{shape.rows} * shape.width / least_cells);
    }
    wanted = std::clamp<std::int64_t>(wanted, 1, shape.rows);
    shape.tile_rows = static_cast<int>((shape.rows + wanted - 1) / wanted);
    shape.tiles = (shape.rows + shape.tile_rows - 1) / shape.tile_rows;
    if (shape.tile_cells() > std::numeric_limits<int>::max())
        throw std::invalid_argument("a tile of " + std::to_string(shape.tile_rows) + " rows of " +
                                    std::to_string(shape.width) + " cells is too large; cut the faces into more tiles");
    return shape;
}

}  // namespace jacobi3d
