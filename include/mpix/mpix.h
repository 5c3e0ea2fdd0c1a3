// SPDX-License-Identifier: BSD-3-Clause
/**
 * mpix: MPI-4 partitioned communication, triggered from inside GPU kernels.
 *
 * Host interface. Including this header gives `mpi.h`, the MPI-4 partitioned calls under their
 * standard names (also where the MPI library's own `mpi.h` lacks them, as Open MPI 4.1's does), and
 * our extensions under `MPIX_`.
 *
 * All functions return MPI error classes (MPI_SUCCESS or one of MPI_ERR_*), raised through an error
 * handler; MPI_Error_string() of the returned class gives, in the thread that saw the error, a sentence
 * that names the argument. The library's next error ends that, but where its codes are the classes (Open
 * MPI) only one from a call that mpix sees. Whose handler: that of the call's argument `comm`, or of the
 * communicator of its request (of an array the request that the error is about; of a communicator that has
 * been freed the handler that it had last); that of MPI_COMM_WORLD where there is neither, as with a null
 * request, with what is not a partitioned request, and in MPIX_Typemap_create and MPIX_Typemap_free.
 *
 * Thread safety: as the MPI standard says of the calls. MPI_Pready* and MPI_Parrived may be called by
 * any number of threads at once on one request, for distinct partitions, without a lock, if the program has asked for
 * MPI_THREAD_MULTIPLE (or for MPI_THREAD_SERIALIZED, and one calls at a time): with MPI_THREAD_SINGLE, which MPI_Init is, a
 * call from a second thread is erroneous and may lose a partition. With MPIX_CHECK=1 in the environment such a call, and every other
 * one that mpix interposes, gives MPI_ERR_OTHER; so it does with MPI_THREAD_FUNNELED. The MPIX_ calls may
 * be made by any number of threads at once too: MPIX_Prequest_create and MPIX_Prequest_free for distinct
 * requests, MPIX_Pbuf_prepare* and MPIX_Request_path also for one, as long as nobody completes or frees it.
 *
 * Thread level: MPI_Query_thread() and MPI_Init_thread() report the level that the program asked for, or less where
 * the library has less. If all processes of the job run on one node (as the launcher's environment says), or with
 * MPIX_PROGRESS=never, the MPI library gets just that level, and no thread of mpix's calls it. Between nodes, and where
 * MPIX_TRANSPORTS leaves shm out, the library gets MPI_THREAD_MULTIPLE, and from the first partitioned request on a
 * thread of mpix's calls it: the library may run a callback of the program's in that thread, as the MPI_Op of a
 * nonblocking reduction, whatever level the program asked for.
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
 * Make an inactive, persistent, partitioned send. Local; nothing is sent.
 *
 * `buf` holds `partitions` x `count` elements of `datatype`; partition i starts at element i*count
 * (the type's extent, not its size, is the stride). The buffer may be host memory or, where a GPU
 * transport is built in, device memory; it belongs to the caller, who must not touch
 * a partition between marking it ready and completing the request.
 *
 * Matches one MPI_Precv_init of the process `dest` with the same tag and communicator, in the order of
 * the init calls. The two sides may differ in partitions, count and datatype; the total size in bytes
 * must agree, otherwise the receiver's completion call gives MPI_ERR_TRUNCATE.
 *
 * Errors: MPI_ERR_ARG (partitions < 1), MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_RANK, MPI_ERR_TAG,
 * MPI_ERR_COMM, MPI_ERR_BUFFER (a null buffer with bytes in it, or memory that mpix cannot use), MPI_ERR_REQUEST (null `request`),
 * MPI_ERR_NO_MEM.
 */
int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);

/**
 * Make an inactive, persistent, partitioned receive. As MPI_Psend_init; wildcards are erroneous.
 *
 * A buffer on a GPU must come from cudaMalloc if the sender is on the same node, otherwise MPI_ERR_BUFFER.
 * The buffer belongs to the caller, who must not touch it between starting and completing the request, but
 * for reading a partition that has arrived (MPI_Parrived, or in kernels mpix::parrived and mpix::wait_arrived).
 */
int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);

/**
 * Mark one partition of an active partitioned send ready: its bytes may move from now on.
 * Never waits for the receiver. Memory order: the calling thread's earlier writes to the partition are
 * visible to whoever sees it arrive. Errors: MPI_ERR_ARG (index out of range, or already ready in this
 * epoch), MPI_ERR_REQUEST (not an active partitioned send).
 */
int MPI_Pready(int partition, MPI_Request request);

/**
 * MPI_Pready for every partition from `partition_low` to `partition_high`, both included. Errors: as
 * MPI_Pready; of a wrong range none becomes ready, otherwise those before the first error stay ready.
 */
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request);

/**
 * MPI_Pready for each of the `length` partitions listed, in this order. Errors: as MPI_Pready, and MPI_ERR_ARG (a
 * negative length, a null list); those before the first error stay ready.
 */
int MPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request);

/**
 * Ask whether one partition of a partitioned receive has arrived; `*flag` is 1 as soon as this
 * partition's own data is in the receive buffer, and 1 for a null or inactive request. Makes progress;
 * does not complete the request. Memory order: with *flag = 1 the partition's bytes may be read.
 * Errors: MPI_ERR_ARG (index), MPI_ERR_REQUEST (not a partitioned receive).
 */
int MPI_Parrived(MPI_Request request, int partition, int *flag);

#endif /* MPIX_LIBRARY_IS_PARTITIONED */

/* ---- Device requests (MPI Forum hybrid working group: CUDA bindings, J. Dinan) ----------------- */

/** What a kernel holds of a partitioned request: a typed handle, passed to kernels by value. */
typedef struct mpix_prequest *MPIX_Prequest;
#define MPIX_PREQUEST_NULL ((MPIX_Prequest)0)

/**
 * Export a non-started partitioned request for use inside kernels.
 *
 * The handle is valid in kernels on one device, the one that owns the request's buffer. Where the buffer
 * is host memory and no GPU is involved, host threads use the handle with the same device functions (see
 * <mpix/host_group.hpp>). Starting the request starts the exported copy; a request is exported at most
 * once at a time. Never waits for the peer.
 *
 * Info keys: "mpix_device" = that device's ordinal, or "host" (any other is refused);
 * "mpix_contributors" = how many mpix::pready_contribute calls make one partition ready (default 1; shares need none).
 * "mpix_waiters" = "1": of a receive, a promise that makes small partitions between GPUs faster (default "any"). In each epoch one
 * group alone calls parrived or wait_arrived for a partition until it is told that the partition is there; others ask, and read it,
 * only behind a synchronisation with that group (a barrier of the grid, a flag of the user's, the end of the kernel). Completion of
 * the request on the host says that the partitions have come; what reads them outside that group needs the same synchronisation.
 * Unknown keys are ignored; rank 0 warns of those that begin with "mpix_".
 *
 * Errors: MPI_ERR_REQUEST (not a partitioned request, active, or exported already), MPI_ERR_BUFFER (the
 * device cannot reach the buffer), MPI_ERR_INFO_VALUE, MPI_ERR_ARG (null `preq`).
 */
int MPIX_Prequest_create(MPI_Request request, MPI_Info info, MPIX_Prequest *preq);

/**
 * Destroy an exported handle and set it to MPIX_PREQUEST_NULL. The request must be inactive and no
 * kernel may still use the handle. Freeing a null handle does nothing. MPI_Request_free of an exported
 * request is an error (MPI_ERR_REQUEST) until its handle has been freed. Also returns an error that a kernel has left behind
 * (see <mpix/device.cuh>); the handle is freed all the same.
 */
int MPIX_Prequest_free(MPIX_Prequest *preq);

/**
 * Return when the receiver of the active partitioned send `request` has started the same epoch, so
 * that every MPI_Pready from here on is a one-sided write that nothing defers. On an active receive:
 * returns when the matching send has been found. This call may wait for the peer; it is the only one
 * of ours, besides the completion calls, that does. Errors: MPI_ERR_REQUEST; MPI_ERR_PENDING after
 * MPIX_STALL_SECONDS, with a stall report.
 */
int MPIX_Pbuf_prepare(MPI_Request request);

/** MPIX_Pbuf_prepare for `count` requests, in any order of the peers' arrival. */
int MPIX_Pbuf_prepare_all(int count, MPI_Request array_of_requests[]);

/**
 * The path that a matched request's bytes take, as a word ("shm", "cuda_ipc", "ucx", "verbs", "null" for
 * MPI_PROC_NULL, "unmatched" while the peer is not known yet). `path` points to `size` bytes owned by
 * the caller; the name is cut to fit and always terminated. Errors: MPI_ERR_REQUEST, MPI_ERR_ARG.
 */
int MPIX_Request_path(MPI_Request request, char *path, int size);

/**
 * Make progress on partitioned requests, as every MPI call does that mpix sees. Returns 1 if only such calls make progress
 * (MPIX_PROGRESS=never, say): a thread that waits for something else, such as for host threads that run a kernel's code, then
 * calls this repeatedly. Returns 0, and does nothing, if the progress thread makes progress, or if the calling thread may not
 * call MPI.
 */
int MPIX_Progress(void);

/* ---- Packing of GPU memory --------------------------------------------------------------------- */

/* A cudaStream_t, without CUDA's headers. */
struct CUstream_st;

/**
 * MPI_Pack in the order of a CUDA stream: the call returns at once, the bytes are packed after the work that is in
 * `stream` already and before what comes later. Any number of elements and bytes.
 *
 * `inbuf` is GPU memory; `stream` belongs to its device. `outbuf`, of `outsize` bytes, may be memory of that GPU, of
 * another one, or of the host. `*position` (bytes) is advanced when the call returns. Neither buffer may be touched
 * otherwise until the stream has got there. The datatype may be freed at once, unless the stream is being captured:
 * then it must outlive the graph.
 *
 * Errors: as MPI_Pack, and MPI_ERR_BUFFER (`inbuf` is not GPU memory). An error of the GPU while it runs is the
 * stream's. Thread safety: as MPI_Pack.
 */
int MPIX_Pack_enqueue(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
                      MPI_Count *position, MPI_Comm comm, struct CUstream_st *stream);

/** MPI_Unpack in the order of a CUDA stream, into GPU memory at `outbuf`. As MPIX_Pack_enqueue. */
int MPIX_Unpack_enqueue(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                        MPI_Datatype datatype, MPI_Comm comm, struct CUstream_st *stream);

/* ---- Datatypes inside kernels ------------------------------------------------------------------ */

/** What a kernel holds of a datatype, for mpix::pack_tile and mpix::unpack_tile of <mpix/device.cuh>. */
typedef const struct mpix_typemap *MPIX_Typemap;
#define MPIX_TYPEMAP_NULL ((MPIX_Typemap)0)
/** As a device: host threads use the map. */
#define MPIX_ON_HOST (-1)

/**
 * Make `datatype` usable in kernels on one device: a CUDA ordinal, or MPIX_ON_HOST. The datatype may be freed
 * afterwards. Waits for no kernel.
 *
 * Errors, through the handler of MPI_COMM_WORLD: MPI_ERR_TYPE (a type of no bytes, or one that mpix cannot read),
 * MPI_ERR_ARG (no such device; null `map`), MPI_ERR_OTHER (the GPU's).
 */
int MPIX_Typemap_create(MPI_Datatype datatype, int device, MPIX_Typemap *map);

/** Destroy a map and set it to MPIX_TYPEMAP_NULL. No kernel may still use it. Freeing a null map does nothing. */
int MPIX_Typemap_free(MPIX_Typemap *map);

#ifdef __cplusplus
}
#endif

#endif /* MPIX_MPIX_H */
