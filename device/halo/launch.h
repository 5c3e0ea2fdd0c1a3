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

// What the kernels of one exchange get.
struct ordered_exchange {
    device_exchange x;
    std::int32_t phase;  // which allocation of each field, 0 or 1
    // In memory of the device: the number of the exchange that is started next, or under way; and the groups of the present
    // finish that have ended.
    std::uint64_t *words;
    static constexpr int next_at = 0, ended_at = 1, words_count = 2;
};

enum class ordered_call { start, finish, drain_sends, drain_receives };

}  // namespace mpix::halo

namespace mpix::gpu {

// What has become of a launch: one sentence for the user, empty for success; and whether it is the stream that it was refused for,
// so that nothing has been enqueued, and another stream may do.
struct launch_result {
    std::string problem;
    bool is_of_stream = false;
};

#if MPIX_HAVE_NVCC
// Enqueues the kernel of a call. The caller's current device is left as it was, and so is CUDA's last error.
launch_result enqueue_exchange(halo::ordered_call call, const halo::ordered_exchange &o, int device,
                               CUstream_st *stream);
// Waits for all work on the device. One sentence for the user, empty for success.
std::string finish_device(int device);
// Runs the kernel of a call, and waits for it. Likewise.
std::string run_exchange(halo::ordered_call call, const halo::ordered_exchange &o, int device);

// For enqueue_exchange, of the part that only nvcc can compile; a cudaError_t.
int launch_exchange(halo::ordered_call call, const halo::ordered_exchange &o, int blocks, CUstream_st *stream);
// Have these kernels loaded on the current device.
int load_exchange_kernels();
#else
inline launch_result enqueue_exchange(halo::ordered_call, const halo::ordered_exchange &, int, CUstream_st *) {
    return {"this libmpix was built without nvcc"};
}
inline std::string run_exchange(halo::ordered_call, const halo::ordered_exchange &, int) {
    return "this libmpix was built without nvcc";
}
inline std::string finish_device(int) { return "this libmpix was built without nvcc"; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_HALO_LAUNCH_H
