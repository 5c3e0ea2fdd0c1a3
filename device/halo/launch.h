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

// Of a parcel that is sent: how it is stored straight into ghost cells of a neighbour, whose memory this GPU maps, in place of a
// message. In messages it goes if the neighbour may still read these ghost cells.
struct direct_send {
    detail::device_copies copies;  // from own cells to those ghost cells; none: it always goes in messages
    std::int32_t message;
    std::uint64_t *stored;  // the neighbour's word: the number of the exchange of which it was stored so last
};
struct direct_stores {
    const direct_send *sends = nullptr;           // of each parcel that is sent; null: there are none
    const detail::device_copy *copies = nullptr;  // of these
    // For each message that is sent, what its receiver says last: opened(exchange, phase).
    const std::uint64_t *opened = nullptr;
    // Those words of the neighbours that send to this rank.
    std::uint64_t *const *to_open = nullptr;
    std::int32_t to_open_count = 0;
    const std::uint64_t *stored =
        nullptr;  // of each parcel of a message that is received; null: they are not stored so
};
// That a rank's ghost cells of an exchange may be written, and in which allocation they are.
MPIX_FN std::uint64_t opened(std::uint64_t exchange, std::int32_t phase) {
    return exchange << 1 | static_cast<std::uint64_t>(phase);
}

// What the kernels of a stream exchange get.
struct stream_exchange_args {
    device_exchange x;
    std::int32_t phase;  // which allocation of each field, 0 or 1
    // In memory of the device: the step of the exchange that is started next, or under way; and the groups of the present
    // finish that have ended.
    std::uint64_t *words;
    std::int32_t own_end;  // the parcels of own cells end here, and those of messages begin
    direct_stores direct;
    static constexpr int next_at = 0, ended_at = 1, words_count = 2;
};

// The parcels that are sent come first, 0 to sends_end() - 1, then those of own cells, then those of messages.
MPIX_FN int sends_end(const device_exchange &x) { return x.received_begin_; }

// Blocks beside the one that begins an exchange: two for each of the 132 multiprocessors of an H100. More would only take turns.
inline constexpr int most_parcel_blocks = 264;

// run: both of the first in one kernel.
enum class stream_call { start, finish, run, drain_sends, drain_receives };

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
// Whether run is one kernel. Each of its blocks waits for neighbours, so they are only as many as the device surely has room for
// at the same time, beside as many others: one for each multiprocessor. Two kernels with more blocks copy more at a time.
bool fits_one_kernel(const halo::stream_exchange_args &o, int device);
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
inline bool fits_one_kernel(const halo::stream_exchange_args &, int) { return false; }
inline std::string run_exchange(halo::stream_call, const halo::stream_exchange_args &, int) {
    return "this libmpix was built without nvcc";
}
inline std::string finish_device(int) { return "this libmpix was built without nvcc"; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_HALO_LAUNCH_H
