// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs of exported requests in the order of a stream: one small kernel for each call. Not for kernels; needs no CUDA
// header.
//
// Errors: one sentence for the user, empty for success. Thread safety: any thread may call these functions. The
// caller's current device is left as it was.
#ifndef MPIX_DEVICE_ENQUEUE_ENQUEUE_H
#define MPIX_DEVICE_ENQUEUE_ENQUEUE_H

#include <mpix/mpix.h>

#include <string>

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
// Handles of requests that are exported to `device`.
struct requests_on {
    int device, count;
    const MPIX_Prequest *handles;
};

// Partitions of a send.
struct partitions_of {
    MPIX_Prequest handle;
    int low, high;  // both included
    bool gaps;      // the send buffer has gaps, which are not to be left to the progress engine
};

std::string enqueue_start(const requests_on &requests, CUstream_st *stream);
std::string enqueue_wait(const requests_on &requests, CUstream_st *stream);
std::string enqueue_pready(const partitions_of &send, int device, CUstream_st *stream);

// Whether the next kernel in the stream may run now, as far as the host can tell: the stream is not being captured.
bool may_run_now(int device, CUstream_st *stream);

// What enqueue.cc asks of the part that only nvcc can compile; a cudaError_t.
constexpr int most_listed = 126;  // with their number, 1 KiB of a kernel's arguments
struct request_list {
    int count;
    MPIX_Prequest handles[most_listed];
};
int launch_start(const request_list &list, CUstream_st *stream);
int launch_wait(const request_list &list, CUstream_st *stream);
int launch_pready(const partitions_of &send, CUstream_st *stream);
// Have these kernels loaded on the current device.
int load_enqueue_kernels();
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_ENQUEUE_ENQUEUE_H
