// SPDX-License-Identifier: BSD-3-Clause
/**
 * mpix: MPI-4 partitioned communication, triggered from inside GPU kernels.
 *
 * Host interface. Including this header gives `mpi.h`, the MPI-4 partitioned calls under their standard names (also
 * where the MPI library's own `mpi.h` lacks them, as Open MPI 4.1's does), and our extensions under `MPIX_`. Section
 * numbers are those of MPI-4.1.
 *
 * An *epoch* of a request begins with a start, by the host or in a kernel, and ends when it is waited for. An *activation*
 * is what lies between MPI_Start and the completion of the request: one epoch or several.
 *
 * Errors. All functions but MPIX_Progress return MPI_SUCCESS or an MPI error class (MPI_ERR_*), raised through an error
 * handler. MPI_Error_string() of the class gives, in the thread that saw the error, a sentence that names the argument.
 * The sentence is valid until the library's next error in that thread; on an MPI library whose error codes are the
 * classes (Open MPI), until the next error of a call that mpix sees.
 *
 * Which error handler. That of the argument `comm`, or of the request's communicator (in an array, of the request that
 * the error is about; of a freed communicator, the handler that it had last). That of MPI_COMM_WORLD if there is
 * neither: for a null request, for a request that is not partitioned, and in MPIX_Typemap_create and MPIX_Typemap_free.
 *
 * Lack of memory. Any call may return MPI_ERR_NO_MEM. It then has had no effect, and may be repeated.
 *
 * Thread safety. As the MPI standard says of the calls. Any number of threads may call MPI_Pready* and MPI_Parrived at
 * the same time on one request, for distinct partitions, without a lock, if the program has asked for
 * MPI_THREAD_MULTIPLE (or for MPI_THREAD_SERIALIZED, and one thread calls at a time). With MPI_THREAD_SINGLE, which is
 * what MPI_Init asks for, a call from a second thread is erroneous and may lose a partition; with MPIX_CHECK=1 in the
 * environment it gives MPI_ERR_OTHER, and so does any other call that mpix interposes. Any number of threads may also
 * make MPIX_ calls: MPIX_Prequest_create and MPIX_Prequest_free for distinct requests, MPIX_Pbuf_prepare* and
 * MPIX_Request_path also for one request, as long as no thread completes or frees it.
 *
 * Thread level. MPI_Init_thread and MPI_Query_thread report the level that the program asked for, or less if the
 * library has less. If all processes of the job run on one node (as the launcher's environment says), or with
 * MPIX_PROGRESS=never, the MPI library gets just that level, and no thread of mpix calls it. Between nodes, and where
 * MPIX_TRANSPORTS excludes shm, the library gets MPI_THREAD_MULTIPLE, and a thread of mpix calls it from the first
 * partitioned request on. So the library may run a callback of the program in that thread, such as the MPI_Op of a
 * nonblocking reduction, whatever level the program asked for.
 *
 * Memory order. The program's writes to a partition before it marks the partition ready are visible to a reader, at
 * the receiver, that has learnt from MPI_Parrived, a completion call, or a call in a kernel that it has arrived.
 */
#ifndef MPIX_MPIX_H
#define MPIX_MPIX_H

#include <mpi.h>

#define MPIX_VERSION_MAJOR 0
#define MPIX_VERSION_MINOR 1
#define MPIX_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- MPI-4.1 chapter 4, partitioned point-to-point communication ------------------------------
 *
 * Declared here where the MPI library's mpi.h does not declare them itself, as it does from MPI-4 on; and that of
 * Open MPI 5, which calls itself MPI-3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define MPIX_LIBRARY_IS_PARTITIONED 1
#else
#define MPIX_LIBRARY_IS_PARTITIONED 0

/**
 * Make an inactive, persistent, partitioned send (MPI-4.1, 4.2.1). Local; nothing is sent.
 *
 * buf         start of the send buffer, in host memory or, where a GPU transport is built in, in device memory. It may
 *             be null if it holds no bytes. The caller owns it, and must not touch a partition between marking it ready
 *             and completing the request
 * partitions  number of partitions, at least 0. With 0, `count` does not matter, no bytes move, the send completes without
 *             MPI_Pready, and MPIX_Prequest_create returns MPI_ERR_REQUEST
 * count       elements of `datatype` in each partition, at least 0; partition i begins i * count extents of `datatype`
 *             behind `buf`
 * datatype    committed; may be freed at once
 * dest, tag   as in MPI_Send; dest may be MPI_PROC_NULL
 * comm        may be freed at once
 * info        unknown keys are ignored
 * request     receives the handle; MPI_Request_free releases it
 *
 * Matches one MPI_Precv_init of process `dest` with the same tag and communicator, in the order of the init calls. The
 * two sides may differ in partitions, count and datatype. The total size in bytes must agree; otherwise the receiver's
 * completion call gives MPI_ERR_TRUNCATE, and no byte moves. A request that is freed before it was ever started keeps
 * its place in that order for a while (docs/conformance.md).
 *
 * Errors: MPI_ERR_ARG (partitions < 0), MPI_ERR_COUNT (count < 0, or more than 2^60 bytes in all), MPI_ERR_TYPE,
 * MPI_ERR_RANK, MPI_ERR_TAG, MPI_ERR_COMM, MPI_ERR_BUFFER (a null buffer with bytes in it, or memory that mpix cannot
 * use), MPI_ERR_REQUEST (null `request`), MPI_ERR_OTHER (mpix did not see MPI_Init).
 * Thread safety: any number of threads; requests of concurrent calls match in any order.
 */
int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);

/**
 * Make an inactive, persistent, partitioned receive (MPI-4.1, 4.2.1). As MPI_Psend_init, except for:
 *
 * buf          memory of the host, or of a GPU, of any kind; what is not from cudaMalloc, or not in one allocation, costs
 *              a copy if the sender is on the same node (docs/limitations.md, "Buffers"). The caller owns it, and must
 *              not touch it between starting and completing the request, except for reading a partition that has arrived
 *              (MPI_Parrived; in kernels mpix::parrived, mpix::wait_arrived)
 * source, tag  wildcards are erroneous (MPI_ERR_RANK, MPI_ERR_TAG); source may be MPI_PROC_NULL
 */
int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);

/**
 * Mark one partition of an active partitioned send ready: its bytes may move from now on (MPI-4.1, 4.2.1). Never waits
 * for the receiver.
 *
 * partition  from 0 to partitions - 1
 * request    an active partitioned send
 *
 * Errors: MPI_ERR_ARG (index out of range, or already ready in this epoch), MPI_ERR_REQUEST (not an active partitioned
 * send).
 * Thread safety: with MPI_THREAD_MULTIPLE any number of threads, for distinct partitions, without a lock.
 * Memory order: release. The calling thread's earlier writes to the partition are visible to a reader that sees it
 * arrive.
 */
int MPI_Pready(int partition, MPI_Request request);

/**
 * MPI_Pready for every partition from `partition_low` to `partition_high`, both included (MPI-4.1, 4.2.1).
 *
 * Errors: as MPI_Pready. If the range is empty or out of bounds, no partition becomes ready (MPI_ERR_ARG); otherwise
 * those before the first error stay ready. Thread safety and memory order: as MPI_Pready.
 */
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request);

/**
 * MPI_Pready for each of the `length` partitions in the list, in this order (MPI-4.1, 4.2.1).
 *
 * Errors: as MPI_Pready, and MPI_ERR_ARG (a negative length, a null list). Partitions before the first error stay
 * ready.
 * Thread safety and memory order: as MPI_Pready.
 */
int MPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request);

/**
 * Ask whether one partition of a partitioned receive has arrived (MPI-4.1, 4.2.2). Makes progress; does not complete
 * the request, and may be repeated.
 *
 * request    a partitioned receive; a null or inactive request gives *flag = 1
 * partition  from 0 to partitions - 1
 * flag       receives 1 once this partition's own data is in the receive buffer, else 0
 *
 * Errors: MPI_ERR_ARG (index out of range, null `flag`), MPI_ERR_REQUEST (not a partitioned receive), and what a
 * completion call would report of a receive that cannot complete: MPI_ERR_TRUNCATE (the two sides differ in size), a
 * pair without a path, a peer that has ended. Then *flag is 1 as well, so that a loop over it ends, but the buffer does
 * not hold the data; the completion call reports the error again.
 * Thread safety: any number of threads.
 * Memory order: acquire. With *flag = 1 the calling thread may read the partition's bytes.
 */
int MPI_Parrived(MPI_Request request, int partition, int *flag);

#endif /* MPIX_LIBRARY_IS_PARTITIONED */

/* ---- Device requests (MPI Forum hybrid working group: CUDA bindings, J. Dinan) ----------------- */

/** What a kernel holds of a partitioned request: a typed handle, passed to kernels by value. */
typedef struct mpix_prequest *MPIX_Prequest;
#define MPIX_PREQUEST_NULL ((MPIX_Prequest)0)

/**
 * Export a partitioned request that is not started, for use inside kernels. Never waits for the peer.
 *
 * request  an inactive partitioned request; exported at most once at a time. Starting it starts the exported copy
 * info     the keys below, or MPI_INFO_NULL; unknown keys are ignored, rank 0 warns of those that begin with "mpix_"
 * preq     receives the handle; MPIX_Prequest_free releases it
 *
 * The handle is valid in kernels on one device, the one that owns the request's buffer. If the buffer is host memory
 * and no GPU is involved, host threads use the handle with the same device functions (see <mpix/host_group.hpp>).
 *
 * Info keys:
 *   "mpix_device"        ordinal of that device, or "host"; any other is refused
 *   "mpix_contributors"  how many mpix::pready_contribute calls make one partition ready (default 1); shares need none
 *   "mpix_waiters"       "1" or "any" (default). Of a receive, "1" is a promise that makes small partitions between
 *                        GPUs faster: in each epoch, one group alone calls parrived or wait_arrived for a partition
 *                        (or wait or next_epoch of the request, which ask for all of them) until it is told that the
 *                        partition is there. Others ask for it, and read it, only after a synchronisation with that
 *                        group (a barrier of the grid, a flag of the program, the end of the kernel). That the host
 *                        has completed the request says that the partitions have come; reading them outside that
 *                        group needs the same synchronisation.
 *
 * Errors: MPI_ERR_REQUEST (not a partitioned request, one of 0 partitions, active, or exported already), MPI_ERR_BUFFER
 * (the device cannot reach the buffer), MPI_ERR_INFO_VALUE, MPI_ERR_ARG (null `preq`). `*preq` is set only with success.
 * Thread safety: any number of threads, for distinct requests.
 */
int MPIX_Prequest_create(MPI_Request request, MPI_Info info, MPIX_Prequest *preq);

/**
 * Destroy an exported handle, and set it to MPIX_PREQUEST_NULL. Does nothing for a null handle. May wait for running
 * kernels, if it is the last handle for a GPU in this process.
 *
 * preq  a handle whose request is inactive, and that no kernel still uses
 *
 * MPI_Request_free of an exported request is an error (MPI_ERR_REQUEST) until its handle has been freed.
 *
 * Errors: MPI_ERR_ARG (null `preq`), MPI_ERR_REQUEST (not an exported handle, or its request is active). Also returns
 * an error that a kernel has left behind (see <mpix/device.cuh>); the handle is freed all the same.
 * Thread safety: any number of threads, for distinct requests.
 */
int MPIX_Prequest_free(MPIX_Prequest *preq);

/**
 * Of an active send: return when the receiver has started the same epoch, so that every later MPI_Pready of the epoch
 * is a one-sided write, and none is deferred. Of an active receive: return when the matching send has been found. Apart
 * from the completion calls, this call and MPIX_Pbuf_prepare_all are the only ones that may wait for the peer.
 *
 * Errors: MPI_ERR_REQUEST (not a started partitioned request), MPI_ERR_PENDING (after MPIX_STALL_SECONDS, with a stall
 * report), and what a completion call would report of a peer that has ended.
 * Thread safety: any number of threads, also on one request, as long as no thread completes or frees it.
 */
int MPIX_Pbuf_prepare(MPI_Request request);

/**
 * MPIX_Pbuf_prepare for `count` requests, in any order of the peers' arrival.
 * Errors: as MPIX_Pbuf_prepare, and MPI_ERR_ARG (a negative count, a null array). Thread safety: as MPIX_Pbuf_prepare.
 */
int MPIX_Pbuf_prepare_all(int count, MPI_Request array_of_requests[]);

/**
 * Get the transport of the path that a matched request's bytes take, as a word: "shm", "cuda_ipc", "ucx", "verbs", "null" for
 * MPI_PROC_NULL, or "unmatched" while the peer is not known yet.
 *
 * path  room for `size` bytes, owned by the caller; the word is cut to fit, and always terminated
 * size  in bytes, at least 1
 *
 * Errors: MPI_ERR_REQUEST (not a partitioned request), MPI_ERR_ARG (null `path`, or size < 1).
 * Thread safety: any number of threads, also on one request, as long as no thread frees it.
 */
int MPIX_Request_path(MPI_Request request, char *path, int size);

/**
 * Make progress on partitioned requests, as every MPI call does that mpix sees.
 *
 * Returns 1 if only such calls make progress (for example with MPIX_PROGRESS=never): a thread that waits for something
 * else, such as host threads that run a kernel's code, then calls this repeatedly. Returns 0, and does nothing, if the
 * progress thread makes progress, or if the calling thread may not call MPI. There are no errors.
 * Thread safety: any number of threads.
 */
int MPIX_Progress(void);

/* A cudaStream_t, without CUDA's headers. */
struct CUstream_st;

/* ---- Epochs in the order of a CUDA stream ------------------------------------------------------
 *
 * MPI_Start, MPI_Pready and MPI_Wait in the order of a CUDA stream, for programs whose kernels know nothing of MPI.
 * Each call launches one small kernel of the library and returns, without waiting for the peer or for the stream.
 * The host takes no part in what the stream does, so the calls can be captured in a CUDA graph, which then runs the
 * epochs any number of times.
 *
 *     MPIX_Prequest_create(...);                // once, for each request
 *     MPI_Startall(2, requests);                // opens the activation
 *     for (...) {                               // or once, captured in a graph that is launched many times
 *         MPIX_Startall_enqueue(2, requests, stream);
 *         ...                                   // kernels that write the send buffer
 *         MPIX_Pready_enqueue(0, requests[0], stream);
 *         MPIX_Pwaitall_enqueue(2, requests, stream);
 *         ...                                   // kernels that read the receive buffer
 *     }
 *     cudaStreamSynchronize(stream);
 *     MPI_Waitall(2, requests, statuses);       // ends the activation; raises the errors of all epochs
 *
 * Activation. To the host all of that is one activation, as with epochs that kernels run (<mpix/device.cuh>, "Epochs
 * without the host"). It begins with the host's MPI_Start, which starts the first epoch as well: while this one runs,
 * MPIX_Start_enqueue has nothing to do, and after it each starts the next epoch. The activation ends with a completion
 * call of the host, which must not come before the stream has run what was enqueued (cudaStreamSynchronize); the status
 * is that of the last epoch. A graph can be launched again after another MPI_Start. Epochs of the stream, of kernels,
 * and of the host alone may take turns; within an activation they must be ordered.
 *
 * request   partitioned, exported to a GPU by MPIX_Prequest_create. Enqueued kernels use it until they have run, and
 *           those of a graph whenever the graph runs; so MPIX_Prequest_free comes after that
 * stream    a cudaStream_t of that GPU, of any kind, and capturing or not. Null is the legacy default stream, also in
 *           programs that are compiled for per-thread default streams: these pass cudaStreamPerThread
 *
 * Deadlocks. A wait in a stream delays what comes later in that stream; in the legacy default stream also what comes
 * later in all streams that synchronise with it. So enqueue what the peer waits for first, as with MPI_Wait. A waiting
 * kernel is one block of 512 threads; see docs/limitations.md for what must find room beside it.
 *
 * Errors, returned by the call: MPI_ERR_REQUEST (null, or not a partitioned request; not exported to a GPU; a receive
 * where a send is needed; of a start or Pready, not started by the host, unless the stream is being captured),
 * MPI_ERR_ARG (see below), MPI_ERR_OTHER (CUDA's, such as a stream of another device; mpix was built without nvcc).
 * Nothing is enqueued then, except that a launch may fail behind those of the first 126 requests of a list.
 * Errors in the stream are kept with the request, and raised by the host's completion call, as errors of the device
 * functions start, pready_range and wait: MPI_ERR_REQUEST (a start before the epoch was waited for; a request that is
 * not active), MPI_ERR_ARG (a partition that is ready already), MPI_ERR_PENDING (a wait took MPIX_STALL_SECONDS; later
 * ones for the same epoch do not wait again), and what a completion call reports of a peer that has ended. The stream
 * goes on after an error.
 * Thread safety: any number of threads. Memory order: that of the stream; MPIX_Pready_enqueue releases what earlier
 * work of the stream has written, and work after MPIX_Pwait_enqueue may read what has arrived.
 */

/** MPI_Start (MPI-4.1, 3.9) in the order of a stream; never waits for the peer. See above. */
int MPIX_Start_enqueue(MPI_Request request, struct CUstream_st *stream);

/**
 * MPIX_Start_enqueue for `count` requests, which are exported to one GPU, by one kernel (for each 126 of them).
 * Errors: as above, and MPI_ERR_ARG (a negative count, a null array), MPI_ERR_REQUEST (different GPUs, or the same
 * request twice).
 */
int MPIX_Startall_enqueue(int count, const MPI_Request array_of_requests[], struct CUstream_st *stream);

/**
 * MPI_Pready (MPI-4.1, 4.2.1) in the order of a stream: the partition is ready when the work before has ended. Its
 * bytes are moved as by pready of a block of 512 threads, or of pready_typed if the datatype has gaps
 * (<mpix/device.cuh>).
 *
 * partition  from 0 to partitions - 1; any other is MPI_ERR_ARG
 */
int MPIX_Pready_enqueue(int partition, MPI_Request request, struct CUstream_st *stream);

/** The same for `partition_low` to `partition_high`, both included, by one kernel. MPI_ERR_ARG if that is no range. */
int MPIX_Pready_range_enqueue(int partition_low, int partition_high, MPI_Request request, struct CUstream_st *stream);

/**
 * MPI_Wait (MPI-4.1, 3.7.3) in the order of a stream: work after it begins when the epoch of the request is over. Does
 * nothing for a null request, and for one whose epoch is over. Of a receive exported with "mpix_waiters" as "1", it
 * must come after the waits of the program's kernels, in the order of the stream.
 *
 * MPIX_Wait_enqueue is another name for it, and MPIX_Waitall_enqueue for the next one, except on MPI libraries that
 * have other functions of these names (MPICH 4.1 and later).
 */
int MPIX_Pwait_enqueue(MPI_Request request, struct CUstream_st *stream);

/**
 * MPIX_Pwait_enqueue for `count` requests, which are exported to one GPU, by one kernel (for each 126 of them). Null
 * requests are allowed. Errors: as for MPIX_Startall_enqueue.
 */
int MPIX_Pwaitall_enqueue(int count, const MPI_Request array_of_requests[], struct CUstream_st *stream);

#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION < 40100000
#define MPIX_Wait_enqueue MPIX_Pwait_enqueue
#define MPIX_Waitall_enqueue MPIX_Pwaitall_enqueue
#endif

/* ---- Packing of GPU memory --------------------------------------------------------------------- */

/**
 * MPI_Pack (MPI-4.1, 5.2) in the order of a CUDA stream. The call returns at once; the bytes are packed after the work
 * that is already in `stream`, and before work that comes later.
 *
 * inbuf     the elements, in GPU memory
 * incount   number of elements; any number
 * datatype  may be freed at once, unless the stream is being captured: then it must outlive the graph
 * outbuf    the packed bytes: memory of that GPU, of another one, or of the host
 * outsize   size of outbuf in bytes
 * position  offset into outbuf in bytes; advanced when the call returns, and unchanged by an error
 * comm      whose error handler is used
 * stream    a cudaStream_t of inbuf's device
 *
 * Neither buffer may be touched otherwise until the stream has got there.
 *
 * Errors: MPI_ERR_COMM, MPI_ERR_COUNT (negative, or too many bytes to count), MPI_ERR_TYPE, MPI_ERR_ARG (a negative
 * size or position), MPI_ERR_TRUNCATE (the bytes do not fit between position and outsize), MPI_ERR_BUFFER (`inbuf` is
 * not GPU memory, or outbuf is null), MPI_ERR_OTHER (the GPU's). An error of the GPU while it packs is an error of the
 * stream.
 * Thread safety: any number of threads.
 * Memory order: that of the stream.
 */
int MPIX_Pack_enqueue(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
                      MPI_Count *position, MPI_Comm comm, struct CUstream_st *stream);

/**
 * MPI_Unpack (MPI-4.1, 5.2) in the order of a CUDA stream, into `outcount` elements in GPU memory at `outbuf`, from
 * `insize` bytes at `inbuf`. Otherwise as MPIX_Pack_enqueue; MPI_ERR_TRUNCATE if the bytes are not there before
 * `insize`.
 */
int MPIX_Unpack_enqueue(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                        MPI_Datatype datatype, MPI_Comm comm, struct CUstream_st *stream);

/* ---- Datatypes inside kernels ------------------------------------------------------------------ */

/** What a kernel holds of a datatype, for mpix::pack_tile and mpix::unpack_tile of <mpix/device.cuh>. */
typedef const struct mpix_typemap *MPIX_Typemap;
#define MPIX_TYPEMAP_NULL ((MPIX_Typemap)0)
/** As a device: host threads use the map. */
#define MPIX_ON_HOST (-1)

/**
 * Make `datatype` usable in kernels on one device. Waits for no kernel.
 *
 * datatype  committed, of at least one byte; may be freed afterwards
 * device    a CUDA ordinal, or MPIX_ON_HOST
 * map       receives the handle; MPIX_Typemap_free releases it
 *
 * Errors, through the handler of MPI_COMM_WORLD: MPI_ERR_TYPE (a type of no bytes, or one that mpix cannot read),
 * MPI_ERR_ARG (no such device; null `map`), MPI_ERR_OTHER (the GPU's).
 * Thread safety: any number of threads.
 */
int MPIX_Typemap_create(MPI_Datatype datatype, int device, MPIX_Typemap *map);

/**
 * Destroy a map, and set it to MPIX_TYPEMAP_NULL. No kernel may still use it. Does nothing for a null map.
 * Errors, through the handler of MPI_COMM_WORLD: MPI_ERR_ARG (null pointer, or not a map that exists). Thread safety:
 * any number of threads, for distinct maps.
 */
int MPIX_Typemap_free(MPIX_Typemap *map);

#ifdef __cplusplus
}
#endif

#endif /* MPIX_MPIX_H */
