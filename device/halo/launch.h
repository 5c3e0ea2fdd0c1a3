// SPDX-License-Identifier: BSD-3-Clause
//
// Enqueues the kernels by which the library itself runs a halo exchange, in the order of a stream. For the host; needs
// no CUDA header.
#ifndef MPIX_DEVICE_HALO_LAUNCH_H
#define MPIX_DEVICE_HALO_LAUNCH_H

#include <mpix/mpix.h>

#include <string>

#include "device/halo/stream_args.h"

namespace mpix::halo {

// run: both of the first in one kernel.
enum class stream_call { start, finish, run, drain_sends, drain_receives };

}  // namespace mpix::halo

namespace mpix::gpu {

// The result of a launch. `problem`: one sentence for the user; empty for success. `is_of_stream`: CUDA refused the
// stream, so nothing was enqueued, and another stream may do.
struct launch_result {
    std::string problem;
    bool is_of_stream = false;
};

#if MPIX_HAVE_CUDA
// Waits for all work in a stream of the device. Refuses a stream that is being captured.
launch_result finish_stream(int device, CUstream_st *stream);
#else
inline launch_result finish_stream(int, CUstream_st *) { return {"this libmpix was built without CUDA"}; }
#endif

#if MPIX_HAVE_NVCC
// Enqueues the kernel of a call. The caller's current device is left as it was, and so is CUDA's last error.
launch_result enqueue_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int device,
                               CUstream_st *stream);
// Decides whether run() is one kernel; false: it has to be two. `ranks` ranks share the device. Sets run_groups and
// most_receivers, so that the blocks of all their runs are resident at the same time; and finish_groups, if there are
// several ranks.
//
// Where a rank has the device to itself, at most half of the resident blocks wait, so neighbours may run two exchanges
// in different orders. Two kernels are faster if there are many own cells to copy; and where ranks share the device,
// if a block would have several parcels.
bool plan_run(halo::stream_exchange_args &o, int device, int ranks);
// Waits for all work on the device. One sentence for the user, empty for success.
std::string finish_device(int device);
// Runs the kernel of a call, and waits for it. Likewise.
std::string run_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int device);

// For enqueue_exchange, of the part that only nvcc can compile; a cudaError_t.
int launch_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int blocks, CUstream_st *stream);
// Have these kernels loaded on the current device.
int load_exchange_kernels();
#else
inline launch_result enqueue_exchange(halo::stream_call, const halo::stream_exchange_args &, int, CUstream_st *) {
    return {"this libmpix was built without nvcc"};
}
inline bool plan_run(halo::stream_exchange_args &, int, int) { return false; }
inline std::string run_exchange(halo::stream_call, const halo::stream_exchange_args &, int) {
    return "this libmpix was built without nvcc";
}
inline std::string finish_device(int) { return "this libmpix was built without nvcc"; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_HALO_LAUNCH_H
