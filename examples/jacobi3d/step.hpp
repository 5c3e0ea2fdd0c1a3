// SPDX-License-Identifier: BSD-3-Clause
//
// One Jacobi iteration of one box: the body of the kernel, for CUDA blocks and for host threads alike.
//
//   next = now + rate * (sum of the six neighbours of now - 6 * now)
//
// The box is stored without ghost cells. A face of it has a packed array of its neighbours beyond
// (`ghost`), and, where another box lies there, a packed array that is sent to it (`send`). Both are cut
// into tiles, bands of rows, which are the partitions of the MPI requests: a tile is contiguous, and all
// have the same size (the last one is padded).
#ifndef JACOBI3D_STEP_HPP
#define JACOBI3D_STEP_HPP

#include "tiles.hpp"

#include <mpix/device.cuh>

#include <cstdint>

#ifdef __CUDACC__
#define JACOBI3D_FN __device__ __forceinline__
#else
#define JACOBI3D_FN inline
#endif

// Not inlined: the caller's code lies together in the instruction cache, and its registers stay its own.
#ifdef __CUDACC__
#define JACOBI3D_APART __device__ __noinline__
#else
#define JACOBI3D_APART inline
#endif

namespace jacobi3d {

template <class Real>
struct face_data {
    face_shape shape;
    Real *send;                  // null: nobody needs this face
    const Real *ghost;           // never null; the fixed boundary values where the grid ends
    MPIX_Prequest send_request;  // null: whoever reads `send` is not told (see the phases)
    MPIX_Prequest recv_request;  // null: `ghost` is complete already
};

// Parts of an iteration. The job does all in one kernel; a run without communication, in which `send`
// points into a ghost array of the same memory, launches phase_send first and the rest after it.
inline constexpr unsigned phase_send = 1, phase_interior = 2, phase_boundary = 4;
inline constexpr unsigned phase_all = phase_send | phase_interior | phase_boundary;

// All that the kernel is told; passed by value.
template <class Real>
struct step {
    const Real *now;
    Real *next;
    int nx, ny, nz;
    int brick_x, brick_y, brick_z;  // the interior is handed out in bricks of so many cells
    Real rate;
    unsigned phases;
    face_data<Real> faces[6];  // -x +x -y +y -z +z
};

// The one place that computes a cell. The order of the additions is fixed, and the build forbids fused
// multiply-adds, so a cell gets the same bits wherever, and in whichever box, it is computed.
template <class Real>
JACOBI3D_FN Real relax(Real here, Real xm, Real xp, Real ym, Real yp, Real zm, Real zp, Real rate) {
    return here + rate * (((xm + xp) + (ym + yp)) + (zm + zp) - Real(6) * here);
}

struct cell_box {
    int x0, x1, y0, y1, z0, z1;
};

namespace detail {

// The first of the tiles `before`, `before` + 1, ... (a running number over all faces) that is this block's
// in a round robin, counted from `before`.
JACOBI3D_FN int first_tile(int block_index, int blocks, int before) {
    const int offset = block_index - before % blocks;
    return offset < 0 ? offset + blocks : offset;
}

// Copy one tile of a face out of the field.
template <class Real, class Block>
JACOBI3D_FN void pack_tile(const Block &block, const step<Real> &s, int f, int tile) {
    const face_data<Real> &face = s.faces[f];
    const std::int64_t plane = std::int64_t{s.nx} * s.ny;
    const std::int64_t row_stride = f < 4 ? plane : s.nx;
    const std::int64_t column_stride = f < 2 ? s.nx : 1;
    const std::int64_t upper = f < 2 ? s.nx - 1 : f < 4 ? plane - s.nx : plane * (s.nz - 1);
    const std::int64_t layer = f % 2 == 0 ? 0 : upper;

    const int width = face.shape.width;
    const int first_row = tile * face.shape.tile_rows;
    const int left = face.shape.rows - first_row;
    const int cells = (left < face.shape.tile_rows ? left : face.shape.tile_rows) * width;
    const Real *from = s.now + layer + first_row * row_stride;
    Real *to = face.send + std::int64_t{first_row} * width;
    for (int i = static_cast<int>(block.thread_rank()); i < cells; i += static_cast<int>(block.num_threads()))
        to[i] = from[i / width * row_stride + i % width * column_stride];
}

template <class Real, class Block>
JACOBI3D_FN void send_faces(const Block &block, int block_index, int blocks, const step<Real> &s) {
    int before = 0;
    for (int f = 0; f < 6; ++f) {
        const face_data<Real> &face = s.faces[f];
        if (!face.send) continue;
        for (int tile = first_tile(block_index, blocks, before); tile < face.shape.tiles; tile += blocks) {
            pack_tile(block, s, f, tile);
            // The block synchronises in pready, so all its threads' stores to the tile are covered. A
            // failure is kept with the request, whose completion on the host reports it.
            if (face.send_request) (void)mpix::pready(block, tile, face.send_request);
        }
        before += face.shape.tiles;
    }
}

// Cells of the interior. `Lanes` threads of the block stand side by side along x, the rest along y, and
// each marches along z, keeping what the next cell needs of this one. With Lanes = 1 (host) a thread takes
// whole rows, which the compiler vectorises.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void compute_brick(const Block &block, const step<Real> &s, const cell_box &c) {
    const int rank = static_cast<int>(block.thread_rank());
    const int rows = static_cast<int>(block.num_threads()) / Lanes;
    const std::int64_t line = s.nx, plane = line * s.ny;
    const Real rate = s.rate;
    // __restrict__: nobody writes `now` in this kernel.
    if constexpr (Lanes > 1) {
        for (int y = c.y0 + rank / Lanes; y < c.y1; y += rows)
            for (int x = c.x0 + rank % Lanes; x < c.x1; x += Lanes) {
                const Real *__restrict__ u = s.now + c.z0 * plane + y * line + x;
                Real *__restrict__ v = s.next + c.z0 * plane + y * line + x;
                Real below = u[-plane], here = u[0];
#ifdef __CUDACC__
#pragma unroll 4
#endif
                for (int z = c.z0; z < c.z1; ++z, u += plane, v += plane) {
                    const Real above = u[plane];
                    *v = relax(here, u[-1], u[1], u[-line], u[line], below, above, rate);
                    below = here;
                    here = above;
                }
            }
    } else {
        for (int z = c.z0; z < c.z1; ++z)
            for (int y = c.y0 + rank; y < c.y1; y += rows) {
                const Real *__restrict__ const u = s.now + z * plane + y * line;
                Real *__restrict__ const v = s.next + z * plane + y * line;
                for (int x = c.x0; x < c.x1; ++x)
                    v[x] = relax(u[x], u[x - 1], u[x + 1], u[x - line], u[x + line], u[x - plane], u[x + plane], rate);
            }
    }
}

JACOBI3D_FN int least(int a, int b) { return a < b ? a : b; }
JACOBI3D_FN int most(int a, int b) { return a > b ? a : b; }

template <int Lanes, class Real, class Block>
JACOBI3D_FN void compute_interior(const Block &block, int block_index, int blocks, const step<Real> &s) {
    const int along_x = (s.nx - 1) / s.brick_x + 1;
    const int along_y = (s.ny - 1) / s.brick_y + 1;
    const int along_z = (s.nz - 1) / s.brick_z + 1;
    const std::int64_t bricks = std::int64_t{along_x} * along_y * along_z;
    for (std::int64_t b = block_index; b < bricks; b += blocks) {
        const int bx = static_cast<int>(b % along_x) * s.brick_x;
        const int by = static_cast<int>(b / along_x % along_y) * s.brick_y;
        const int bz = static_cast<int>(b / along_x / along_y) * s.brick_z;
        // Bricks begin at multiples of their size, not at cell 1, so that rows of them are aligned.
        const cell_box cells = {most(bx, 1), least(bx + s.brick_x, s.nx - 1),
                                most(by, 1), least(by + s.brick_y, s.ny - 1),
                                most(bz, 1), least(bz + s.brick_z, s.nz - 1)};
        if (cells.z0 < cells.z1) compute_brick<Lanes>(block, s, cells);
    }
}

// Wait for the tiles of one face that hold the neighbours of its rows r0 <= r < r1.
template <class Real, class Block>
JACOBI3D_FN int wait_rows(const Block &block, const face_data<Real> &face, int r0, int r1) {
    if (!face.recv_request) return MPI_SUCCESS;
    for (int tile = r0 / face.shape.tile_rows; tile <= (r1 - 1) / face.shape.tile_rows; ++tile)
        if (const int error = mpix::wait_arrived(block, face.recv_request, tile)) return error;
    return MPI_SUCCESS;
}

// Wait for all neighbours that the cells `c` have outside the box, and for nothing else.
template <class Real, class Block>
JACOBI3D_FN int wait_for_ghosts(const Block &block, const step<Real> &s, const cell_box &c) {
    const unsigned touched = (c.x0 == 0) << 0 | (c.x1 == s.nx) << 1 | (c.y0 == 0) << 2 | (c.y1 == s.ny) << 3 |
                             (c.z0 == 0) << 4 | (c.z1 == s.nz) << 5;
    int error = MPI_SUCCESS;
#ifdef __CUDACC__
#pragma unroll 1  // one copy of the wait's code
#endif
    for (int f = 0; f < 6 && !error; ++f)
        if (touched >> f & 1) error = wait_rows(block, s.faces[f], f < 4 ? c.z0 : c.y0, f < 4 ? c.z1 : c.y1);
    return error;
}

// Cells of which any neighbour may lie beyond the box.
template <class Real, class Block>
JACOBI3D_FN void compute_with_ghosts(const Block &block, const step<Real> &s, const cell_box &c) {
    // The ghost arrays change while the kernel runs: plain loads, no __restrict__, no read-only cache.
    const Real *const xm = s.faces[0].ghost, *const xp = s.faces[1].ghost;
    const Real *const ym = s.faces[2].ghost, *const yp = s.faces[3].ghost;
    const Real *const zm = s.faces[4].ghost, *const zp = s.faces[5].ghost;
    const int wx = c.x1 - c.x0, wy = c.y1 - c.y0;
    const int cells = wx * wy * (c.z1 - c.z0);
    const std::int64_t line = s.nx, plane = line * s.ny;
    for (int i = static_cast<int>(block.thread_rank()); i < cells; i += static_cast<int>(block.num_threads())) {
        const int x = c.x0 + i % wx, y = c.y0 + i / wx % wy, z = c.z0 + i / wx / wy;
        const std::int64_t cell = z * plane + y * line + x;
        const std::int64_t on_x = std::int64_t{z} * s.ny + y, on_y = z * line + x, on_z = y * line + x;
        const Real *const u = s.now + cell;
        const Real left = x > 0 ? u[-1] : xm[on_x], right = x < s.nx - 1 ? u[1] : xp[on_x];
        const Real front = y > 0 ? u[-line] : ym[on_y], back = y < s.ny - 1 ? u[line] : yp[on_y];
        const Real below = z > 0 ? u[-plane] : zm[on_z], above = z < s.nz - 1 ? u[plane] : zp[on_z];
        s.next[cell] = relax(u[0], left, right, front, back, below, above, s.rate);
    }
}

// The boundary cells next to one tile of face f. A cell on several faces belongs to the z face, else to the
// y face; of a box one cell thick, to the lower face: so each is computed once. May be empty.
template <class Real>
JACOBI3D_FN cell_box boundary_of_tile(const step<Real> &s, int f, int tile) {
    const face_shape &shape = s.faces[f].shape;
    const int r0 = tile * shape.tile_rows, r1 = least(r0 + shape.tile_rows, shape.rows);
    const int axis = f / 2, thickness = axis == 0 ? s.nx : axis == 1 ? s.ny : s.nz;
    if (f % 2 == 1 && thickness == 1) return {0, 0, 0, 0, 0, 0};
    const int layer = f % 2 == 0 ? 0 : thickness - 1;
    if (axis == 2) return {0, s.nx, r0, r1, layer, layer + 1};
    const int z0 = most(r0, 1), z1 = least(r1, s.nz - 1);
    if (axis == 1) return {0, s.nx, layer, layer + 1, z0, z1};
    return {layer, layer + 1, 1, s.ny - 1, z0, z1};
}

template <class Real, class Block>
JACOBI3D_FN void compute_boundary(const Block &block, int block_index, int blocks, const step<Real> &s) {
    int before = 0;
    for (int f = 0; f < 6; ++f) {
        for (int tile = first_tile(block_index, blocks, before); tile < s.faces[f].shape.tiles; tile += blocks) {
            const cell_box c = boundary_of_tile(s, f, tile);
            if (c.x0 >= c.x1 || c.y0 >= c.y1 || c.z0 >= c.z1) continue;
            // On an error (the same for all threads of the block) nothing more is waited for; the library
            // keeps it with the request, and the host's MPI_Waitall raises it.
            if (wait_for_ghosts(block, s, c)) return;
            compute_with_ghosts(block, s, c);
        }
        before += s.faces[f].shape.tiles;
    }
}

}  // namespace detail

/**
 * The part of block `block_index` of `blocks` in one iteration.
 *
 * Why this cannot deadlock: each block does all its sends before its first wait, and a send (pready) waits
 * for nobody. So as soon as every block of every rank's kernel has begun, all tiles are on their way, and
 * every wait ends. Every block does begin, because the launcher makes no more blocks than the device holds
 * at the same time. (With more, the blocks in residence could wait, and hold their places, while tiles that
 * another rank needs to let its own blocks go stood with blocks that had no place yet.)
 *
 * Between the sends and the waits lies the interior, which needs no ghost cells: it hides the transfer.
 */
template <int Lanes, class Real, class Block>
JACOBI3D_FN void jacobi_step(const Block &block, int block_index, int blocks, const step<Real> &s) {
    if (s.phases & phase_send) detail::send_faces(block, block_index, blocks, s);
    if (s.phases & phase_interior) detail::compute_interior<Lanes>(block, block_index, blocks, s);
    if (s.phases & phase_boundary) detail::compute_boundary(block, block_index, blocks, s);
}

}  // namespace jacobi3d

#endif  // JACOBI3D_STEP_HPP
