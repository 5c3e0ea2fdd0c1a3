// SPDX-License-Identifier: BSD-3-Clause
//
// The cells on exchanged faces in a persistent kernel (persistent.hpp): a block waits for the tiles
// of all sides of a brick; then it computes and sends one side after another.
#ifndef JACOBI3D_PERSISTENT_SIDES_HPP
#define JACOBI3D_PERSISTENT_SIDES_HPP

#include "persistent_state.hpp"

namespace jacobi3d::detail {

template <class Real>
JACOBI3D_FN brick_side side_of(const persistent<Real> &s, const brick &b, int side) {
    const cell_box &c = b.cells;
    const int *const size = s.bricks.size, *const count = s.bricks.count;
    brick_side r;
    r.across = side < 2 ? c.y1 - c.y0 : c.x1 - c.x0;
    r.along = side < 4 ? c.z1 - c.z0 : c.y1 - c.y0;
    const int x = side == 1 ? c.x1 - 1 : c.x0, y = side == 3 ? c.y1 - 1 : c.y0, z = side == 5 ? c.z1 - 1 : c.z0;
    r.first = z * s.plane + y * s.width + x;
    r.step_across = side < 2 ? static_cast<int>(s.width) : 1;
    r.step_along = static_cast<int>(side < 4 ? s.plane : s.width);
    r.tile = side < 2   ? b.at[2] * count[1] + b.at[1]
             : side < 4 ? b.at[2] * count[0] + b.at[0]
                        : b.at[1] * count[0] + b.at[0];
    r.tile_width = size[side < 2 ? 1 : 0];
    r.tile_begin = std::int64_t{r.tile} * (side < 2   ? size[1] * size[2]
                                           : side < 4 ? size[0] * size[2]
                                                      : size[0] * size[1]);
    return r;
}

// Calls `cell(at, row)` for this thread's cells of a side.
template <int Lanes, class Block, class Cell>
JACOBI3D_FN void for_side(const Block &block, const brick_side &r, const Cell &cell) {
    const int rank = static_cast<int>(block.thread_rank()), rows = static_cast<int>(block.num_threads()) / Lanes;
    for (int row = rank / Lanes; row < r.along; row += rows)
        for (int at = rank % Lanes; at < r.across; at += Lanes) cell(at, row);
}

// Of the cells (x, y, z0) to (x, y, z1 - 1), in a box of which these faces, a bit for each, are wrapped.
template <class Real>
JACOBI3D_FN neighbour_offsets periodic_offsets(const persistent<Real> &s, unsigned wrapped, int x, int y, int z0,
                                               int z1) {
    const int width = static_cast<int>(s.width);
    const auto crosses = [wrapped](int face, bool on_face) { return on_face && (wrapped >> face & 1) != 0; };
    neighbour_offsets to = inner_offsets(width, static_cast<int>(s.plane));
    if (crosses(0, x == 0)) to.west = s.nx - 1;
    if (crosses(1, x == s.nx - 1)) to.east = 1 - s.nx;
    if (crosses(2, y == 0)) to.south = (s.ny - 1) * width;
    if (crosses(3, y == s.ny - 1)) to.north = (1 - s.ny) * width;
    if (crosses(4, z0 == 0)) to.below = (s.nz - 1) * s.plane;
    if (crosses(5, z1 == s.nz)) to.above = (1 - s.nz) * s.plane;
    return to;
}

// The cells of the side in iteration t. They go to message t + 1 as well.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void update_side(const Block &block, const persistent<Real> &s, const face_brick &on_faces, int side,
                             int t) {
    const brick &b = on_faces.where;
    const brick_side &r = on_faces.sides[side];
    const message<Real> *const from = s.messages[t % message_sets];
    const Real *const now = s.fields[t % 2] + r.first, *const ghost = from[side].ghost + r.tile_begin;
    Real *const next = s.fields[(t + 1) % 2] + r.first;
    Real *const to = s.messages[(t + 1) % message_sets][side].send + r.tile_begin;
    const int width = static_cast<int>(s.width), plane = static_cast<int>(s.plane);
    const Real rate = s.rate;
    const unsigned other_sides = b.sides & ~(1u << side);
    for_side<Lanes>(block, r, [&](int at, int row) {
        const std::int64_t cell = at * r.step_across + std::int64_t{row} * r.step_along;
        const int in_tile = row * r.tile_width + at;
        // The six loads do not depend on each other, so all are under way together. The one across the side reads a cell that
        // is not valid; the ghost cell replaces it below. No read-only cache: ghost cells change while the kernel runs.
        const Real *const u = now + cell;
        Real around[6];
        const auto load = [&](const neighbour_offsets &at) {
            const Real loaded[6] = {u[at.west], u[at.east], u[at.south], u[at.north], u[at.below], u[at.above]};
#ifdef __CUDACC__
#pragma unroll
#endif
            for (int f = 0; f < 6; ++f) around[f] = loaded[f];
        };
        int in_brick[3] = {};
        const cell_box &c = b.cells;
        if (other_sides != 0 || b.wrapped != 0) {
            in_brick[0] = side < 2 ? side * (c.x1 - c.x0 - 1) : at;
            in_brick[1] = side < 2 ? at : side < 4 ? (side - 2) * (c.y1 - c.y0 - 1) : row;
            in_brick[2] = side < 4 ? row : (side - 4) * (c.z1 - c.z0 - 1);
        }
        const int z = c.z0 + in_brick[2];
        if (b.wrapped == 0)
            load(inner_offsets(width, plane));
        else
            load(periodic_offsets(s, b.wrapped, c.x0 + in_brick[0], c.y0 + in_brick[1], z, z + 1));
        const Real here = u[0], beyond = ghost[in_tile];
        // A cell on an edge of the box has ghost cells in other faces' tiles, too, for all of which the block has waited. It
        // is computed once for each side, with equal results.
        if (other_sides != 0) {
            const int last[3] = {c.x1 - c.x0 - 1, c.y1 - c.y0 - 1, c.z1 - c.z0 - 1};
#ifdef __CUDACC__
#pragma unroll
#endif
            for (int f = 0; f < 6; ++f) {
                const int axis = f / 2, across = axis == 0 ? 1 : 0, along = axis == 2 ? 1 : 2;
                if ((other_sides >> f & 1) != 0 && in_brick[axis] == (f % 2 == 0 ? 0 : last[axis]))
                    around[f] = from[f].ghost[on_faces.sides[f].tile_begin +
                                              in_brick[along] * on_faces.sides[f].tile_width + in_brick[across]];
            }
        }
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int f = 0; f < 6; ++f)
            if (f == side) around[f] = beyond;
        const Real value = relax(here, around[0], around[1], around[2], around[3], around[4], around[5], rate);
        next[cell] = value;
        to[in_tile] = value;
    });
}

// Copies the cells of the side, before iteration 0, to where they are sent from.
template <int Lanes, class Real, class Block>
JACOBI3D_APART void pack_side(const Block &block, const persistent<Real> &s, const brick_side &r, int side) {
    const Real *const from = s.fields[0] + r.first;
    Real *const to = s.messages[0][side].send + r.tile_begin;
    for_side<Lanes>(block, r, [&](int at, int row) {
        to[row * r.tile_width + at] = from[at * r.step_across + std::int64_t{row} * r.step_along];
    });
}

// The handles of a set are prepared in its first two epochs (in the first one, prepare_* may find nothing), and advanced
// by follow_epochs afterwards. All threads of the block call; the leader stores the handle, between barriers.
template <class Real, class Block>
JACOBI3D_APART void prepare_receive(const Block &block, block_memory<Real> &own, int set, int side) {
    const mpix::prepared_receive prepared = mpix::prepare_receive(block, own.all.messages[set][side].recv_request);
    if (block.thread_rank() == 0) own.receives[set][side] = prepared;
    block.sync();
}
template <class Real, class Block>
JACOBI3D_APART void prepare_send(const Block &block, block_memory<Real> &own, int set, int side) {
    const mpix::prepared_send prepared = mpix::prepare_send(block, own.all.messages[set][side].send_request);
    if (block.thread_rank() == 0) own.sends[set][side] = prepared;
    block.sync();
}
template <class Real, class Block>
JACOBI3D_FN int await_tile(const Block &block, block_memory<Real> &own, int side, int tile, int m) {
    const int set = m % message_sets;
    if (m < 2 * message_sets) prepare_receive(block, own, set, side);
    return mpix::wait_arrived(block, own.receives[set][side], tile);
}
template <class Real, class Block>
JACOBI3D_FN int send_tile(const Block &block, block_memory<Real> &own, int side, int tile, int m) {
    const int set = m % message_sets;
    if (m < 2 * message_sets) prepare_send(block, own, set, side);
    return mpix::pready(block, tile, own.sends[set][side]);
}
// After iteration t, by one thread between two barriers of the block. Message t has been read, and t + 1 sent, so their
// handles go on to the messages message_sets later. Handles of faces on which the block has no side are advanced as well,
// and never used.
template <class Real>
JACOBI3D_FN void follow_epochs(block_memory<Real> &own, int t) {
    for (int f = 0; f < 6; ++f) {
        if ((own.all.exchanged >> f & 1) == 0) continue;
        if (t >= message_sets) mpix::follow_epoch(own.receives[t % message_sets][f]);
        if (t + 1 >= message_sets) mpix::follow_epoch(own.sends[(t + 1) % message_sets][f]);
    }
}

// Waits for message m's tiles of ghost cells beside one brick. False: there was a failure. The same for all threads of the
// block.
template <class Real, class Block>
JACOBI3D_FN bool await_sides(const Block &block, block_memory<Real> &own, const face_brick &on_faces, int m) {
#ifdef __CUDACC__
#pragma unroll 1  // one copy of the wait's code
#endif
    for (unsigned left = on_faces.where.sides; left != 0; left &= left - 1) {
        const int f = lowest_bit(left);
        if (await_tile(block, own, f, on_faces.sides[f].tile, m) != MPI_SUCCESS) return false;
    }
    return true;
}

// Step 1 for one brick, of iteration t, whose ghost cells have come; of -1, sends message 0 only. False: a send has
// failed.
template <int Lanes, class Real, class Block>
JACOBI3D_FN bool do_sides(const Block &block, block_memory<Real> &own, const face_brick &on_faces, int t) {
    bool good = true;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (unsigned left = on_faces.where.sides; left != 0; left &= left - 1) {
        const int f = lowest_bit(left);
        if (t < 0)
            pack_side<Lanes>(block, own.all, on_faces.sides[f], f);
        else
            update_side<Lanes>(block, own.all, on_faces, f, t);
        // pready begins with a barrier of the block, so it covers what all its threads have written.
        if (t + 1 < own.all.iterations)
            good = good && send_tile(block, own, f, on_faces.sides[f].tile, t + 1) == MPI_SUCCESS;
        else
            block.sync();  // two sides have the cells of their edge between them
    }
    return good;
}

}  // namespace jacobi3d::detail

#endif  // JACOBI3D_PERSISTENT_SIDES_HPP
