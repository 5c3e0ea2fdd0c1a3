// SPDX-License-Identifier: BSD-3-Clause
//
// How the grid is cut into one box per rank. Knows nothing of MPI.
#ifndef JACOBI3D_DECOMPOSITION_HPP
#define JACOBI3D_DECOMPOSITION_HPP

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace jacobi3d {

// Cells along x, y, z. x is the fastest in memory everywhere in this program.
using extent3 = std::array<int, 3>;

// The longest axis that a grid may have: cells and bytes of any grid then fit 64 bits.
inline constexpr int max_axis = 1000000;

/** "64x32x16" */
std::string to_string(const extent3 &e);

/** The cells begin <= c < end along each axis. */
struct box3 {
    extent3 begin, end;

    extent3 size() const { return {end[0] - begin[0], end[1] - begin[1], end[2] - begin[2]}; }
    std::int64_t cells() const {
        const extent3 s = size();
        return std::int64_t{s[0]} * s[1] * s[2];
    }
};

// The faces of a box in this order: -x +x -y +y -z +z. Axis and side follow from the number.
inline constexpr int num_faces = 6;
inline constexpr int face_axis(int face) { return face / 2; }
inline constexpr bool face_is_upper(int face) { return face % 2 == 1; }
inline constexpr int opposite_face(int face) { return face ^ 1; }
inline constexpr const char *face_name(int face) {
    constexpr const char *names[num_faces] = {"-x", "+x", "-y", "+y", "-z", "+z"};
    return names[face];
}

/**
 * A grid cut into boxes, hierarchically: first into levels[0] boxes, each of those into levels[1], and so on
 * (nodes, then ranks of a node). Each level is cut prime factor by prime factor, the largest first, always
 * across the axis along which the boxes are longest at that moment.
 *
 * Boxes are numbered with the first level slowest, so that with levels {nodes, ranks per node} the boxes of
 * one node are neighbours of each other and have consecutive numbers.
 */
class decomposition {
public:
    /** Throws std::invalid_argument, with a sentence, if some box would be empty whatever is cut. */
    decomposition(const extent3 &grid, const std::vector<int> &levels);

    const extent3 &grid() const { return grid_; }
    /** Number of boxes along each axis, and in all. */
    const extent3 &parts() const { return parts_; }
    int count() const { return parts_[0] * parts_[1] * parts_[2]; }

    /** Position of box `index` among the boxes, and back. */
    extent3 position(int index) const;
    int index_at(const extent3 &position) const;

    box3 box(int index) const;

    /**
     * The box beyond `face` of box `index`; -1 if the grid ends there. In a periodic direction there always
     * is one; it may be the box itself, or the same box on both sides.
     */
    int neighbour(int index, int face, const std::array<bool, 3> &periodic) const;

private:
    extent3 grid_;
    extent3 parts_;
    std::vector<extent3> level_parts_;
};

}  // namespace jacobi3d

#endif  // JACOBI3D_DECOMPOSITION_HPP
