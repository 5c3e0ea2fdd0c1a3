// SPDX-License-Identifier: BSD-3-Clause
//
// All iterations of one box in one launch: the body of a kernel that stays, for CUDA blocks and for host threads alike.
//
// The box is cut into bricks. A brick belongs to one block for good, which in each iteration
//
//   1. waits until the bricks beside it have done the last iteration, and for the tiles of ghost cells that it touches;
//   2. computes the cells on exchanged faces of the box, and sends these tiles;
//   3. computes the rest while they are under way, and says to the bricks beside it that it has done the iteration.
//
// No barrier of all blocks is needed. A brick has two fields of cells: what an iteration overwrites, the bricks beside
// have read when they have done the last one, and that has been waited for.
//
// Message m of a face is its cells before iteration m. The requests of message m are those of set m % message_sets. An
// additional block, a clerk, ends the epoch of a message when all bricks on exchanged faces have done with it, and
// starts the next epoch of the same requests, message_sets messages later: so the neighbour has clear-to-send before
// it needs it. Several clerks share out the sets.
#ifndef JACOBI3D_PERSISTENT_HPP
#define JACOBI3D_PERSISTENT_HPP

#include "bricks.hpp"
#include "step.hpp"

#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <atomic>
#include <chrono>
#include <thread>
#endif
#include <type_traits>

namespace jacobi3d {

inline constexpr int message_sets = 4;  // a clerk has the time of several iterations

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
    Real *fields[2];  // the first one has the initial cells
    int nx, ny, nz;
    Real rate;
    int iterations;
    brick_grid bricks;
    const int *order;      // of the bricks; those on exchanged faces first
    int on_faces;          // how many these are
    int *done;             // of each brick: the iterations that it has done
    int *started;          // of each set: the last message whose epochs have been started
    int *failed;           // set by whoever sees an error; the library keeps it with the request
    int *gave_up;          // of each set: set by its clerk, if that ends for that reason
    unsigned exchanged;    // a bit for each face
    const Real *fixed[6];  // of the other faces: the values beyond them, in tiles
    message<Real> messages[message_sets][6];
    MPIX_Prequest requests[message_sets][12];  // of a set, `request_count` of them
    int request_count;
};

namespace detail {

// A word by which blocks tell each other something.
#ifdef __CUDACC__
using word = cuda::atomic_ref<int, cuda::thread_scope_device>;
JACOBI3D_FN int acquire(int *at) { return word(*at).load(cuda::memory_order_acquire); }
JACOBI3D_FN void release(int *at, int value) { word(*at).store(value, cuda::memory_order_release); }
JACOBI3D_FN bool is_set(int *at) { return word(*at).load(cuda::memory_order_relaxed) != 0; }
JACOBI3D_FN void pause(unsigned) {}
#else
JACOBI3D_FN int acquire(int *at) { return std::atomic_ref(*at).load(std::memory_order_acquire); }
JACOBI3D_FN void release(int *at, int value) { std::atomic_ref(*at).store(value, std::memory_order_release); }
JACOBI3D_FN bool is_set(int *at) { return std::atomic_ref(*at).load(std::memory_order_relaxed) != 0; }
// Whoever is waited for may need this core.
JACOBI3D_FN void pause(unsigned looks) {
    if (looks < 1000)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}
#endif

// One thread waits for *at to reach `value`; or for a failure, after which nothing is right any more.
template <class Real>
JACOBI3D_FN void await(const persistent<Real> &s, int *at, int value) {
    for (unsigned looks = 1; acquire(at) < value && (looks % 32 != 0 || !is_set(s.failed)); ++looks) pause(looks);
}

// Where a brick lies.
struct brick {
    int number;
    int at[3];  // among the bricks
    cell_box cells;
    unsigned outer;  // a bit for each side that lies on the box's face

    JACOBI3D_FN bool is_outer(int side) const { return (outer >> side & 1) != 0; }
};

template <class Real>
JACOBI3D_FN brick brick_of(const persistent<Real> &s, int number) {
    const brick_grid &g = s.bricks;
    brick b;
    b.number = number;
    b.at[0] = number % g.count[0];
    b.at[1] = number / g.count[0] % g.count[1];
    b.at[2] = number / g.count[0] / g.count[1];
    b.cells = {b.at[0] * g.size[0], least((b.at[0] + 1) * g.size[0], s.nx),
               b.at[1] * g.size[1], least((b.at[1] + 1) * g.size[1], s.ny),
               b.at[2] * g.size[2], least((b.at[2] + 1) * g.size[2], s.nz)};
    b.outer = (b.cells.x0 == 0) << 0 | (b.cells.x1 == s.nx) << 1 | (b.cells.y0 == 0) << 2 | (b.cells.y1 == s.ny) << 3 |
              (b.cells.z0 == 0) << 4 | (b.cells.z1 == s.nz) << 5;
    return b;
}

// The number of a brick's tile on a side's face.
template <class Real>
JACOBI3D_FN int tile_of(const persistent<Real> &s, const brick &b, int side) {
    return side < 2   ? b.at[2] * s.bricks.count[1] + b.at[1]
           : side < 4 ? b.at[2] * s.bricks.count[0] + b.at[0]
                      : b.at[1] * s.bricks.count[0] + b.at[0];
}
template <class Real>
JACOBI3D_FN std::int64_t tile_begin(const persistent<Real> &s, const brick &b, int side) {
    const int *const size = s.bricks.size;
    const int cells = side < 2 ? size[1] * size[2] : side < 4 ? size[0] * size[2] : size[0] * size[1];
    return std::int64_t{tile_of(s, b, side)} * cells;
}

// Step 1, of iteration t. False: there was a failure.
template <class Real, class Block>
JACOBI3D_FN bool await_neighbours(const Block &block, const persistent<Real> &s, const brick &b, int t) {
    const bool exchanges = (b.outer & s.exchanged) != 0;
    // Each by another thread, where there are enough.
    for (int i = static_cast<int>(block.thread_rank()); i < 7; i += static_cast<int>(block.num_threads())) {
        if (i == 6) {
            // What this iteration sends is another message. The clerk does not wait for this iteration to start it.
            if (exchanges && t + 1 < s.iterations) await(s, s.started + (t + 1) % message_sets, t + 1);
        } else if (!b.is_outer(i)) {
            const int stride = i < 2 ? 1 : i < 4 ? s.bricks.count[0] : s.bricks.count[0] * s.bricks.count[1];
            await(s, s.done + b.number + (i % 2 == 0 ? -stride : stride), t);
        }
    }
    block.sync();
    bool good = true;
#ifdef __CUDACC__
#pragma unroll 1  // one copy of the wait's code
#endif
    for (int f = 0; f < 6 && exchanges; ++f)
        if ((b.outer & s.exchanged) >> f & 1)
            good = good && mpix::wait_arrived(block, s.messages[t % message_sets][f].recv_request, tile_of(s, b, f)) ==
                               MPI_SUCCESS;
    return good;
}

// The neighbours of the cells of a column or a row in one direction: of cell i, p[i * stride].
template <class Real>
struct line {
    const Real *p;
    std::int64_t stride;
};

// `count` cells of a column, from *u on. `below`, `above`: what lies beyond its ends, if not in the field; else null.
template <class Real>
JACOBI3D_FN void march(const Real *u, Real *v, std::int64_t plane, int count, line<Real> xm, line<Real> xp,
                       line<Real> ym, line<Real> yp, const Real *below_all, const Real *above_all, Real rate) {
    // The loads of so many cells are under way together. (The compiler moves no load before a store, which might be to
    // the same place.)
    constexpr int batch = sizeof(Real) == 4 ? 4 : 2;
    Real below = below_all != nullptr ? *below_all : u[-plane], here = u[0];
    const auto step = [&](auto cells, int last) {
        constexpr int n = decltype(cells)::value;
        Real left[n], right[n], front[n], back[n], above[n];
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int k = 0; k < n; ++k) {
            left[k] = xm.p[k * xm.stride];
            right[k] = xp.p[k * xp.stride];
            front[k] = ym.p[k * ym.stride];
            back[k] = yp.p[k * yp.stride];
            above[k] = *(above_all != nullptr && k == last ? above_all : u + (k + 1) * plane);
        }
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int k = 0; k < n; ++k) {
            v[k * plane] = relax(here, left[k], right[k], front[k], back[k], below, above[k], rate);
            below = here;
            here = above[k];
        }
        u += n * plane;
        v += n * plane;
        xm.p += n * xm.stride;
        xp.p += n * xp.stride;
        ym.p += n * ym.stride;
        yp.p += n * yp.stride;
    };
    int z = 0;
    for (; z + batch <= count; z += batch) step(std::integral_constant<int, batch>{}, count - 1 - z);
    for (; z < count; ++z) step(std::integral_constant<int, 1>{}, count - 1 - z);
}

// The values beyond a side of a brick that lies on the box's face: a tile.
template <class Real>
JACOBI3D_FN const Real *beyond(const persistent<Real> &s, const brick &b, int side, int t) {
    const Real *const all = s.exchanged >> side & 1 ? s.messages[t % message_sets][side].ghost : s.fixed[side];
    return all + tile_begin(s, b, side);
}

template <class Real>
JACOBI3D_FN void find_tiles(const persistent<Real> &s, const brick &b, int t, const Real *(&tiles)[6]) {
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int f = 0; f < 6; ++f) tiles[f] = b.is_outer(f) ? beyond(s, b, f, t) : nullptr;
}

// Step 2, of one side. The cells go to message t + 1 as well.
template <class Real, class Block>
JACOBI3D_FN void update_side(const Block &block, const persistent<Real> &s, const brick &b, int side, int t) {
    const cell_box &c = b.cells;
    const int size_x = s.bricks.size[0], size_y = s.bricks.size[1];
    const std::int64_t width = s.nx, plane = width * s.ny;
    const int across = side < 2 ? c.y1 - c.y0 : c.x1 - c.x0, along = side < 4 ? c.z1 - c.z0 : c.y1 - c.y0;
    const Real *const now = s.fields[t % 2];
    Real *const next = s.fields[(t + 1) % 2];
    Real *const to = s.messages[(t + 1) % message_sets][side].send + tile_begin(s, b, side);
    const Real *tiles[6];
    find_tiles(s, b, t, tiles);
    for (int i = static_cast<int>(block.thread_rank()); i < across * along;
         i += static_cast<int>(block.num_threads())) {
        const int at = i % across, row = i / across;
        const int x = side == 0 ? c.x0 : side == 1 ? c.x1 - 1 : c.x0 + at;
        const int y = side < 2 ? c.y0 + at : side == 2 ? c.y0 : side == 3 ? c.y1 - 1 : c.y0 + row;
        const int z = side < 4 ? c.z0 + row : side == 4 ? c.z0 : c.z1 - 1;
        const int on_x = (z - c.z0) * size_y + y - c.y0, on_y = (z - c.z0) * size_x + x - c.x0,
                  on_z = (y - c.y0) * size_x + x - c.x0;
        const std::int64_t cell = z * plane + y * width + x;
        const Real *const u = now + cell;
        const Real value = relax(u[0], x > 0 ? u[-1] : tiles[0][on_x], x < s.nx - 1 ? u[1] : tiles[1][on_x],
                                 y > 0 ? u[-width] : tiles[2][on_y], y < s.ny - 1 ? u[width] : tiles[3][on_y],
                                 z > 0 ? u[-plane] : tiles[4][on_z], z < s.nz - 1 ? u[plane] : tiles[5][on_z], s.rate);
        next[cell] = value;
        to[side < 2 ? on_x : side < 4 ? on_y : on_z] = value;
    }
}

// The cells of a brick that are on none of these sides.
JACOBI3D_FN cell_box without_sides(const cell_box &c, unsigned sides) {
    const auto bit = [sides](int side) { return static_cast<int>(sides >> side & 1); };
    return {c.x0 + bit(0), c.x1 - bit(1), c.y0 + bit(2), c.y1 - bit(3), c.z0 + bit(4), c.z1 - bit(5)};
}

// Step 3: the cells `r` of a brick. As compute_brick in step.hpp: a thread has columns, or rows with Lanes = 1.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void update(const Block &block, const persistent<Real> &s, const brick &b, const cell_box &r, int t) {
    if (r.x0 >= r.x1 || r.y0 >= r.y1 || r.z0 >= r.z1) return;
    const int rank = static_cast<int>(block.thread_rank());
    const int rows = static_cast<int>(block.num_threads()) / Lanes;
    const cell_box &c = b.cells;
    const int size_x = s.bricks.size[0], size_y = s.bricks.size[1];
    const std::int64_t width = s.nx, plane = width * s.ny;
    // Blocks write `now` while others compute: plain loads, no __restrict__, no read-only cache.
    const Real *const now = s.fields[t % 2];
    Real *const next = s.fields[(t + 1) % 2];
    const Real *tiles[6] = {};
    if (b.outer != 0) find_tiles(s, b, t, tiles);
    if constexpr (Lanes > 1) {
        for (int y = r.y0 + rank / Lanes; y < r.y1; y += rows)
            for (int x = r.x0 + rank % Lanes; x < r.x1; x += Lanes) {
                const std::int64_t first = r.z0 * plane + y * width + x;
                const Real *const u = now + first;
                if (b.outer == 0) {
                    march<Real>(u, next + first, plane, r.z1 - r.z0, {u - 1, plane}, {u + 1, plane}, {u - width, plane},
                                {u + width, plane}, nullptr, nullptr, s.rate);
                    continue;
                }
                line<Real> sides[4] = {{u - 1, plane}, {u + 1, plane}, {u - width, plane}, {u + width, plane}};
                const int on_x = (r.z0 - c.z0) * size_y + y - c.y0, on_y = (r.z0 - c.z0) * size_x + x - c.x0;
                if (x == 0) sides[0] = {tiles[0] + on_x, size_y};
                if (x == s.nx - 1) sides[1] = {tiles[1] + on_x, size_y};
                if (y == 0) sides[2] = {tiles[2] + on_y, size_x};
                if (y == s.ny - 1) sides[3] = {tiles[3] + on_y, size_x};
                const int on_z = (y - c.y0) * size_x + x - c.x0;
                march(u, next + first, plane, r.z1 - r.z0, sides[0], sides[1], sides[2], sides[3],
                      r.z0 == 0 ? tiles[4] + on_z : nullptr, r.z1 == s.nz ? tiles[5] + on_z : nullptr, s.rate);
            }
    } else {
        for (int z = r.z0; z < r.z1; ++z)
            for (int y = r.y0 + rank; y < r.y1; y += rows) {
                const std::int64_t first = z * plane + y * width + r.x0;
                const Real *const u = now + first;
                Real *const v = next + first;
                const int on_y = (z - c.z0) * size_x + r.x0 - c.x0, on_z = (y - c.y0) * size_x + r.x0 - c.x0;
                const Real *const front = y > 0 ? u - width : tiles[2] + on_y;
                const Real *const back = y < s.ny - 1 ? u + width : tiles[3] + on_y;
                const Real *const below = z > 0 ? u - plane : tiles[4] + on_z;
                const Real *const above = z < s.nz - 1 ? u + plane : tiles[5] + on_z;
                const auto cell = [&](int x, Real left, Real right) {
                    v[x] = relax(u[x], left, right, front[x], back[x], below[x], above[x], s.rate);
                };
                const int last = r.x1 - r.x0 - 1, on_x = (z - c.z0) * size_y + y - c.y0;
                const Real before = r.x0 > 0 ? u[-1] : tiles[0][on_x],
                           after = r.x1 < s.nx ? u[last + 1] : tiles[1][on_x];
                cell(0, before, last > 0 ? u[1] : after);
                for (int x = 1; x < last; ++x) cell(x, u[x - 1], u[x + 1]);
                if (last > 0) cell(last, u[last - 1], after);
            }
    }
}

// Copies the cells of a brick's side, before iteration 0, to where they are sent from.
template <class Real, class Block>
JACOBI3D_FN void pack_side(const Block &block, const persistent<Real> &s, const brick &b, int side) {
    const cell_box &c = b.cells;
    const std::int64_t width = s.nx, plane = width * s.ny;
    const int across = side < 2 ? c.y1 - c.y0 : c.x1 - c.x0, along = side < 4 ? c.z1 - c.z0 : c.y1 - c.y0;
    const int tile_width = s.bricks.size[side < 2 ? 1 : 0];
    const int x = side == 1 ? c.x1 - 1 : c.x0, y = side == 3 ? c.y1 - 1 : c.y0, z = side == 5 ? c.z1 - 1 : c.z0;
    const Real *const from = s.fields[0] + z * plane + y * width + x;
    Real *const to = s.messages[0][side].send + tile_begin(s, b, side);
    const std::int64_t step_across = side < 2 ? width : 1, step_along = side < 4 ? plane : width;
    for (int i = static_cast<int>(block.thread_rank()); i < across * along;
         i += static_cast<int>(block.num_threads())) {
        const int at = i % across, row = i / across;
        to[row * tile_width + at] = from[row * step_along + at * step_across];
    }
}

// The brick's part of message m, of these sides: the cells after iteration m - 1, which computes them here. False:
// there was a failure.
template <class Real, class Block>
JACOBI3D_FN bool send_sides(const Block &block, const persistent<Real> &s, const brick &b, unsigned sides, int m) {
    bool good = true;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int f = 0; f < 6; ++f) {
        if ((sides >> f & 1) == 0) continue;
        if (m == 0)
            pack_side(block, s, b, f);
        else
            update_side(block, s, b, f, m - 1);
        // pready begins with a barrier of the block, so it covers what all its threads have copied.
        good =
            good && mpix::pready(block, tile_of(s, b, f), s.messages[m % message_sets][f].send_request) == MPI_SUCCESS;
    }
    return good;
}

// All that block `block_index` of `blocks` does.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void iterate(const Block &block, int block_index, int blocks, const persistent<Real> &s) {
    const bool leader = block.thread_rank() == 0;
    const int bricks = s.bricks.count[0] * s.bricks.count[1] * s.bricks.count[2];
    if (block_index >= bricks || s.iterations == 0) return;
    bool good = true;
    for (int i = block_index; i < s.on_faces; i += blocks) {
        const brick b = brick_of(s, s.order[i]);
        good = good && send_sides(block, s, b, b.outer & s.exchanged, 0);
    }
    // Looked up once, if the block has no other: between two iterations that would take longer than anything else.
    brick b = brick_of(s, s.order[block_index]);
    for (int t = 0; t < s.iterations; ++t)
        for (int i = block_index; i < bricks; i += blocks) {
            if (bricks > blocks) b = brick_of(s, s.order[i]);
            good = good && await_neighbours(block, s, b, t);
            // The same for all threads of the block. Whoever waits for this block is told by `failed`.
            if (!good) {
                if (leader) release(s.failed, 1);
                return;
            }
            const unsigned sides = t + 1 < s.iterations ? b.outer & s.exchanged : 0;
            if (sides != 0) good = send_sides(block, s, b, sides, t + 1);
            update<Lanes>(block, s, b, without_sides(b.cells, sides), t);
            block.sync();  // the leader releases what all threads have written
            if (leader) release(s.done + b.number, t + 1);
        }
    if (!good && leader) release(s.failed, 1);
}

// The clerk of some sets, `first`, `first` + `step`, ... Its last use of a message's requests a brick has made when it
// says that it has done the iteration of that number: it has read the ghost cells then, and has sent its own part in
// the iteration before.
template <class Real, class Group>
JACOBI3D_FN void run_epochs(const Group &group, const persistent<Real> &s, int first, int step) {
    for (int m = message_sets + first; m < s.iterations; m += step) {
        const int set = m % message_sets;
        for (int i = static_cast<int>(group.thread_rank()); i < s.on_faces; i += static_cast<int>(group.num_threads()))
            await(s, s.done + s.order[i], m - message_sets + 1);
        // The leader decides for all.
        if (group.thread_rank() == 0 && is_set(s.failed)) release(s.gave_up + set, 1);
        group.sync();
        if (is_set(s.gave_up + set)) return;
        const int code = mpix::next_epoch(group, s.request_count, s.requests[set]);
        // The neighbour's clear-to-send is looked for here, where nobody waits for it yet.
        for (int f = 0; f < 6 && code == MPI_SUCCESS; ++f)
            if (s.exchanged >> f & 1) (void)mpix::prepare_send(group, s.messages[set][f].send_request);
        group.sync();  // all threads have started their requests
        if (group.thread_rank() == 0) code == MPI_SUCCESS ? release(s.started + set, m) : release(s.failed, 1);
        if (code != MPI_SUCCESS) return;
    }
}

}  // namespace detail

/**
 * The part of block `block_index` of `blocks` + `clerks`, all of which must run at the same time; 1 to message_sets
 * clerks, a divisor of that. Before it the requests of the first message_sets messages have been started, as far as
 * there are so many iterations; started[k] is k, and the other words are 0.
 *
 * Why this cannot deadlock: an iteration waits for the one before it only, of bricks and by messages; a clerk
 * likewise. A block does all its bricks of one iteration before the first of the next one, and pready waits for nobody.
 */
template <int Lanes, class Real, class Block>
JACOBI3D_FN void jacobi_persistent(const Block &block, int block_index, int blocks, int clerks,
                                   const persistent<Real> &s) {
    if (block_index < blocks)
        detail::iterate<Lanes>(block, block_index, blocks, s);
    else if (s.request_count != 0)
        detail::run_epochs(block, s, block_index - blocks, clerks);
}

}  // namespace jacobi3d

#endif  // JACOBI3D_PERSISTENT_HPP
