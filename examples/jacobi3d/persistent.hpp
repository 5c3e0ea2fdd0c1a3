// SPDX-License-Identifier: BSD-3-Clause
//
// All iterations of one box in one launch: the body of a persistent kernel, for CUDA blocks and for host threads alike.
//
// The box is cut into bricks. In each iteration
//
//   1. some blocks compute the cells on exchanged faces, a brick's at a time, and send them;
//   2. the others compute the rest of all bricks (or all blocks do both);
//   3. all blocks wait for each other at a barrier. Between arriving and waiting there, those of step 1 wait for the tiles of
//      ghost cells of the next iteration, which the neighbours have sent before they arrive at theirs.
//
// There are two fields, of which an iteration reads one and writes the other. Along an axis on which the box is its own
// neighbour, the cells at one end are read as the neighbours of those at the other.
//
// Message m of a face is its cells before iteration m. The requests of message m are those of set m % message_sets. An
// additional block, an epoch block, ends the epoch of a message after the barrier of the iteration of that number, and
// starts the next epoch of the same requests, message_sets messages later: so the neighbour has clear-to-send before it
// needs it. Several epoch blocks share out the sets.
#ifndef JACOBI3D_PERSISTENT_HPP
#define JACOBI3D_PERSISTENT_HPP

#include "persistent_sides.hpp"
#include "persistent_state.hpp"
#include "update_cells.hpp"

#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <atomic>
#include <chrono>
#include <thread>
#endif

namespace jacobi3d {

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
#else
JACOBI3D_FN void release(int *at, int value) { std::atomic_ref<int>(*at).store(value, std::memory_order_release); }
JACOBI3D_FN void count_one(unsigned *at) { std::atomic_ref<unsigned>(*at).fetch_add(1, std::memory_order_release); }
template <class T>
JACOBI3D_FN T acquire(T *at) {
    return std::atomic_ref<T>(*at).load(std::memory_order_acquire);
}
JACOBI3D_FN bool is_set(int *at) { return std::atomic_ref<int>(*at).load(std::memory_order_relaxed) != 0; }
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

// Step 2 for one brick.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void update(const Block &block, const persistent<Real> &s, const brick &b, int t) {
    const auto update_with = [&](const auto &offsets_of) {
        update_cells<Lanes>(block, s.fields[t % 2], s.fields[(t + 1) % 2], s.width, s.plane, s.rate, b.cells.x0,
                            b.cells.y0, inside(b), offsets_of);
    };
    if (b.wrapped == 0)
        update_with(
            [&](int, int, int, int) { return inner_offsets(static_cast<int>(s.width), static_cast<int>(s.plane)); });
    else
        update_with([&](int x, int y, int z0, int z1) { return periodic_offsets(s, b.wrapped, x, y, z0, z1); });
}

// The thread that comes to the barrier for a block. Its release waits for that thread's own stores, so it is one of the last
// but one warp: the first ones have stored to another GPU, and the last thread to the host (tell_taken).
JACOBI3D_FN int thread_at_barrier(int threads) { return threads > 64 ? threads - 33 : 0; }

// Step 3, after iteration t, in two parts. Behind the second one a block may read what any block has written.
template <class Real, class Block>
JACOBI3D_FN void arrive_at_barrier(const Block &block, const persistent<Real> &s) {
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    block.sync();  // the thread that counts releases what all have written, and read
    if (rank == thread_at_barrier(threads)) count_one(s.arrivals);
}
template <class Real, class Block>
JACOBI3D_FN void wait_at_barrier(const Block &block, const persistent<Real> &s, int blocks, int t,
                                 block_memory<Real> &own, bool sends) {
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    if (rank == thread_at_barrier(threads)) await_iteration(s, blocks, t);
    // By another warp, if there is one: that the next iteration's message may be filled.
    if (rank == (threads > 64 ? 0 : least(32, threads - 1)) && sends) {
        follow_epochs(own, t);
        if (t + 2 < s.iterations) await(s, [&] { return acquire(s.started + (t + 2) % message_sets) >= t + 2; });
    }
    block.sync();
}

// All that block `block_index` of `blocks` does. Where blocks take both, the items of an iteration are first the bricks on
// faces, with their sides there, then the rest of all bricks; and the block has those of numbers block_index, block_index +
// blocks, ...
template <int Lanes, class Real, class Block>
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
        const auto await_next = [&](const face_brick &on_faces) { return await_sides(block, own, on_faces, t + 1); };
        bool good = all_faces([&](const face_brick &on_faces) { return do_sides<Lanes>(block, own, on_faces, t); });
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
 * The part of block `block_index` of `blocks` + `epoch_blocks`, all of which must run at the same time. `epoch_blocks` divides
 * message_sets. Before the launch the requests of the first message_sets messages have been started, as far as there are so
 * many iterations; started[k] is k, and the other words are 0. `own` need not be initialised.
 *
 * Why this cannot deadlock: at the end of iteration t a block waits for the other blocks' arrival; for message t + 1, which
 * the neighbour sends in its iteration t before it waits for anything; and for the start of message t + 2 by an epoch block.
 * That one waits for the barrier of iteration t - 2 and the end of the epochs of message t - 2. pready's wait is bounded (some
 * microseconds).
 *
 * After an error the block that has seen it sets `failed` and returns. The others wait at no barrier from then on, compute
 * wrong cells, and return at the end or when a call of theirs fails, too; a wait for a tile that never comes lasts
 * MPIX_STALL_SECONDS. The host must not use the fields.
 */
template <int Lanes, class Real, class Block>
JACOBI3D_FN void jacobi_persistent(const Block &block, int block_index, int blocks, int epoch_blocks,
                                   const persistent<Real> &s, block_memory<Real> &own) {
    if (block_index < blocks)
        detail::iterate<Lanes>(block, block_index, blocks, s, own);
    else if (s.request_count != 0)
        detail::run_epochs(block, s, blocks, block_index - blocks, epoch_blocks);
}

}  // namespace jacobi3d

#endif  // JACOBI3D_PERSISTENT_HPP
