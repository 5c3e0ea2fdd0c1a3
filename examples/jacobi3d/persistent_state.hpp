// SPDX-License-Identifier: BSD-3-Clause
//
// What a persistent kernel (persistent.hpp) is told, and what each of its blocks keeps.
#ifndef JACOBI3D_PERSISTENT_STATE_HPP
#define JACOBI3D_PERSISTENT_STATE_HPP

#include "bricks.hpp"
#include "step.hpp"

#ifndef __CUDACC__
#include <bit>
#endif

namespace jacobi3d {

inline constexpr int message_sets = 4;  // an epoch block has the time of several iterations

// The part of a set that one face has. Both arrays consist of tiles, each of brick_grid::tile_cells().
template <class Real>
struct message {
    Real *send;
    const Real *ghost;
    MPIX_Prequest send_request, recv_request;
};

// All that the kernel is told; passed by value.
template <class Real>
struct persistent {
    // The cell (0, 0, 0) of each; the first one has the initial cells. Beyond a face of the grid that is not periodic, ghost
    // cells hold the fixed values, in both fields. Elsewhere they are not used.
    Real *fields[2];
    int nx, ny, nz;
    std::int64_t width, plane;  // from a cell to the next one along y, and along z
    Real rate;
    int iterations;
    brick_grid bricks;
    const int *on_faces;  // the bricks on exchanged faces
    int on_faces_count;
    int face_blocks;  // the first blocks, which take them; the others take the rest. If it is all blocks, they take both.
    // Arrivals at the barrier, of all iterations together (modulo 2^32). Each block adds 1 with release; whoever waits loads
    // with acquire.
    unsigned *arrivals;
    // Of each set: the last message whose epochs have been started. Stored with release by the set's epoch block, loaded
    // with acquire before a block fills the message.
    int *started;
    int *failed;  // not 0 after an error, which the library keeps with the request; it orders no data
    // Of each set: stored by the leader of its epoch block, and read by the others behind a barrier, so that all of them
    // take the same way.
    int *gave_up;
    unsigned exchanged;  // a bit for each face whose neighbour is another rank
    unsigned wrapped;    // of each face whose neighbour is the box itself: periodic, and one rank along that axis
    message<Real> messages[message_sets][6];
    MPIX_Prequest requests[message_sets][12];  // of a set, `request_count` of them
    int request_count;
};

// Where a brick lies.
struct brick {
    int at[3];  // among the bricks
    cell_box cells;
    unsigned sides;    // a bit for each side that lies on an exchanged face
    unsigned wrapped;  // a bit for each side on a wrapped face
};

// A brick's side on an exchanged face, as rows of cells; offsets in cells.
struct brick_side {
    int across, along;            // cells in a row, and rows
    std::int64_t first;           // in a field, from cell (0, 0, 0) of it on
    int step_across, step_along;  // in a field
    int tile;                     // its number on the face
    int tile_width;               // cells of a row in the tile
    std::int64_t tile_begin;      // where it begins in the face's tiles
};

// A brick on exchanged faces, whose sides there are one item of work.
struct face_brick {
    brick where;
    brick_side sides[6];
};

// A block's own memory: what it needs in each iteration, where it would otherwise wait for the GPU's memory.
template <class Real>
struct block_memory {
    static constexpr int kept = 8;

    persistent<Real> all;
    brick rest;              // its first brick of step 2
    face_brick faces[kept];  // its first ones of step 1; with more of them, the last element is found anew for each
    mpix::prepared_send sends[message_sets][6];
    mpix::prepared_receive receives[message_sets][6];
};

namespace detail {

#ifdef __CUDACC__
__device__ __forceinline__ int lowest_bit(unsigned bits) { return __ffs(static_cast<int>(bits)) - 1; }
#else
inline int lowest_bit(unsigned bits) { return std::countr_zero(bits); }
#endif

template <class Real>
JACOBI3D_FN brick brick_of(const persistent<Real> &s, int number) {
    const brick_grid &g = s.bricks;
    brick b;
    b.at[0] = number % g.count[0];
    b.at[1] = number / g.count[0] % g.count[1];
    b.at[2] = number / g.count[0] / g.count[1];
    b.cells = {b.at[0] * g.size[0], least((b.at[0] + 1) * g.size[0], s.nx),
               b.at[1] * g.size[1], least((b.at[1] + 1) * g.size[1], s.ny),
               b.at[2] * g.size[2], least((b.at[2] + 1) * g.size[2], s.nz)};
    const int ends = (b.cells.x0 == 0) << 0 | (b.cells.x1 == s.nx) << 1 | (b.cells.y0 == 0) << 2 |
                     (b.cells.y1 == s.ny) << 3 | (b.cells.z0 == 0) << 4 | (b.cells.z1 == s.nz) << 5;
    b.sides = s.exchanged & static_cast<unsigned>(ends);
    b.wrapped = s.wrapped & static_cast<unsigned>(ends);
    return b;
}

// The cells of a brick that are on none of its exchanged sides.
JACOBI3D_FN cell_box inside(const brick &b) {
    const cell_box &c = b.cells;
    const auto bit = [&b](int side) { return static_cast<int>(b.sides >> side & 1); };
    return {c.x0 + bit(0), c.x1 - bit(1), c.y0 + bit(2), c.y1 - bit(3), c.z0 + bit(4), c.z1 - bit(5)};
}

}  // namespace detail
}  // namespace jacobi3d

#endif  // JACOBI3D_PERSISTENT_STATE_HPP
