// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: errors, boxes of cells, directions, and the radius of a stencil.
#ifndef MPIX_HALO_BOX_HPP
#define MPIX_HALO_BOX_HPP

#include <mpix/detail/cxx20.h>

#include <cstddef>
#include <cstdint>

#include <mpix/detail/order.h>
#include <mpix/mpix.h>

// What kernels do not use is not for NVRTC, which lacks these headers.
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <array>
#include <compare>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>
#endif

#define MPIX_HALO_API [[gnu::visibility("default")]]

namespace mpix::halo {

/** Cells along x, y, z. x is the fastest in memory: a C array a[z][y][x] has the extent {nx, ny, nz}. In fewer
    dimensions the others are 1 long. */
struct index3 {
    std::int64_t along[3];

    MPIX_FN constexpr std::int64_t &operator[](std::size_t axis) { return along[axis]; }
    MPIX_FN constexpr const std::int64_t &operator[](std::size_t axis) const { return along[axis]; }
    // Not left to the line below: nvcc 13.0 would use it, but not define it.
    friend bool operator==(const index3 &, const index3 &) = default;
#ifndef __CUDACC_RTC__
    friend auto operator<=>(const index3 &, const index3 &) = default;
#endif
};

/** The cells lo <= c < hi along each axis. Kernels may use it. */
struct box {
    index3 lo{}, hi{};

    MPIX_FN index3 size() const { return {hi[0] - lo[0], hi[1] - lo[1], hi[2] - lo[2]}; }
    MPIX_FN bool empty() const { return hi[0] <= lo[0] || hi[1] <= lo[1] || hi[2] <= lo[2]; }
    MPIX_FN std::int64_t cells() const { return empty() ? 0 : (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]); }
    friend bool operator==(const box &, const box &) = default;
};

/** A direction is -1, 0 or 1 along each axis. They are numbered from 0 to 26; 13 is the box itself. */
constexpr int directions = 27, no_direction = 13;

#ifndef __CUDACC_RTC__

/** What the functions below throw. */
class MPIX_HALO_API error : public std::runtime_error {
public:
    error(int error_class, const std::string &sentence) : std::runtime_error(sentence), class_(error_class) {}
    ~error() override;
    /** An MPI error class (MPI_ERR_*). */
    int error_class() const noexcept { return class_; }

private:
    int class_;
};

/** The cells of `outer` that are not in `inner`, as up to six boxes that do not overlap. */
MPIX_HALO_API std::vector<box> difference(const box &outer, const box &inner);

constexpr std::array<int, 3> direction(int number) { return {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1}; }
constexpr int direction_number(int x, int y, int z) { return x + 1 + 3 * (y + 1) + 9 * (z + 1); }
constexpr int opposite(int number) { return directions - 1 - number; }

/**
 * How many cells a stencil reads beyond a box, in each direction. In the direction of an edge or a corner it is the
 * depth along each axis of that direction: 2 towards (1, 1, 0) are 2 x 2 cells beyond each cell of the edge. May be
 * longer than the neighbour's box, and than the domain, if that is periodic. In a domain of fewer than three axes, the
 * directions along the missing ones are ignored; but none may be negative.
 *
 * A stencil that reads (x + 1, y + 1) needs the faces as well: at the upper x side of the box that is a ghost cell in
 * direction (1, 0, 0), and at the upper y side one in direction (0, 1, 0). Only at the corner is it one in direction
 * (1, 1, 0). radius::of() takes the offsets of a stencil and sets all directions that it needs.
 */
struct radius {
    std::array<int, directions> cells{};  // by direction number; that of no_direction is 0

    radius() = default;  // so that {1}, which would be the corner of direction 0 alone, does not compile

    /** The same in all directions, edges and corners included. */
    static radius all(int cells) {
        radius r;
        r.cells.fill(cells);
        r.cells[no_direction] = 0;
        return r;
    }
    /** The same across all faces, and nothing at edges and corners. */
    static radius faces(int cells) {
        radius r;
        for (const int face : {4, 10, 12, 14, 16, 22}) r.cells[face] = cells;
        return r;
    }
    /** What a stencil needs that reads the cells at these offsets: with {{1, 1, 0}, {-1, 0, 0}} it reads (x + 1, y + 1)
        and (x - 1, y). Errors: MPI_ERR_ARG (a number has no negative: it is the least int). */
    static radius of(const std::vector<std::array<int, 3>> &offsets) {
        radius r;
        for (const std::array<int, 3> &offset : offsets) {
            for (const int along : offset)
                if (along < -(std::numeric_limits<int>::max)())
                    throw error(MPI_ERR_ARG, "mpix::halo::radius::of: a number of an offset is " +
                                                 std::to_string(along) + "; it is at least " +
                                                 std::to_string(along + 1));
            for (int number = 0; number < directions; ++number) {
                // Along each of its axes the offset leads out of the box somewhere, but not everywhere.
                const std::array<int, 3> step = direction(number);
                bool leads = true;
                int depth = 0;
                for (std::size_t a = 0; a < 3; ++a) {
                    if (step[a] == 0) continue;
                    leads = leads && step[a] * offset[a] > 0;
                    depth = (std::max)(depth, step[a] * offset[a]);
                }
                int &cells = r.cells[static_cast<std::size_t>(number)];
                if (leads) cells = (std::max)(cells, depth);
            }
        }
        return r;
    }
    /** One direction, of the neighbour at (x, y, z). Returns *this. Errors: MPI_ERR_ARG (each is -1, 0 or 1). */
    radius &set(int x, int y, int z, int depth) {
        for (const int step : {x, y, z})
            if (step < -1 || step > 1)
                throw error(MPI_ERR_ARG, "mpix::halo::radius::set: there is no direction (" + std::to_string(x) + ", " +
                                             std::to_string(y) + ", " + std::to_string(z) +
                                             "); each of x, y, z is -1, 0 or 1");
        cells[direction_number(x, y, z)] = depth;
        return *this;
    }
};

/** How many cells the radius needs below and above a box, along each axis of a domain of that many dimensions. */
inline std::array<index3, 2> ghost_depth(const radius &r, int dimensions) {
    std::array<index3, 2> depth{};
    for (int number = 0; number < directions; ++number) {
        const std::array<int, 3> step = direction(number);
        if ((dimensions < 2 && step[1] != 0) || (dimensions < 3 && step[2] != 0)) continue;
        for (std::size_t a = 0; a < 3; ++a)
            if (step[a] != 0 && depth[step[a] > 0][a] < r.cells[number]) depth[step[a] > 0][a] = r.cells[number];
    }
    return depth;
}

#endif  // __CUDACC_RTC__

}  // namespace mpix::halo

#endif  // MPIX_HALO_BOX_HPP
