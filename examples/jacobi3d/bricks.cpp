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

int brick_depth(const extent3 &box, const std::array<bool, num_faces> &exchanged, int lanes, int rows,
                const residency &available) {
    // Costs in units of the time that a layer (along z) of a brick takes. `beside`: of each brick, for the layers beyond its
    // ends and to begin with. `side`: of a side on a face, if other blocks of the multiprocessor compute meanwhile.
    // `side_alone`: the shortest iteration with a face, and `side_shared` more for each further block of a multiprocessor.
    // Estimated from the times of several shapes of bricks at 64^3 to 512^3 cells on two H100.
    constexpr std::int64_t beside = 3, side = 10, side_alone = 40, side_shared = 4;
    // What a thread loads at once; see march.
    constexpr int least_depth = 4;
    const std::int64_t along_x = (box[0] - 1) / lanes + 1, along_y = (box[1] - 1) / rows + 1;
    const auto faces_of = [&](int axis) { return std::int64_t{exchanged[2 * axis]} + exchanged[2 * axis + 1]; };
    // The parts into which update_cells divides the rows.
    const int parts = std::max(1, rows / std::min(rows, box[1]));
    int best = box[2];
    std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
    for (int layers = 1; layers <= box[2]; ++layers) {
        const int depth = (box[2] - 1) / layers + 1;
        if (depth < least_depth * parts && depth < box[2]) break;
        const std::int64_t faces = faces_of(0) * along_y * layers + faces_of(1) * along_x * layers +
                                   faces_of(2) * along_x * along_y,
                           pieces = faces + along_x * along_y * layers,
                           blocks = std::min<std::int64_t>(pieces, available.blocks);
        std::int64_t cost = 0;
        for (std::int64_t b = 0; b < blocks; ++b) {  // which has pieces b, b + blocks, ...
            const std::int64_t all = (pieces - b - 1) / blocks + 1,
                               sides = b < faces ? (faces - b - 1) / blocks + 1 : 0;
            cost = std::max(cost, sides * side + (all - sides) * ((depth - 1) / parts + 1 + beside));
        }
        if (faces > 0) cost = std::max(cost, side_alone + side_shared * ((blocks - 1) / available.multiprocessors));
        // Of two as good, the one with more blocks where there are faces: of bricks without them the fewer.
        if (cost < best_cost || (cost == best_cost && faces > 0)) {
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
