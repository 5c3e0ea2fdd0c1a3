// SPDX-License-Identifier: BSD-3-Clause
//
// Halo exchanges inside kernels: a kernel sends a tile's cells as soon as it has computed them, waits for the ghost
// cells that a tile reads, and goes on to the next step, without the host. Like <mpix/device.cuh> it compiles for host
// threads, too (<mpix/host_group.hpp>).
//
//     #include <mpix/halo.hpp>  // kernel_exchange
//     mpix::halo::kernel_exchange h(g, {mpix::halo::double_buffered(u, v)}, {.tile = {32, 8, 8}});   // on the host
//     mpix::launch_cooperative(run, blocks, threads, 0, stream, h.start(steps), ...);   // all blocks are resident
//     cudaStreamSynchronize(stream);
//     h.finish();
//
//     __global__ void run(mpix::halo::device_exchange x, ...) {
//         auto block = cooperative_groups::this_thread_block();
//         const int blocks = gridDim.x;
//         for (int t = blockIdx.x; t < x.tiles(); t += blocks) mpix::halo::send(block, x, t, 0);
//         for (int step = 0; step < x.steps(); ++step) {
//             mpix::halo::sync_blocks(block, x, blocks);
//             if (blockIdx.x == 0 && step > 0) mpix::halo::next(block, x, step - 1);
//             for (int t = blockIdx.x; t < x.tiles(); t += blocks) {
//                 mpix::halo::wait(block, x, t, step);
//                 ... compute x.tile(t) from x.data<double>(0, step) to x.data<double>(0, step + 1) ...
//                 mpix::halo::send(block, x, t, step + 1);
//             }
//         }
//     }
//
// Words. Exchange `step`, from 0, fills the ghost cells that step `step` of the stencil reads. A *tile* is a part of
// one of the rank's boxes; exchanges and computations are divided by tiles.
//
// Order. The program ensures this order, by sync_blocks() or a barrier of its own:
//   - send(tile, step) comes after the tile's cells of that exchange have been written, by any threads that are
//     ordered before the group's;
//   - a barrier of all groups lies between the last send(., step) and the first wait(., step). (Tiles read each other's
//     cells, so a stencil needs it anyway);
//   - the cells that an exchange sends are not written before all wait(., step) have returned. With two allocations
//     this is so by itself;
//   - the ghost cells of an exchange have been read before a later one, of the same allocation, is waited for;
//   - next(step) comes after all send(., step) and wait(., step) have returned, by one group.
// Each tile is sent and waited for once in each exchange, by one group each, unless boxes are waited for. Only a wait that
// has ended by its own timeout_ns, with MPI_ERR_PENDING, is repeated; that is no failure.
//
// Arguments are not checked: `tile` is 0 to x.tiles() - 1, and `step` at least 0.
//
// Groups, errors and thread safety are those of <mpix/device.cuh>. After a call has failed, later ones that
// have something to do return MPI_ERR_OTHER. In a kernel that was compiled with the headers of another mpix, calls return
// MPI_ERR_REQUEST and do nothing, unless both have the same MPIX_ABI_VERSION. All groups that wait must be resident together.
#ifndef MPIX_HALO_CUH
#define MPIX_HALO_CUH

// First, to report a compiler that is set to an older C++.
#include <mpix/detail/cxx20.h>

#include <mpix/device.cuh>
#include <mpix/halo/device_exchange.hpp>

namespace mpix::halo {

/**
 * Send what the neighbours need of a tile's cells for exchange `step`: copies it into messages, and marks their
 * partitions ready. Does not wait for neighbours, beyond what mpix::pready does; waits for next(step - sets) of this
 * rank. Does nothing if there is no such exchange (step >= steps()), or nobody needs cells of the tile.
 *
 * Returns MPI_SUCCESS, or what mpix::pready does; MPI_ERR_OTHER if a call has failed before.
 *
 * Memory order: the group is synchronised first, and so the call covers what any of its threads has written.
 */
template <class Group>
MPIX_FN int send(const Group &group, const device_exchange &x, int tile, std::int64_t step);

/**
 * Wait until the ghost cells that a tile reads are there, and put them into the field. Ghost cells that several tiles
 * read are put there by the first group that finds them arrived; the others wait for it.
 *
 * timeout_ns  as of mpix::wait_arrived, for each partition; also for next(step - sets) of this rank, and for other groups
 *             that fill shared ghost cells
 *
 * Returns MPI_SUCCESS, or what mpix::wait_arrived does; MPI_ERR_OTHER if a call has failed before.
 *
 * Memory order: with MPI_SUCCESS, every thread of the group may read those ghost cells.
 */
template <class Group>
MPIX_FN int wait(const Group &group, const device_exchange &x, int tile, std::int64_t step,
                 std::uint64_t timeout_ns = default_timeout);

/**
 * The same for the ghost cells that a box of cells reads: wait for the neighbours' cells that lie, in each of the box's
 * 26 directions, within the radius of a field. For computations that are not divided by tiles, such as the cells beside
 * one side of the rank's box. The exchange was made with kernel_exchange_options::box_waits. The call looks at all that the
 * rank receives, for each box: that of a tile is faster.
 *
 * cells       in global indices, of one of this rank's boxes; none is success. Several waits of an exchange may have cells
 *             in common, and tiles may be waited for as well. All together cover the rank's boxes: each of its cells is in
 *             a tile, or a box, that is waited for.
 * timeout_ns  as above
 *
 * Returns as above; MPI_ERR_ARG without box_waits, which is a failure of the exchange.
 *
 * Memory order: as above.
 */
template <class Group>
MPIX_FN int wait(const Group &group, const device_exchange &x, const box &cells, std::int64_t step,
                 std::uint64_t timeout_ns = default_timeout);

/**
 * A tile, and what calls on it would have to look up in each step. For groups that have the same tile in each step of a
 * kernel. It is in the shared memory of the group's block, some six kilobytes; on the host, where all threads of the group
 * share it. The group fills it by prepare(), and alone uses it, until the kernel ends. cells() and number() are of the tile.
 */
struct prepared_tile;

/**
 * Fills `prepared`, for any tile of the exchange: once in an activation, whose steps are all in one kernel, and before the
 * tile's first send. It takes some microseconds.
 */
template <class Group>
MPIX_FN void prepare(const Group &group, const device_exchange &x, int tile, prepared_tile &prepared);

/** As send() of the tile. It is waited for by the sync_blocks() that takes it, or by wait() of its number. */
template <class Group>
MPIX_FN int send(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step);

/**
 * End exchange `step`: wait until its messages have arrived, and its send buffers are free. Then exchange step + sets
 * begins, for send() and wait() of all groups. Does nothing if there is no such exchange. One group calls it for a step;
 * different groups may call it for different steps, also at the same time. It takes some microseconds: of a kernel with many
 * blocks, one that has no tiles should call it.
 *
 * timeout_ns  as of mpix::next_epoch
 *
 * Returns MPI_SUCCESS, or what mpix::next_epoch does; MPI_ERR_OTHER if a call has failed before.
 */
template <class Group>
MPIX_FN int next(const Group &group, const device_exchange &x, std::int64_t step,
                 std::uint64_t timeout_ns = default_timeout);

/**
 * The next() of exchanges `first`, first + stride, and so on, by a group that has nothing else to do. It is for a kernel
 * that has all steps of the activation, and in which `groups` other groups have exactly one sync_blocks() in each step,
 * before the step's waits, as above, and no other: the call counts them to find the barrier behind an exchange. It does not
 * take part in it. A group takes some microseconds for each exchange, so where steps are shorter several groups take them
 * in turn, for instance run_next(group, x, groups, 0, 2) and run_next(group, x, groups, 1, 2). All exchanges that need it
 * must be among those of some group.
 *
 * Returns as next(), after the last one, or the first that has failed; MPI_ERR_PENDING if it waits for a
 * barrier longer than MPIX_STALL_SECONDS, which is a failure of the exchange.
 */
template <class Group>
MPIX_FN int run_next(const Group &group, const device_exchange &x, int groups, int first, int stride);

/**
 * Waits until `groups` groups have called it: all groups of this rank that use `x`, but those in run_next(); the same
 * number in all calls of an activation. Then each may read what any thread of them has written before. It returns nothing:
 * look at what wait() returns. After a call of any group has failed it does not wait, nor in a kernel that was compiled
 * with the headers of another mpix, nor on a rank without tiles. Waiting longer than MPIX_STALL_SECONDS is a failure
 * itself.
 */
template <class Group>
MPIX_FN void sync_blocks(const Group &group, const device_exchange &x, int groups);

/**
 * As sync_blocks(), and then as wait() of these prepared tiles for exchange `step`. It takes less time: what comes from
 * neighbours is put into ghost cells while the group waits for the other groups. Meanwhile the call claims the partitions
 * that each tile sends in exchange step + 1, if they may be stored; then send() only stores them. So a tile that is given
 * to this call is sent by its prepared_tile, and each group gives the same ones in each step.
 *
 * groups  as of sync_blocks(): in each step, groups come either to that or to this one
 * tiles   `count` of them, in memory of the group; 0 is allowed
 * step    The groups come to exactly one barrier in each step, before the step's waits, and to no other: in all steps of the
 *         activation, from 0 on.
 *
 * Returns as wait(). After a call of another group has failed, the next send may still return MPI_SUCCESS.
 *
 * Memory order: as sync_blocks(), and as wait() if it returns MPI_SUCCESS. The wait may come before other groups have done the
 * step before; so fields have two allocations, or else the wait comes behind the barrier by itself.
 */
template <class Group>
MPIX_FN int sync_blocks(const Group &group, const device_exchange &x, int groups, prepared_tile *tiles, int count,
                        std::int64_t step);

}  // namespace mpix::halo

#include <mpix/impl/halo/copy.cuh>

#include <mpix/impl/halo/exchange.cuh>
#include <mpix/impl/halo/prepared_tile.cuh>
#include <mpix/impl/halo/steps.cuh>

#endif  // MPIX_HALO_CUH
