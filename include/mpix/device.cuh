// SPDX-License-Identifier: BSD-3-Clause
//
// mpix inside kernels. Everything here is inline and works in CUDA kernels (compute capability 7.0 and later; CUDA 13
// compiles for 7.5 and later only). It also compiles for the host, where std::threads play blocks and warps
// (<mpix/host_group.hpp>). Section numbers are those of MPI-4.1; the MPI Forum's hybrid working group proposes the
// calls.
//
// Groups. All threads of `group` call a function with the same other arguments, and it works for the group as one
// caller. A group is
//   - mpix::this_thread(): the calling thread alone,
//   - a cooperative_groups::thread_block_tile<1..32> or coalesced_group: a warp or a part of one,
//   - a cooperative_groups::thread_block: the whole block,
//   - a mpix::host_group: host threads that play one of these.
// The functions without a group are the MPI Forum's bindings, for one thread.
//
// Common parameters.
//   preq       handle from MPIX_Prequest_create, valid on this device
//   partition  from 0 to the request's partitions - 1
// An epoch begins with a start, by the host or in a kernel, and ends when it is waited for; an activation is what lies
// between MPI_Start and the completion of the request, one epoch or several. A kernel always acts on the epoch that the
// host has started, or that a kernel has started since (start, next_epoch); nothing needs to be told to it.
//
// Errors. Every function but parrived, prepare_* and follow_epoch returns MPI_SUCCESS (0) or an MPI error class, the
// same for all threads of the group. The first error of an epoch is also kept with the request, and the host's
// MPI_Wait raises it with the call, the partition and the reason when it completes the request; with MPI_ERR_PENDING,
// and the request still active, if that cannot be completed (docs/troubleshooting.md, "An erroneous call in a
// kernel"). An error on an inactive request is raised by the host's next call on it; if that is MPI_Start, nothing is
// started. An error on a null request is only returned. Ranges and lists stop at the first error, and partitions
// before it stay ready. If a range is empty or goes beyond the partitions (MPI_ERR_ARG), nothing becomes ready.
//
//   MPI_ERR_ARG      an index or a range beyond the partitions; a partition that is already ready; a list of negative
//                    length, a null list or flag; a share that ends beyond the partition, or has more bytes than are
//                    left
//   MPI_ERR_REQUEST  a null or inactive request; a send where the call takes receives, or the reverse; a handle of
//                    another version of mpix
//   MPI_ERR_PENDING  wait_arrived, wait, next_epoch: timed out
//
// parrived and MPI_Parrived answer true for null and inactive requests, as in MPI; wait_arrived returns MPI_SUCCESS at
// once for a null one.
//
// Thread safety. Any number of groups may call these functions on one request at the same time, pready* for distinct
// partitions.
//
// Memory order. pready* releases the group's earlier writes to the partition; parrived with true, and wait_arrived with
// MPI_SUCCESS, acquire them for all threads of the calling group.
#ifndef MPIX_DEVICE_CUH
#define MPIX_DEVICE_CUH

// First, to report a compiler that is set to an older C++.
#include <mpix/detail/cxx20.h>

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>
#include <mpix/mpix.h>

namespace mpix {

// wait_arrived's default timeout: the deadline that the host configured (MPIX_STALL_SECONDS).
inline constexpr uint64_t default_timeout = ~uint64_t{0};

// The calling thread as a group.
struct thread_group;
MPIX_FN thread_group this_thread();

/**
 * Mark `partition` of an active send ready (MPI-4.1, 4.2.1): its bytes move now or, if the receiver has not started the
 * epoch yet, as soon as it has. Does not wait for the receiver's host. In an epoch that a kernel has started it waits up
 * to 8 us for the receiver's clear-to-send. All threads of `group` help to move the data.
 *
 * Returns MPI_ERR_ARG (index out of range, or already ready in this epoch), MPI_ERR_REQUEST (null or inactive request,
 * or a receive). On a GPU, a call for a partition that is already ready may move its bytes once more before it finds
 * out.
 *
 * Memory order: the group is synchronised first, so the call covers writes that any of its threads made to the
 * partition. When it returns, every thread may go on. The buffer may be written again only after the host has completed
 * the request.
 *
 * How the bytes move. Small partitions between GPUs go by the receiver's inline buffer (MPIX_INLINE_BYTES). They are in
 * its receive buffer when its kernels have asked for them, or its host has completed the epoch; for the latter, the
 * library may need room on the GPU for a kernel of its own, beside the kernels that run.
 *
 * A large partition that few threads mark ready may be left to the progress engine (MPIX_ENGINE_BYTES), or to a group
 * of the receiver that is in wait_arrived for it and reads it (MPIX_RGET_BYTES). MPI_Wait of the send then returns
 * after the copy, or the reading. The engine moves what that group has not read by its deadline.
 *
 * If the datatype has gaps, here or at the receiver, and the partition does not go inline, a GPU's group leaves it to
 * the progress engine, which packs it with a kernel of its own; see pready_typed. A send with gaps never goes inline.
 */
template <class Group>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq);

/**
 * Shared memory of a block, lent to pready for bulk asynchronous copies (cp.async.bulk): with 8192 bytes, a thread
 * sends partitions of 256 bytes to 64 KiB that way; 4 and 8 KiB take 18 to 28 % of the time of its own stores (two
 * H200). Declare it `__shared__ mpix::bulk_buffer<8192> buffer;`. It needs no initialisation. A call uses it until it
 * returns, so only one group at a time may pass it, after a barrier of the groups that share it.
 *
 * Bytes  1024 or more, a multiple of 512. Partitions of up to 8 times as many, and up to 64 KiB, are copied that way,
 *        whatever MPIX_ENGINE_BYTES and MPIX_RGET_BYTES are; from the second epoch on.
 */
template <unsigned Bytes>
struct bulk_buffer;

/**
 * As pready, for a thread, or a group of up to 32. The leader has the hardware copy the partition, through `shared`, if
 * the partition has at least 256 bytes, or for several threads 1 KiB for each, consists of 16-byte blocks that are
 * aligned on both sides, has no gaps, and the peer GPU is mapped. Otherwise, on GPUs before compute capability 9.0, and
 * in host threads, the same as pready without `shared`.
 *
 * Returns what pready does. Memory order as pready; what the caller did with `shared` before the call comes before the
 * copies, and it may be used for anything else afterwards.
 */
template <class Group, unsigned Bytes>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq, bulk_buffer<Bytes> &shared);

/**
 * As pready, but the threads of a GPU's group move partitions with gaps themselves, from where the bytes lie here to
 * where they belong at the receiver, in one pass; small ones inline, whatever their gaps. It has a name of its own
 * because its code takes registers (about 100, against 50 of pready), whether a request has gaps or not. Both may be
 * used on one request.
 */
template <class Group>
MPIX_FN int pready_typed(const Group &group, int partition, MPIX_Prequest preq);

/**
 * pready for `low` to `high`, both included (MPI-4.1, 4.2.1). Stops at the first error. In a work queue, neighbouring
 * partitions share entries: one write for the bytes of all, and one for every three arrival flags behind it.
 *
 * Returns what pready does, and MPI_ERR_ARG for a range that is empty or goes beyond the partitions.
 */
template <class Group>
MPIX_FN int pready_range(const Group &group, int low, int high, MPIX_Prequest preq);

/**
 * One of several contributions to a partition that many groups write. The last of the declared number of calls (info
 * key "mpix_contributors" of MPIX_Prequest_create) makes the partition ready. Every epoch takes exactly the declared
 * number of calls for each partition; another number is not detected as such. (Kernels compiled with MPIX_CHECK refuse
 * calls for a partition that is ready, and do not count them.)
 *
 * Returns MPI_ERR_ARG (index out of range) or MPI_ERR_REQUEST (null request, or a receive) to every caller. The last
 * caller gets what else pready finds (inactive request, partition already ready), and the others MPI_SUCCESS.
 *
 * Memory order: contributions are chained by acquire-release at device scope, so the last call releases the writes of
 * all.
 */
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq);

/**
 * One of several shares of a partition that many groups write: its packed bytes [begin, begin + bytes), which this
 * group's threads have written. A GPU's group moves them now, beside the others, if they may be stored at the receiver.
 * The group that brings the last of the partition's bytes makes it ready. Nothing has to be declared: shares may be of
 * any number and size, in any order, by any groups. The shares of an epoch must not overlap, and together they are the
 * partition.
 *
 * begin, bytes  in bytes of the packed partition. A share of 0 bytes may come at any time, also after the others have
 *               ended the epoch: only its arguments are checked. A partition of 0 bytes is ready with the first share
 *               of an epoch, and further ones do nothing.
 *
 * If a group could not store its share (the receiver has not started the epoch, the peer's buffer is not mapped here,
 * or the datatype has gaps; host threads leave it to the last), the whole partition is moved when the last share has
 * come: on a GPU by the progress engine or by a work queue; by the last group of host threads as pready does.
 *
 * Returns what pready does, to every caller. Also MPI_ERR_ARG for a share that ends beyond the partition, of which
 * nothing is moved; and for a share with which more bytes have come than the partition has: the partition is then
 * ready, whatever is missing of it, and a share may have been moved before it was refused. Overlapping shares that have
 * as many bytes together as the partition are not detected. If an epoch has shares of a partition and also a pready of
 * it, or the declared number of calls without shares, the call that comes when the partition is ready gets MPI_ERR_ARG.
 *
 * Memory order: as pready, for each share; the last group releases the bytes of all.
 */
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq, uint64_t begin, uint64_t bytes);

/**
 * Tell whether `partition` of a receive has arrived (MPI-4.1, 4.2.2); does not wait. The answer is the same for all
 * threads of the group, and true for a null or inactive request. An erroneous call (index out of range, a send) answers
 * false, and keeps the error with the request.
 *
 * Memory order: with true, every thread of the group may read the partition's bytes.
 */
template <class Group>
MPIX_FN bool parrived(const Group &group, MPIX_Prequest preq, int partition);

/**
 * Wait until `partition` of a receive has arrived.
 *
 * timeout_ns  in nanoseconds, unsigned; 0 asks once; default_timeout is MPIX_STALL_SECONDS, and for ever if that is 0
 *
 * Returns MPI_SUCCESS, at once for a null request; MPI_ERR_PENDING if `timeout_ns` nanoseconds went by first;
 * MPI_ERR_REQUEST for a request that was not started (see below); or the error that parrived would have kept. Running
 * out of the default timeout is kept with the request as an error; running out of an explicit one is not.
 *
 * The host may complete an epoch before a kernel makes its last waits; these return MPI_SUCCESS at once. So a kernel
 * cannot always tell a late wait from a forgotten MPI_Start. On a GPU, a wait on an inactive request is an error only
 * if the request was never started; in host threads, also if the thread that completed the last epoch launched them
 * afterwards. (pready of an inactive send is always an error, and parrived answers true.) In kernels compiled with
 * MPIX_CHECK, it is an error in every launch except the first that looked for the last epoch; so if several kernels
 * wait for one receive in an epoch, they must end before the host completes it.
 *
 * All blocks that wait must be co-resident with those that they depend on, here or at the peer; otherwise the kernels
 * deadlock.
 *
 * Memory order: with MPI_SUCCESS, every thread of the group may read the partition's bytes. The partitions of a receive
 * that cannot complete (the peer has ended, or the sizes differ) count as arrived; the host's completion call fails
 * then.
 */
template <class Group>
MPIX_FN int wait_arrived(const Group &group, MPIX_Prequest preq, int partition, uint64_t timeout_ns = default_timeout);

/**
 * An epoch handle: what a group knows of the running epoch of a send or a receive, cached in registers. Calls with it
 * save an access to memory of about 0.3 us, which pready otherwise makes before it stores, while the peer waits. All
 * threads of a group call prepare_* before the urgent part, once per epoch and kernel, unless next_epoch or follow_epoch
 * advances the handle; on the host MPIX_Pbuf_prepare has the same purpose.
 *
 * prepare_* may read the host's memory, which takes some microseconds. It does not wait for the peer. If it finds
 * nothing that calls could use (the first epoch, a receiver that has not started, host threads, an erroneous request),
 * calls with its value fall back to the overload that takes a request, and return what that returns. pready_typed,
 * pready_range and pready_contribute take requests only.
 *
 * A value may be copied to other groups of the kernel; their calls must be ordered after prepare_* (by a barrier, for
 * example). Do not use a value in a later epoch than its own, unless next_epoch or follow_epoch has advanced it. With a
 * value of an older epoch, parrived answers true and wait_arrived returns MPI_SUCCESS at once, although the running
 * epoch's bytes may be missing; pready returns MPI_ERR_ARG, but may first have overwritten a large partition at the
 * receiver. In kernels compiled
 * with MPIX_CHECK, all calls with such a value are refused before they do anything: pready and wait_arrived return
 * MPI_ERR_ARG, and parrived answers false.
 *
 * Errors, memory order and thread safety are those of the calls with the request.
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
 * Epochs without the host. After the host's MPI_Start, kernels may end the running epoch of a request and start the
 * next one, any number of times. To the host that is one activation: its MPI_Wait completes the last epoch, at
 * once if a kernel has waited for it. Its status is the last epoch's; of errors in several epochs it raises the last
 * epoch's, with the epoch's number.
 *
 * wait        MPI_Wait of the running epoch (MPI-4.1, 3.7.3 and 4.2): of a send, until all its partitions are ready and
 *             the buffer may be written again; of a receive, until all partitions have arrived. MPI_SUCCESS at once for
 *             a null request, and for one whose epoch is over. In kernels compiled with MPIX_CHECK, MPI_ERR_REQUEST for
 *             one that the host has not started, or has completed before a kernel's wait, unless a kernel has ended its
 *             last epoch.
 * start       MPI_Start of the next epoch, after wait. Never waits for the peer. A receive's buffer may be written by
 *             the sender from then on.
 * next_epoch  wait, then start
 *
 * requests    `n` sends and receives, in any memory that the group can read; null requests are allowed for wait. The
 *             threads of the group look at them side by side.
 * timeout_ns  as for wait_arrived, for each partition that has to be waited for. The epoch goes on after a timeout, and
 *             a later wait lasts as long again: so a kernel of many epochs looks at what the calls return.
 *
 * Returns MPI_SUCCESS; MPI_ERR_ARG for a list of negative length or a null list; MPI_ERR_PENDING as wait_arrived does;
 * MPI_ERR_REQUEST from start if wait was not called for the running epoch, if the request is null, or if the host has not
 * started it. Of a list, requests before and after the erroneous one may have been started.
 *
 * One group at a time calls wait or start for a request; another one does so behind a barrier of the first, whose
 * threads may return at different times. Other groups that use the request come after start by a barrier of the grid,
 * or any other acquire-release chain; and start comes after their last use of the epoch before.
 * The host's completion calls on the request (MPI_Wait, MPI_Test and so on) must not come before the last kernel's last
 * call has returned in all threads of its group: they would end the activation between two epochs.
 *
 * A partition of a send that is marked ready before the receiver has started the epoch is left to the progress engine,
 * as in epochs of the host. Between GPUs, pready first waits up to 8 us for the receiver's kernel.
 *
 * Memory order. wait acquires, for all threads of the group, what wait_arrived of all partitions does. start releases
 * to the sender that the group, and what is ordered before it, has read the receive buffer.
 */
template <class Group>
MPIX_FN int wait(const Group &group, MPIX_Prequest preq, uint64_t timeout_ns = default_timeout);
template <class Group>
MPIX_FN int wait(const Group &group, int n, const MPIX_Prequest requests[], uint64_t timeout_ns = default_timeout);
template <class Group>
MPIX_FN int start(const Group &group, MPIX_Prequest preq);
template <class Group>
MPIX_FN int start(const Group &group, int n, const MPIX_Prequest requests[]);
template <class Group>
MPIX_FN int next_epoch(const Group &group, MPIX_Prequest preq, uint64_t timeout_ns = default_timeout);
template <class Group>
MPIX_FN int next_epoch(const Group &group, int n, const MPIX_Prequest requests[],
                       uint64_t timeout_ns = default_timeout);
/**
 * The same for the requests of epoch handles, which then belong to the new epoch. The call with two costs less than two
 * calls, and is as one with a list: nothing is started unless both epochs are over.
 */
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_send &send, uint64_t timeout_ns = default_timeout);
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_receive &receive, uint64_t timeout_ns = default_timeout);
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_send &send, prepared_receive &receive,
                       uint64_t timeout_ns = default_timeout);
/**
 * Advances an epoch handle by `epochs` epochs that another group has started; next_epoch advances its own group's values.
 * Changes the value only: no memory access, no barrier. Each thread with a copy calls it; of a copy in shared memory one
 * thread does, between two barriers. The start must happen before the calls that use the value (see above).
 *
 * A handle for which prepare_* found nothing stays without effect: calls with it are correct, but no faster than with the
 * request. So does a send's, from then on, if the receiver's kernels cannot give clear-to-send to this GPU. prepare_* may
 * be called again at any time.
 */
MPIX_FN void follow_epoch(prepared_send &send, uint64_t epochs = 1);
MPIX_FN void follow_epoch(prepared_receive &receive, uint64_t epochs = 1);

/**
 * Pack an interval of the packed form of a sequence of elements: any interval of what MPI_Pack would produce, also from
 * the middle of a run to the middle of another. All threads of `group` share the work. Groups may pack neighbouring
 * intervals at the same time.
 *
 * type    a map for this device, from MPIX_Typemap_create
 * buffer  the first element, in memory that the group can access
 * begin   where the interval begins, in bytes of the packed form
 * bytes   its length in bytes
 * packed  receives packed byte `begin` and those that follow
 *
 * Returns MPI_ERR_TYPE (null map, or one of another version of mpix) or MPI_ERR_ARG (a negative number).
 * Memory order: no barrier. The group synchronises before the call if its threads wrote the elements, and after it
 * before one thread reads what another has packed.
 */
template <class Group>
MPIX_FN int pack_tile(const Group &group, MPIX_Typemap type, const void *buffer, int64_t begin, int64_t bytes,
                      void *packed);

/** Unpack an interval of the packed form into elements, as pack_tile. The elements of the type must not overlap. */
template <class Group>
MPIX_FN int unpack_tile(const Group &group, MPIX_Typemap type, void *buffer, int64_t begin, int64_t bytes,
                        const void *packed);

}  // namespace mpix

// The MPI Forum's device bindings, for one thread, in both argument orders that the proposals show. They do, return and
// order what the functions above do for mpix::this_thread(). In addition, MPI_Pready_list returns MPI_ERR_ARG for a
// negative length or a null list; MPI_Parrived returns MPI_ERR_ARG for a null flag, and also the errors that parrived
// only keeps.
MPIX_FN int MPI_Pready(int partition, MPIX_Prequest preq);
MPIX_FN int MPI_Pready(MPIX_Prequest preq, int partition);
MPIX_FN int MPI_Pready_range(int low, int high, MPIX_Prequest preq);
MPIX_FN int MPI_Pready_list(int length, const int partitions[], MPIX_Prequest preq);
MPIX_FN int MPI_Parrived(MPIX_Prequest preq, int partition, int *flag);

#include <mpix/impl/group/group.cuh>

#include <mpix/impl/group/copy.cuh>

#include <mpix/impl/pack/pack.cuh>

#include <mpix/impl/send/pready.cuh>

#include <mpix/impl/send/bulk.cuh>

#include <mpix/impl/send/pready_range.cuh>

#include <mpix/impl/send/pready_contribute.cuh>

#include <mpix/impl/recv/parrived.cuh>

#include <mpix/impl/recv/wait_arrived.cuh>

#include <mpix/impl/kernel_epoch/wait.cuh>

#include <mpix/impl/kernel_epoch/start.cuh>

#include <mpix/impl/handle/epoch_handle.cuh>

#endif  // MPIX_DEVICE_CUH
