// SPDX-License-Identifier: BSD-3-Clause
//
// mpix inside kernels. Everything here is inline, works in CUDA kernels (compute capability 7.0 and
// later; CUDA 13 compiles for 7.5 and later only), and compiles for the host as well, where std::threads
// play blocks and warps (<mpix/host_group.hpp>).
//
// Groups. A function with a `group` argument is called by all threads of that group with the same
// other arguments, and works for the group as one caller. A group is
//   - mpix::this_thread(): the calling thread alone,
//   - a cooperative_groups::thread_block_tile<1..32> or coalesced_group: a warp or a part of one,
//   - a cooperative_groups::thread_block: the whole block,
//   - a mpix::host_group: host threads playing one of these.
// The functions without a group are the MPI Forum's bindings, for one thread.
//
// Errors. Every function but parrived and prepare_* returns an MPI error class (MPI_SUCCESS = 0), the same for all threads of the
// group. The first error of an epoch is also kept with the request, and the host's MPI_Wait raises it with the call, the
// partition and the reason. An error on an inactive request is raised by the host's next call on it; if that is MPI_Start,
// nothing is started. An error on a null request is only returned. Ranges and lists stop at the first error: what comes
// before stays ready. Of a range that is empty or goes beyond the partitions (MPI_ERR_ARG) nothing becomes ready.
//
//   MPI_ERR_ARG      an index or a range beyond the partitions; a partition that is ready already; a list of negative length,
//                    a null list or flag; a share that ends beyond the partition, or of more bytes than are left of it
//   MPI_ERR_REQUEST  a null or inactive request; a send where the call takes receives, or the reverse; a handle of another
//                    version of mpix
//   MPI_ERR_PENDING  wait_arrived: timed out
//
// parrived and MPI_Parrived answer true for null and inactive requests, as in MPI; wait_arrived succeeds at once for a null one.
//
// Epochs. A kernel always acts on the epoch that the host has started; nothing has to be told to it.
#ifndef MPIX_DEVICE_CUH
#define MPIX_DEVICE_CUH

// First, to report a compiler that is set to an older C++.
#include <mpix/detail/cxx20.h>

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>
#include <mpix/mpix.h>

namespace mpix {

// wait_arrived's default: the deadline that the host configured (MPIX_STALL_SECONDS).
inline constexpr uint64_t default_timeout = ~uint64_t{0};

// The calling thread as a group.
struct thread_group;
MPIX_FN thread_group this_thread();

/**
 * Mark `partition` ready: its bytes move now, or, if the receiver has not started the epoch yet, as
 * soon as it has. Never waits for the receiver. All threads of `group` help to move the data.
 *
 * Memory order: the group is synchronised first, so writes that any of its threads made to the
 * partition before the call are covered. When the call returns, every thread may go on; the buffer may
 * be written again only after the host completed the request.
 *
 * Returns MPI_ERR_ARG (index out of range, or ready already in this epoch), MPI_ERR_REQUEST (null or
 * inactive request, or a receive). On a GPU a call for a partition that is ready already may move its bytes
 * once more before it finds out.
 *
 * Small partitions between GPUs go by the receiver's mailbox (MPIX_INLINE_BYTES), and in its buffer they are when its kernels
 * have asked for them, or its host has completed the epoch; for the latter the library may need room on the GPU beside the
 * kernels that run, for a kernel of its own.
 *
 * A large partition that few threads make ready may be left to the progress engine (MPIX_ENGINE_BYTES), or to a group of the
 * receiver's that is in wait_arrived for it and reads it (MPIX_PULL_BYTES). MPI_Wait of the send then ends behind the copy, or the
 * reading; what that group has not read by its deadline the engine moves.
 *
 * Where the datatype has gaps, here or at the receiver, and the partition does not go by a mailbox, a GPU's group leaves it to
 * the progress engine, which packs it with a kernel of its own; see pready_typed. What has gaps here goes by no mailbox.
 */
template <class Group>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq);

/**
 * The same, but the threads of a GPU's group move all partitions with gaps, from where the bytes lie here to where they
 * belong at the receiver, in one pass; small ones by the mailbox, whatever their gaps. A name of its own because the code takes
 * registers (about 100, of which pready takes 50), whether a request has gaps or not. Both may be used on one request.
 */
template <class Group>
MPIX_FN int pready_typed(const Group &group, int partition, MPIX_Prequest preq);

/**
 * pready for `low` to `high`, both included. Stops at the first error. Where partitions go by a work queue, neighbours share
 * their entries: one write for the bytes of all, and one for each three arrival flags behind it.
 */
template <class Group>
MPIX_FN int pready_range(const Group &group, int low, int high, MPIX_Prequest preq);

/**
 * One of several contributions to a partition that many groups write: the last of the declared number of
 * callers ("mpix_contributors" at MPIX_Prequest_create) makes it ready. Contributions are chained by
 * acquire-release at device scope, so the last caller releases all callers' writes. Every epoch takes
 * exactly the declared number of calls per partition; a different number is not noticed as such.
 *
 * Returns MPI_ERR_ARG (index out of range) or MPI_ERR_REQUEST (null request, or a receive) to every caller. What
 * else pready finds (inactive request, partition ready already) the last one gets, and the others MPI_SUCCESS.
 */
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq);

/**
 * One of several shares of a partition that many groups write: packed bytes [begin, begin + bytes) of it, which this group's
 * threads have written. A GPU's group moves them now, beside the others, if they may be stored at the receiver; who brings
 * the last of the partition's bytes makes it ready. Nothing has to be declared: shares may be of any number and size, in any
 * order, by any groups. Those of an epoch must not overlap, and together are the partition.
 *
 * If any share could not be stored by its group (the receiver has not started the epoch, the peer's buffer is not mapped here,
 * or the datatype has gaps; host threads leave it to the last), all of the partition is moved when the last share has come: of
 * a GPU by the progress engine, or by a work queue; by the last group of host threads as pready does.
 *
 * Memory order: as pready, for each share, and the last group releases the bytes of all.
 *
 * A share of 0 bytes may come at any time, also when the others have ended the epoch: only its arguments are looked at. A
 * partition of 0 bytes is ready with the first share of an epoch, and further ones do nothing.
 *
 * Returns what pready does, to every caller, and MPI_ERR_ARG also for a share that ends beyond the partition, of which nothing
 * is moved, and for one with which more bytes came than the partition has: then the partition is ready, whatever is missing
 * of it, and a share may have been moved before it was refused. Shares that overlap, but have as many bytes together as the
 * partition, are not noticed. Of an epoch's shares and a pready of the same partition, or the declared number of calls without
 * shares, who comes when it is ready gets MPI_ERR_ARG.
 */
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq, uint64_t begin, uint64_t bytes);

/**
 * Whether `partition` of a receive has arrived; the same answer for all threads of the group. True for a
 * null or inactive request. With true, the partition's bytes may be read by every thread of the group.
 * An erroneous call (index out of range, a send) answers false and keeps the error with the request.
 */
template <class Group>
MPIX_FN bool parrived(const Group &group, MPIX_Prequest preq, int partition);

/**
 * Wait until `partition` has arrived. Returns MPI_SUCCESS, at once for a null request; MPI_ERR_PENDING when `timeout_ns`
 * nanoseconds went by first (0 asks once); MPI_ERR_REQUEST for a request that was not started (see below); or the error that
 * parrived would have kept.
 * Running out of the default timeout is kept with the request as an error; of an explicit one, not. With
 * MPIX_STALL_SECONDS=0 the default is to wait for ever.
 *
 * The host may complete an epoch before a kernel makes its last waits; these return MPI_SUCCESS at once. So a kernel cannot
 * always tell a late wait from a forgotten MPI_Start. On a GPU a wait on an inactive request is an error only if the request was
 * never started; in host threads also if the thread that completed the last epoch launched them afterwards. (pready of an
 * inactive send is always an error, and parrived answers true.) In kernels compiled with MPIX_CHECK it is an error in every
 * launch except the first that looked for the last epoch; so if several kernels wait for one receive in an epoch, they must
 * end before the host completes it.
 *
 * All blocks that wait must be resident together with those that they depend on, here or at the peer: a block
 * that waits keeps its place, and one that has none yet marks nothing ready.
 */
template <class Group>
MPIX_FN int wait_arrived(const Group &group, MPIX_Prequest preq, int partition, uint64_t timeout_ns = default_timeout);

/**
 * What a group knows of the running epoch of a send or a receive, in registers: calls with it save a trip to memory of about
 * 0.3 us, which pready otherwise makes before it stores, and the peer waits for. As MPIX_Pbuf_prepare on the host, to be called ahead
 * of what is urgent, by all threads of a group, once an epoch and kernel. It may read the host's memory, some microseconds, and never
 * waits for the peer. Where it finds nothing that calls could use (the first epoch, a receiver that has not started, host
 * threads, an erroneous request) they do, and return, what calls with the request do. pready_typed, pready_range and
 * pready_contribute take requests only.
 *
 * A value may be copied to other groups of the kernel; their calls must be ordered behind prepare_* (by a barrier, say). Memory order
 * and errors are those of the calls with the request. After the epoch for which it was prepared a value must not be used: pready
 * with it returns MPI_ERR_ARG, but by then it may have stored over a small partition of the next epoch, which then never arrives.
 */
struct prepared_send;
struct prepared_receive;
template <class Group>
MPIX_FN prepared_send prepare_send(const Group &group, MPIX_Prequest preq);
template <class Group>
MPIX_FN prepared_receive prepare_receive(const Group &group, MPIX_Prequest preq);
template <class Group>
MPIX_FN int pready(const Group &group, int partition, const prepared_send &send);
template <class Group>
MPIX_FN bool parrived(const Group &group, const prepared_receive &receive, int partition);
template <class Group>
MPIX_FN int wait_arrived(const Group &group, const prepared_receive &receive, int partition,
                         uint64_t timeout_ns = default_timeout);

/**
 * Pack `bytes` bytes, from packed byte `begin` on, of a sequence of elements at `buffer`, to `packed`: any interval of
 * what MPI_Pack would produce, also from the middle of a run to the middle of another. All threads of `group` share the
 * work. No barrier: the group synchronises before the call if its threads wrote the elements, and after it before one
 * thread reads what another has packed. Groups may pack neighbouring intervals at the same time.
 *
 * Returns MPI_ERR_TYPE (null map, or one of another version of mpix) or MPI_ERR_ARG (a negative number).
 */
template <class Group>
MPIX_FN int pack_tile(const Group &group, MPIX_Typemap type, const void *buffer, int64_t begin, int64_t bytes,
                      void *packed);

/** The way back, as pack_tile. The elements of the type must not overlap. */
template <class Group>
MPIX_FN int unpack_tile(const Group &group, MPIX_Typemap type, void *buffer, int64_t begin, int64_t bytes,
                        const void *packed);

}  // namespace mpix

// The MPI Forum's device bindings, for one thread. Both argument orders that the proposals show are
// there. Errors and memory order as above; and MPI_ERR_ARG from MPI_Pready_list for a negative length or a
// null list, from MPI_Parrived for a null flag. What parrived only keeps MPI_Parrived returns as well.
MPIX_FN int MPI_Pready(int partition, MPIX_Prequest preq);
MPIX_FN int MPI_Pready(MPIX_Prequest preq, int partition);
MPIX_FN int MPI_Pready_range(int low, int high, MPIX_Prequest preq);
MPIX_FN int MPI_Pready_list(int length, const int partitions[], MPIX_Prequest preq);
MPIX_FN int MPI_Parrived(MPIX_Prequest preq, int partition, int *flag);

#include <mpix/device/group.cuh>

#include <mpix/device/copy.cuh>

#include <mpix/device/pack.cuh>

#include <mpix/device/ready.cuh>

#include <mpix/device/ready_range.cuh>

#include <mpix/device/contribute.cuh>

#include <mpix/device/arrived.cuh>

#include <mpix/device/prepared.cuh>

#endif  // MPIX_DEVICE_CUH
