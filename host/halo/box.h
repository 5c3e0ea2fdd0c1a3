// SPDX-License-Identifier: BSD-3-Clause
//
// Boxes of cells, the 26 directions of a box's neighbours, and how far a stencil reaches in each of them.
#ifndef MPIX_HOST_HALO_BOX_H
#define MPIX_HOST_HALO_BOX_H

#include <array>
#include <cstdint>

namespace mpix::halo {

// Along x, y, z. x is the fastest in memory.
using index3 = std::array<std::int64_t, 3>;

// The cells lo <= c < hi along each axis.
struct box {
    index3 lo{}, hi{};

    index3 size() const { return {hi[0] - lo[0], hi[1] - lo[1], hi[2] - lo[2]}; }
    bool empty() const { return hi[0] <= lo[0] || hi[1] <= lo[1] || hi[2] <= lo[2]; }
    std::int64_t cells() const { return empty() ? 0 : (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]); }
    friend bool operator==(const box &, const box &) = default;
};

// A direction is -1, 0 or 1 along each axis. They are numbered from 0 to 26; 13 is the box itself.
constexpr int directions = 27, no_direction = 13;
constexpr std::array<int, 3> direction(int number) { return {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1}; }
constexpr int opposite(int number) { return directions - 1 - number; }

// How many cells a stencil reads beyond a box, in each direction. In the direction of an edge or a corner it is the
// depth along each of that direction's axes.
struct radius {
    std::array<int, directions> cells{};

    // The same in all directions, edges and corners included; or across the six faces only.
    static radius all(int cells);
    static radius faces(int cells);
};

inline radius radius::all(int cells) {
    radius r;
    r.cells.fill(cells);
    r.cells[no_direction] = 0;
    return r;
}

inline radius radius::faces(int cells) {
    radius r;
    for (const int face : {4, 10, 12, 14, 16, 22}) r.cells[face] = cells;
    return r;
}

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_BOX_H
