// SPDX-License-Identifier: BSD-3-Clause
//
// How a box is cut into bricks for a persistent kernel (persistent.hpp). A brick's side on a face of the box is a tile,
// which is a partition of the face's requests. Plain data, for kernels too.
#ifndef JACOBI3D_BRICKS_HPP
#define JACOBI3D_BRICKS_HPP

#include "decomposition.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace jacobi3d {

/** Bricks of size[0]*size[1]*size[2] cells, the last ones smaller; x fastest in their numbers. */
struct brick_grid {
    int size[3];
    int count[3];

    int bricks() const { return count[0] * count[1] * count[2]; }
    std::array<int, 3> position(int brick) const {
        return {brick % count[0], brick / count[0] % count[1], brick / count[0] / count[1]};
    }
    /** Tiles of face `face`, numbered as its bricks are, and the cells of one, padding included. */
    int tiles(int face) const { return bricks() / count[face_axis(face)]; }
    int tile_cells(int face) const { return size[0] * size[1] * size[2] / size[face_axis(face)]; }
};

/** Throws std::invalid_argument if there are more bricks, or cells in a tile, than an int can count. */
brick_grid cut_box(const extent3 &box, const extent3 &brick);

/**
 * Blocks of a persistent kernel that are resident at once, without its epoch blocks. `rows`: rows of threads along y, which
 * divide a brick along z where they are more than it needs; 1 on the host. `in_cache`: the fields are so small that the cache
 * serves most loads (on a GPU: at most one and a half times its size).
 */
struct residency {
    int blocks, rows;
    bool in_cache;
};

/**
 * How many of the blocks should have the bricks on exchanged faces, and nothing else, so that these blocks are done when the
 * others are done with the rest. All blocks, if each is to have both.
 */
int blocks_for_faces(const brick_grid &bricks, const std::array<bool, num_faces> &exchanged,
                     const residency &available);

/**
 * How deep bricks of base[0] times base[1] cells should be (along z), so that the blocks have as much to do as each
 * other, and bricks are not shallower than they must be.
 */
int brick_depth(const extent3 &box, const std::array<bool, num_faces> &exchanged, const std::array<int, 2> &base,
                const residency &available);

/** Throws std::invalid_argument if an int cannot count the elements of so many layers. */
void check_layer(std::int64_t elements, int layers);

/** The bricks on those faces of which `exchanged` says so. */
std::vector<int> bricks_on_faces(const brick_grid &bricks, const std::array<bool, num_faces> &exchanged);

}  // namespace jacobi3d

#endif  // JACOBI3D_BRICKS_HPP
