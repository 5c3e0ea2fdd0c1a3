// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of MPIX_*_enqueue: one block each, so that a kernel that waits leaves the rest of the GPU to others.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "device/enqueue/enqueue.h"
#include "device/enqueue/stream_epochs.cuh"

namespace mpix::gpu {
namespace {

// With so many a block sends partitions of up to 16 KiB inline, and takes them out.
constexpr int threads = 512, threads_to_start = 32;

// Errors are kept with the requests, for the host.
__global__ void __launch_bounds__(threads_to_start) start_requests(const __grid_constant__ request_list list) {
    start_all_in_order(cooperative_groups::this_thread_block(), list.count, list.handles);
}

__global__ void __launch_bounds__(threads) wait_for_requests(const __grid_constant__ request_list list) {
    wait_for_all_in_order(cooperative_groups::this_thread_block(), list.count, list.handles);
}

// The host has checked the range. With the code for gaps, a block takes a multiprocessor's registers.
template <bool Gaps>
__global__ void __launch_bounds__(threads) make_ready(MPIX_Prequest send, int low, int high) {
    mpix::detail::ready_range(cooperative_groups::this_thread_block(), low, high, send,
                              mpix::detail::group_mover<Gaps, MPIX_CALL_PREADY_RANGE>{});
}

}  // namespace

int launch_start(const request_list &list, CUstream_st *stream) {
    start_requests<<<1, threads_to_start, 0, stream>>>(list);
    return cudaGetLastError();
}

int launch_wait(const request_list &list, CUstream_st *stream) {
    wait_for_requests<<<1, threads, 0, stream>>>(list);
    return cudaGetLastError();
}

int launch_pready(const partitions_of &send, CUstream_st *stream) {
    if (send.gaps)
        make_ready<true><<<1, threads, 0, stream>>>(send.handle, send.low, send.high);
    else
        make_ready<false><<<1, threads, 0, stream>>>(send.handle, send.low, send.high);
    return cudaGetLastError();
}

int load_enqueue_kernels() {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, start_requests);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, wait_for_requests);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, make_ready<false>);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, make_ready<true>);
    return error;
}

}  // namespace mpix::gpu
