// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels by which the library itself runs a halo exchange, in the order of a stream. Not for kernels; needs no CUDA header.
#ifndef MPIX_DEVICE_HALO_LAUNCH_H
#define MPIX_DEVICE_HALO_LAUNCH_H

#include <mpix/mpix.h>

#include <mpix/halo/device_exchange.hpp>

#include <cstdint>
#include <string>

namespace mpix::halo {

// What the kernels of a stream exchange get.
struct stream_exchange_args {
    device_exchange x;
    std::int32_t phase;  // which allocation of each field, 0 or 1
    // In memory of the device: the step of the exchange that is started next, or under way; and the groups of the present
    // finish that have ended.
    std::uint64_t *words;
    static constexpr int next_at = 0, ended_at = 1, words_count = 2;
};

// The parcels that are sent come first: 0 to sends_end() - 1.
MPIX_FN int sends_end(const device_exchange &x) { return x.received_begin_; }

// Blocks beside the one that begins an exchange: two for each of the 132 multiprocessors of an H100. More would only take turns.
inline constexpr int most_parcel_blocks = 264;

enum class stream_call { start, finish, drain_sends, drain_receives };

}  // namespace mpix::halo

namespace mpix::gpu {

// The result of a launch. `problem`: one sentence for the user; empty for success. `is_of_stream`: CUDA refused the stream, so
// nothing was enqueued, and another stream may do.
struct launch_result {
    std::string problem;
    bool is_of_stream = false;
};

#if MPIX_HAVE_NVCC
// Enqueues the kernel of a call. The caller's current device is left as it was, and so is CUDA's last error.
launch_result enqueue_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int device,
                               CUstream_st *stream);
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
inline std::string run_exchange(halo::stream_call, const halo::stream_exchange_args &, int) {
    return "this libmpix was built without nvcc";
}
inline std::string finish_device(int) { return "this libmpix was built without nvcc"; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_HALO_LAUNCH_H
