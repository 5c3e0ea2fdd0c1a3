/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * Halo exchange by kernels, in C, for fields in GPU memory. There are two kinds: by the library's kernels, in the order
 * of a stream (MPIX_Halo_stream_create), and by the program's own kernels, which are C++ (MPIX_Halo_kernel_create).
 * Both take fields in host memory, too, so that a program can be tried without a GPU. Errors, handles and thread safety
 * are as in <mpix/halo.h>.
 */
#ifndef MPIX_HALO_GPU_H
#define MPIX_HALO_GPU_H

#include <mpix/halo.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mpix_halo_stream_exchange *MPIX_Halo_stream_exchange;
typedef struct mpix_halo_kernel_exchange *MPIX_Halo_kernel_exchange;
#define MPIX_HALO_STREAM_EXCHANGE_NULL ((MPIX_Halo_stream_exchange)0)
#define MPIX_HALO_KERNEL_EXCHANGE_NULL ((MPIX_Halo_kernel_exchange)0)

/* ---- the exchange in the order of a CUDA stream ------------------------------------------------
 *
 * As mpix::halo::stream_exchange: for fields in the memory of one GPU. MPIX_Halo_stream_start and _finish enqueue a
 * kernel each, and return at once; all ranks run as many exchanges. Fields in host memory are taken to try a program
 * without a GPU: the stream is null then, and both do their part before they return. */

/** Zeros are the defaults: MPIX_Halo_stream_options options = {0}. */
typedef struct MPIX_Halo_stream_options {
    int64_t tile[3]; /* the cells along each axis that one block packs or unpacks; 0: chosen */
    /* Not 0: store into the ghost cells of neighbours on this node where that is possible, in place of packing (as
       `direct` of mpix::halo::stream_exchange_options). May differ between ranks. */
    int direct;
} MPIX_Halo_stream_options;

/**
 * Collective over the grid's ranks, which give the same tile, and waits for all neighbours.
 *
 * count, fields  at least one; otherwise as of MPIX_Halo_exchange_create; all in memory of one GPU, or of the host
 * options        may be null
 * exchange       receives the handle; MPIX_HALO_STREAM_EXCHANGE_NULL if the call fails
 *
 * Errors: as of MPIX_Halo_exchange_create; MPI_ERR_ARG (options), MPI_ERR_BUFFER (fields in different places),
 * MPI_ERR_NO_MEM, MPI_ERR_OTHER (GPU memory, and mpix was built without nvcc), MPI_ERR_PENDING (after
 * MPIX_STALL_SECONDS).
 */
int MPIX_Halo_stream_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[],
                            const MPIX_Halo_stream_options *options, MPIX_Halo_stream_exchange *exchange);
/** Wait for the device and, collectively, for the neighbours; free the exchange, and set the handle to
    MPIX_HALO_STREAM_EXCHANGE_NULL. Does nothing for a null handle. After a failure neighbours may still write the ghost
    cells of the fields, so these stay allocated. Errors: as of MPIX_Halo_exchange_free. */
int MPIX_Halo_stream_free(MPIX_Halo_stream_exchange *exchange);

/** Enqueue: send what the neighbours need, and copy own cells; wait for the neighbours, and fill the other ghost cells;
    or both in one call. As start(), finish() and run() of mpix::halo::stream_exchange. They can be captured in a CUDA
    graph.

    stream  a cudaStream_t of the fields' device, of any kind; null is the legacy default stream

    Errors: MPI_ERR_ARG (a null exchange, as in all functions below; the stream), MPI_ERR_REQUEST (it is started
    already, or not; it has failed), MPI_ERR_OTHER (CUDA's); of fields in host memory, also what MPIX_Halo_stream_check
    returns. */
int MPIX_Halo_stream_start(MPIX_Halo_stream_exchange exchange, struct CUstream_st *stream);
int MPIX_Halo_stream_finish(MPIX_Halo_stream_exchange exchange, struct CUstream_st *stream);
int MPIX_Halo_stream_run(MPIX_Halo_stream_exchange exchange, struct CUstream_st *stream);
/** The error of a kernel of this exchange, if one has failed, or of a neighbour whose process has ended, after which
    the ghost cells may be old; call it when the stream has been synchronised. Errors: MPI_ERR_PENDING (no data
    within MPIX_STALL_SECONDS), and what mpix::pready, mpix::wait_arrived and MPI_Wait return. */
int MPIX_Halo_stream_check(MPIX_Halo_stream_exchange exchange);
/** Go on with the other allocation of all fields that have two. Errors: MPI_ERR_REQUEST (started, not finished). */
int MPIX_Halo_stream_swap(MPIX_Halo_stream_exchange exchange);
/** As of an exchange without "stream_" in the name. */
int MPIX_Halo_stream_data(int field, int i, MPIX_Halo_stream_exchange exchange, void **data);
int MPIX_Halo_stream_interior(int i, MPIX_Halo_stream_exchange exchange, MPIX_Halo_box *box);
int MPIX_Halo_stream_boundary(int i, MPIX_Halo_stream_exchange exchange, MPIX_Halo_box boxes[6], int *count);
int MPIX_Halo_stream_sent(MPIX_Halo_stream_exchange exchange, int *messages, int64_t *bytes);
/** As MPIX_Halo_measure and MPIX_Halo_report. There are times of fields in host memory only, because on a GPU the calls
    return before it exchanges; the exchanges that are counted are the calls of MPIX_Halo_stream_finish and _run, not
    those of a graph. Errors: MPI_ERR_REQUEST (started, not finished), MPI_ERR_ARG (a null pointer, size < 1). */
int MPIX_Halo_stream_measure(int flag, MPIX_Halo_stream_exchange exchange);
int MPIX_Halo_stream_report(MPIX_Halo_stream_exchange exchange, char *text, int size);

/* ---- the exchange inside kernels ---------------------------------------------------------------
 *
 * As mpix::halo::kernel_exchange: the program's kernels exchange tile by tile, on a GPU or on host threads. They are
 * C++ (<mpix/halo.cuh>), and take an mpix::halo::device_exchange by value. A host program in C passes an
 * MPIX_Halo_device_exchange in its place, which has the same bytes:
 *
 *     MPIX_Halo_kernel_start(steps, exchange, &x);
 *     void *arguments[] = {&x, &k};   // of a kernel (mpix::halo::device_exchange x, double k)
 *     cudaLaunchCooperativeKernel(kernel, blocks, threads, arguments, 0, stream);
 *     cudaStreamSynchronize(stream);
 *     MPIX_Halo_kernel_finish(exchange);
 *
 * The same works with cudaLaunchKernel and cuLaunchKernel, and for an extern "C" function that launches the kernel or
 * runs
 * host threads. In C++, std::bit_cast and memcpy convert it. Blocks that wait must be resident (<mpix/launch.h>). */

/** What kernels take of an activation, until MPIX_Halo_kernel_finish. It is copied and passed on, and not looked at. */
typedef struct MPIX_Halo_device_exchange {
    uint64_t opaque[24];
} MPIX_Halo_device_exchange;

/** Zeros are the defaults: MPIX_Halo_kernel_options options = {0}. */
typedef struct MPIX_Halo_kernel_options {
    int64_t tile[3]; /* the shape of a tile in cells, along each axis; 0: as long as the box */
    int sets;        /* exchanges that may be under way at the same time, 2 to 64; 0: 4 */
    int box_waits;   /* whether kernels wait for boxes of cells; may differ between ranks */
} MPIX_Halo_kernel_options;

/**
 * Collective over the grid's ranks, which give the same tile and sets.
 *
 * count, fields  as of MPIX_Halo_exchange_create, at least one; all in memory of one GPU, or of the host
 * options        may be null
 * exchange       receives the handle; MPIX_HALO_KERNEL_EXCHANGE_NULL if the call fails
 *
 * Errors: as of MPIX_Halo_exchange_create; MPI_ERR_ARG (options, no field), MPI_ERR_BUFFER (fields in different
 * places), MPI_ERR_NO_MEM, and what MPIX_Prequest_create gives.
 */
int MPIX_Halo_kernel_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[],
                            const MPIX_Halo_kernel_options *options, MPIX_Halo_kernel_exchange *exchange);
/** As MPIX_Halo_exchange_free. No kernel uses the exchange any more. */
int MPIX_Halo_kernel_free(MPIX_Halo_kernel_exchange *exchange);

/** Begin an activation of `steps` exchanges, which may be 0 and are as many on all ranks, and wait until the neighbours
    have begun it; end it, when the kernels have ended. As start() and finish() of mpix::halo::kernel_exchange. `device`
    receives what the kernels take. Errors: MPI_ERR_ARG (a null exchange, as in all functions below; a null pointer;
    steps < 0), MPI_ERR_REQUEST (it is active already, or not; it has failed), MPI_ERR_PENDING (after
    MPIX_STALL_SECONDS; MPIX_Halo_kernel_start may be called again then, with the same `steps`), and what MPI_Start or a
    kernel's call has returned. After that, and after MPI_ERR_PENDING of MPIX_Halo_kernel_finish, it has failed, and can
    only be freed. */
int MPIX_Halo_kernel_start(int64_t steps, MPIX_Halo_kernel_exchange exchange, MPIX_Halo_device_exchange *device);
int MPIX_Halo_kernel_finish(MPIX_Halo_kernel_exchange exchange);
/** As of an exchange without "kernel_" in the name. In an activation, the allocation is that of its exchange 0; the
    time of an exchange is a part of that from MPIX_Halo_kernel_start to MPIX_Halo_kernel_finish, with what the kernels
    compute. */
int MPIX_Halo_kernel_active(MPIX_Halo_kernel_exchange exchange, int *flag);
int MPIX_Halo_kernel_data(int field, int i, MPIX_Halo_kernel_exchange exchange, void **data);
int MPIX_Halo_kernel_sent(MPIX_Halo_kernel_exchange exchange, int *messages, int64_t *bytes);
int MPIX_Halo_kernel_measure(int flag, MPIX_Halo_kernel_exchange exchange);
int MPIX_Halo_kernel_report(MPIX_Halo_kernel_exchange exchange, char *text, int size);

#ifdef __cplusplus
}
#endif

#endif
