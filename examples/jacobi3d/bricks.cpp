// SPDX-License-Identifier: BSD-3-Clause
#include "bricks.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace jacobi3d {

brick_grid cut_box(const extent3 &box, const extent3 &brick) {
    brick_grid result;
    std::int64_t bricks = 1, cells = 1;
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    for (int axis = 0; axis < 3; ++axis) {
        result.size[axis] = brick[axis];
        result.count[axis] = (box[axis] - 1) / brick[axis] + 1;
        bricks *= result.count[axis];
        cells *= brick[axis];
        if (bricks > most || cells > most)
            throw std::invalid_argument("bricks of " + to_string(brick) + " cells do not suit a box of " +
                                        to_string(box));
    }
    return result;
}

namespace {

// Of an iteration, in units of the time that a layer (along z) of a brick takes. `beside`: of each brick, for the layers
// beyond its ends and to begin with. `side_in_cache`, `side`: of a side on a face, which takes as long in either case, while
// a layer does not. Estimated from the times of several shapes of bricks at 64^3 to 512^3 cells on two H200, with a kernel that
// loaded four cells at once.
constexpr std::int64_t beside = 3, side_in_cache = 20, side = 6;

// A division of the blocks, and what an iteration costs then.
struct division {
    int for_faces;
    std::int64_t cost;
};

std::int64_t rounds(std::int64_t pieces, std::int64_t blocks) { return (pieces + blocks - 1) / blocks; }

// The parts along z into which update_cells divides a brick that is so high along y.
int parts_of(int high, int rows) { return std::max(1, rows / high); }

// `count`: of bricks along each axis. `layers`: of a brick, that one thread computes.
division best_division(const std::array<std::int64_t, 3> &count, const std::array<bool, num_faces> &exchanged,
                       std::int64_t layers, const residency &available) {
    const std::int64_t bricks = count[0] * count[1] * count[2];
    std::int64_t inner = 1, most_sides = 0;  // bricks on no face; sides of a brick at a corner
    for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t faces = std::int64_t{exchanged[2 * axis]} + exchanged[2 * axis + 1];
        inner *= std::max<std::int64_t>(count[axis] - faces, 0);
        most_sides += std::min<std::int64_t>(faces, count[axis] == 1 ? 2 : 1);
    }
    const std::int64_t on_faces = bricks - inner, of_brick = layers + beside,
                       of_sides = most_sides * (available.in_cache ? side_in_cache : side);
    const int blocks = available.blocks;
    division best{blocks, rounds(on_faces, blocks) * of_sides + rounds(bricks, blocks) * of_brick};
    // If the memory is busy with the others' cells, a side takes several times as long, and nothing is gained.
    for (int for_faces = 1; available.in_cache && for_faces < blocks && for_faces <= on_faces; ++for_faces) {
        const std::int64_t cost =
            std::max(rounds(on_faces, for_faces) * of_sides, rounds(bricks, blocks - for_faces) * of_brick);
        if (cost < best.cost) best = {for_faces, cost};
    }
    return best;
}

}  // namespace

int blocks_for_faces(const brick_grid &bricks, const std::array<bool, num_faces> &exchanged,
                     const residency &available) {
    const int parts = parts_of(bricks.size[1], available.rows);
    return best_division({bricks.count[0], bricks.count[1], bricks.count[2]}, exchanged, rounds(bricks.size[2], parts),
                         available)
        .for_faces;
}

int brick_depth(const extent3 &box, const std::array<bool, num_faces> &exchanged, const std::array<int, 2> &base,
                const residency &available) {
    // So shallow that a small box has a brick for each block.
    constexpr int least_depth = 4;
    const std::int64_t along_x = rounds(box[0], base[0]), along_y = rounds(box[1], base[1]);
    const int parts = parts_of(std::min(base[1], box[1]), available.rows);
    int best = box[2];
    std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
    for (int layers = 1; layers <= box[2]; ++layers) {
        const int depth = (box[2] - 1) / layers + 1;
        if (depth < least_depth * parts && depth < box[2]) break;
        const std::int64_t cost =
            best_division({along_x, along_y, layers}, exchanged, rounds(depth, parts), available).cost;
        if (cost < best_cost) {
            best_cost = cost;
            best = depth;
        }
    }
    return best;
}

void check_layer(std::int64_t elements, int layers) {
    if (const std::int64_t most = std::numeric_limits<int>::max() / layers; elements > most)
        throw std::invalid_argument("a layer of a box has " + std::to_string(elements) + " elements, more than " +
                                    std::to_string(most) + "; use more ranks");
}

std::vector<int> bricks_on_faces(const brick_grid &bricks, const std::array<bool, num_faces> &exchanged) {
    std::vector<int> result;
    for (int b = 0; b < bricks.bricks(); ++b) {
        const std::array<int, 3> at = bricks.position(b);
        bool touches = false;
        for (int f = 0; f < num_faces; ++f) {
            const int axis = face_axis(f);
            touches |= exchanged[f] && at[axis] == (face_is_upper(f) ? bricks.count[axis] - 1 : 0);
        }
        if (touches) result.push_back(b);
    }
    return result;
}

}  // namespace jacobi3d
