// SPDX-License-Identifier: BSD-3-Clause
//
// All iterations of one box in one launch: the body of a persistent kernel, for CUDA blocks and for host threads alike.
//
// The box is cut into bricks. In each iteration
//
//   1. some blocks compute the cells on exchanged faces, a brick's at a time, as soon as its tiles of ghost cells have
//      come, and send them;
//   2. the others compute the rest of all bricks, for which they wait for no other rank (or all blocks do both);
//   3. all blocks wait for each other at a barrier.
//
// There are two fields, of which an iteration reads one and writes the other. Along an axis on which the box is its own
// neighbour, whoever computes a cell at one end stores it as a ghost cell at the other end, too.
//
// Message m of a face is its cells before iteration m. The requests of message m are those of set m % message_sets. An
// additional block, an epoch block, ends the epoch of a message after the barrier of the iteration of that number, and
// starts the next epoch of the same requests, message_sets messages later: so the neighbour has clear-to-send before it
// needs it. Several epoch blocks share out the sets.
#ifndef JACOBI3D_PERSISTENT_HPP
#define JACOBI3D_PERSISTENT_HPP

#include "bricks.hpp"
#include "step.hpp"
#include "update_cells.hpp"

#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <atomic>
#include <bit>
#include <chrono>
#include <thread>
#endif

// What a block does rarely is apart, so that the code of an iteration lies together in the instruction cache, and needs few
// registers.
#ifdef __CUDACC__
#define JACOBI3D_APART __device__ __noinline__
#else
#define JACOBI3D_APART inline
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
    // The cell (0, 0, 0) of each; the first one has the initial cells. The ghost cells beyond a face with fixed values are
    // these, in both fields; beyond a wrapped face they are the cells of the other end, stored in each iteration; beyond an
    // exchanged face they are not used, since those lie in the tiles.
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
    unsigned exchanged;  // a bit for each face
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

// Words by which blocks tell each other something.
#ifdef __CUDACC__
template <class T>
using word = cuda::atomic_ref<T, cuda::thread_scope_device>;
JACOBI3D_FN void release(int *at, int value) { word<int>(*at).store(value, cuda::memory_order_release); }
JACOBI3D_FN void count_one(unsigned *at) { word<unsigned>(*at).fetch_add(1, cuda::memory_order_release); }
template <class T>
JACOBI3D_FN T acquire(T *at) {
    return word<T>(*at).load(cuda::memory_order_acquire);
}
JACOBI3D_FN bool is_set(int *at) { return word<int>(*at).load(cuda::memory_order_relaxed) != 0; }
JACOBI3D_FN void pause(unsigned) {}
__device__ __forceinline__ int lowest_bit(unsigned bits) { return __ffs(static_cast<int>(bits)) - 1; }
#else
JACOBI3D_FN void release(int *at, int value) { std::atomic_ref<int>(*at).store(value, std::memory_order_release); }
JACOBI3D_FN void count_one(unsigned *at) { std::atomic_ref<unsigned>(*at).fetch_add(1, std::memory_order_release); }
template <class T>
JACOBI3D_FN T acquire(T *at) {
    return std::atomic_ref<T>(*at).load(std::memory_order_acquire);
}
JACOBI3D_FN bool is_set(int *at) { return std::atomic_ref<int>(*at).load(std::memory_order_relaxed) != 0; }
JACOBI3D_FN int lowest_bit(unsigned bits) { return std::countr_zero(bits); }
// Whoever is waited for may need this core.
JACOBI3D_FN void pause(unsigned looks) {
    if (looks < 1000)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}
#endif

// One thread waits until `done`; or for a failure, after which nothing is right any more.
template <class Real, class Done>
JACOBI3D_FN void await(const persistent<Real> &s, const Done &done) {
    for (unsigned looks = 1; !done() && (looks % 32 != 0 || !is_set(s.failed)); ++looks) pause(looks);
}
// Until all blocks have come to the barrier of iteration t.
template <class Real>
JACOBI3D_FN void await_iteration(const persistent<Real> &s, int blocks, int t) {
    const unsigned all = static_cast<unsigned>(blocks) * (static_cast<unsigned>(t) + 1);  // it may wrap around
    await(s, [&] { return static_cast<int>(acquire(s.arrivals) - all) >= 0; });
}

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

// Stores the value of cell (x, y, z), which is at `cell`, as a ghost cell beyond the opposite face as well, for each wrapped
// face on which the cell lies.
template <class Real>
JACOBI3D_FN void store_wrapped(const persistent<Real> &s, unsigned wrapped, Real *cell, int x, int y, int z,
                               Real value) {
    if ((wrapped >> 0 & 1) != 0 && x == 0) cell[s.nx] = value;
    if ((wrapped >> 1 & 1) != 0 && x == s.nx - 1) cell[-s.nx] = value;
    if ((wrapped >> 2 & 1) != 0 && y == 0) cell[s.ny * s.width] = value;
    if ((wrapped >> 3 & 1) != 0 && y == s.ny - 1) cell[-s.ny * s.width] = value;
    if ((wrapped >> 4 & 1) != 0 && z == 0) cell[s.nz * s.plane] = value;
    if ((wrapped >> 5 & 1) != 0 && z == s.nz - 1) cell[-s.nz * s.plane] = value;
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
        // All six neighbours are loaded from the field, without a choice of address, so that all loads are under way
        // together; that beyond the side, which is not valid there, is then replaced by the ghost cell. No read-only cache:
        // ghost cells change while the kernel runs.
        const Real *const u = now + cell;
        Real around[6] = {u[-1], u[1], u[-width], u[width], u[-plane], u[plane]};
        const Real here = u[0], beyond = ghost[in_tile];
        int in_brick[3] = {};
        const cell_box &c = b.cells;
        if (other_sides != 0 || b.wrapped != 0) {
            in_brick[0] = side < 2 ? side * (c.x1 - c.x0 - 1) : at;
            in_brick[1] = side < 2 ? at : side < 4 ? (side - 2) * (c.y1 - c.y0 - 1) : row;
            in_brick[2] = side < 4 ? row : (side - 4) * (c.z1 - c.z0 - 1);
        }
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
        if (b.wrapped != 0)
            store_wrapped(s, b.wrapped, next + cell, c.x0 + in_brick[0], c.y0 + in_brick[1], c.z0 + in_brick[2], value);
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

// Step 1 for one brick, of iteration t, whose ghost cells have come; of -1, sends message 0 only. Otherwise as above.
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

// The same two in functions of their own: where registers are few, these leave them to the cells of step 2.
template <class Real, class Block>
JACOBI3D_APART bool await_sides_apart(const Block &block, block_memory<Real> &own, const face_brick &on_faces, int m) {
    return await_sides(block, own, on_faces, m);
}
template <int Lanes, class Real, class Block>
JACOBI3D_APART bool do_sides_apart(const Block &block, block_memory<Real> &own, const face_brick &on_faces, int t) {
    return do_sides<Lanes>(block, own, on_faces, t);
}

// The cells of a brick that are on none of its exchanged sides.
JACOBI3D_FN cell_box inside(const brick &b) {
    const cell_box &c = b.cells;
    const auto bit = [&b](int side) { return static_cast<int>(b.sides >> side & 1); };
    return {c.x0 + bit(0), c.x1 - bit(1), c.y0 + bit(2), c.y1 - bit(3), c.z0 + bit(4), c.z1 - bit(5)};
}

// Step 2 for one brick.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void update(const Block &block, const persistent<Real> &s, const brick &b, int t) {
    const auto update_with = [&](const auto &on_store) {
        update_cells<Lanes>(block, s.fields[t % 2], s.fields[(t + 1) % 2], s.width, s.plane, s.rate, b.cells.x0,
                            b.cells.y0, inside(b), on_store);
    };
    if (b.wrapped == 0)
        update_with([](int, int, int, Real *, Real) {});
    else
        update_with(
            [&](int x, int y, int z, Real *cell, Real value) { store_wrapped(s, b.wrapped, cell, x, y, z, value); });
}

// Step 3, after iteration t, in two parts. Behind the second one a block may read what any block has written.
template <class Real, class Block>
JACOBI3D_FN void arrive_at_barrier(const Block &block, const persistent<Real> &s) {
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    block.sync();  // the thread that counts releases what all have written, and read
    // Its release waits for that thread's own stores, so it is one of the last but one warp: the first ones have stored to
    // another GPU, and the last thread to the host (tell_taken).
    if (rank == (threads > 64 ? threads - 33 : 0)) count_one(s.arrivals);
}
template <class Real, class Block>
JACOBI3D_FN void wait_at_barrier(const Block &block, const persistent<Real> &s, int blocks, int t,
                                 block_memory<Real> &own, bool sends) {
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    if (rank == (threads > 64 ? threads - 33 : 0)) await_iteration(s, blocks, t);
    // By another warp, if there is one: that the next iteration's message may be filled.
    if (rank == least(32, threads - 1) && sends) {
        follow_epochs(own, t);
        if (t + 2 < s.iterations) await(s, [&] { return acquire(s.started + (t + 2) % message_sets) >= t + 2; });
    }
    block.sync();
}

// All that block `block_index` of `blocks` does. Where blocks take both, the items of an iteration are first the bricks on
// faces, with their sides there, then the rest of all bricks; and the block has those of numbers block_index, block_index +
// blocks, ...
template <int Lanes, bool Apart, class Real, class Block>
JACOBI3D_FN void iterate(const Block &block, int block_index, int blocks, const persistent<Real> &s,
                         block_memory<Real> &own) {
    const int faces = s.on_faces_count, bricks = s.bricks.count[0] * s.bricks.count[1] * s.bricks.count[2];
    const bool both = s.face_blocks == blocks;
    const int my_faces = block_index < least(faces, s.face_blocks) ? (faces - block_index - 1) / s.face_blocks + 1 : 0;
    // The block's bricks of step 2.
    const int first_rest = both                          ? block_index + my_faces * blocks - faces
                           : block_index < s.face_blocks ? bricks
                                                         : block_index - s.face_blocks;
    const int stride = both ? blocks : blocks - s.face_blocks;
    const bool leader = block.thread_rank() == 0, sends = my_faces > 0;
    const auto find_face_brick = [&](int k, face_brick &found) {
        found.where = brick_of(s, s.on_faces[block_index + k * s.face_blocks]);
        for (unsigned left = found.where.sides; left != 0; left &= left - 1)
            found.sides[lowest_bit(left)] = side_of(s, found.where, lowest_bit(left));
    };
    constexpr int kept = block_memory<Real>::kept;
    if (leader) {
        own.all = s;
        if (first_rest < bricks) own.rest = brick_of(s, first_rest);
        for (int k = 0; k < my_faces && k < kept; ++k) find_face_brick(k, own.faces[k]);
    }
    block.sync();
    // `step` for the block's bricks on faces, until one fails.
    const auto all_faces = [&](const auto &step) {
        bool good = true;
        for (int k = 0; k < my_faces && good; ++k) {
            face_brick &next = own.faces[least(k, kept - 1)];
            if (my_faces > kept && k >= kept - 1) {
                block.sync();
                if (leader) find_face_brick(k, next);
                block.sync();
            }
            good = step(next);
        }
        return good;
    };
    for (int t = -1; t < s.iterations; ++t) {
        const auto await_next = [&](const face_brick &on_faces) {
            return Apart ? await_sides_apart(block, own, on_faces, t + 1) : await_sides(block, own, on_faces, t + 1);
        };
        bool good = all_faces([&](const face_brick &on_faces) {
            return Apart ? do_sides_apart<Lanes>(block, own, on_faces, t) : do_sides<Lanes>(block, own, on_faces, t);
        });
        for (int i = t < 0 ? bricks : first_rest; i < bricks; i += stride)
            update<Lanes>(block, s, i == first_rest ? own.rest : brick_of(s, i), t);
        if (t + 1 == s.iterations) break;
        // While other blocks have not come to the barrier, the next message's tiles may: the neighbour sends them before it
        // comes to its own.
        if (t >= 0) arrive_at_barrier(block, s);
        good = good && all_faces(await_next);
        if (!good) {  // whoever waits for this block is told
            if (leader) release(s.failed, 1);
            return;
        }
        if (t >= 0) wait_at_barrier(block, s, blocks, t, own, sends);
    }
}

// Runs the epochs of the sets `first`, `first` + `stride`, ... Message m is the one to start: after the barrier of iteration
// m - message_sets the ghost cells of the message before it in its set have been read, and this rank's part of that was
// sent an iteration earlier, so its epoch can end.
template <class Real, class Group>
JACOBI3D_APART void run_epochs(const Group &group, const persistent<Real> &s, int blocks, int first, int stride) {
    for (int m = message_sets + first; m < s.iterations; m += stride) {
        const int set = m % message_sets;
        if (group.thread_rank() == 0) {
            await_iteration(s, blocks, m - message_sets);
            // The leader decides for all.
            if (is_set(s.failed)) release(s.gave_up + set, 1);
        }
        group.sync();
        if (is_set(s.gave_up + set)) return;
        const int code = mpix::next_epoch(group, s.request_count, s.requests[set]);
        group.sync();  // all threads have started their requests
        if (group.thread_rank() == 0) code == MPI_SUCCESS ? release(s.started + set, m) : release(s.failed, 1);
        if (code != MPI_SUCCESS) return;
    }
}

}  // namespace detail

/**
 * The part of block `block_index` of `blocks` + `epoch_blocks`, all of which must run at the same time; 1 to message_sets
 * epoch blocks, a divisor of that. Before it the requests of the first message_sets messages have been started, as far as
 * there are so many iterations; started[k] is k, and the other words are 0. `own` need not be initialised.
 *
 * Why this cannot deadlock: an iteration waits for the one before it only, of the other blocks and by messages; an epoch
 * block likewise. A block sends before it waits for the others, and pready's wait is bounded (some microseconds).
 *
 * After an error the block that has seen it sets `failed` and returns. The others wait at no barrier from then on, compute
 * wrong cells, and return at the end or when a call of theirs fails, too; a wait for a tile that never comes lasts
 * MPIX_STALL_SECONDS. The host must not use the fields.
 *
 * Apart: the code of step 1 is a function of its own.
 */
template <int Lanes, bool Apart = false, class Real, class Block>
JACOBI3D_FN void jacobi_persistent(const Block &block, int block_index, int blocks, int epoch_blocks,
                                   const persistent<Real> &s, block_memory<Real> &own) {
    if (block_index < blocks)
        detail::iterate<Lanes, Apart>(block, block_index, blocks, s, own);
    else if (s.request_count != 0)
        detail::run_epochs(block, s, blocks, block_index - blocks, epoch_blocks);
}

}  // namespace jacobi3d

#endif  // JACOBI3D_PERSISTENT_HPP
