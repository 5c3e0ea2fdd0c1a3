// SPDX-License-Identifier: BSD-3-Clause
//
// What the stores of a block to a peer GPU take, with and without a fence, and taking as much out of an inline buffer: measured by a
// kernel of the library. Not for kernels.
#ifndef MPIX_DEVICE_MAIL_TIMING_H
#define MPIX_DEVICE_MAIL_TIMING_H

#include <mpix/device/gpu_pack.h>

#include <cstdint>
#include <memory>

namespace mpix::gpu {

// One block, and how many packets of an inline buffer it stores, or takes out.
constexpr unsigned timed_threads = 512, few_packets = 32, many_packets = 4 * timed_threads;
constexpr std::uint64_t timed_packet_bytes = 16, timed_packet_payload = 8;

// In microseconds, the best of several turns.
struct inline_times {
    double few_stored = 0;               // few packets at the peer, until the block goes on
    double few_fenced = 0;               // and until they are known to be there
    double many_fenced = 0;              // the same of many
    double few_taken = 0;                // few packets out of an inline buffer into a buffer here
    double few_told = 0, many_told = 0;  // and until other groups of this GPU may know
};

#if MPIX_HAVE_CUDA
// Begin to measure it on `device`, in a stream of our own, by storing zeros to many_packets of a peer's memory, which must stay
// mapped until it has ended. One at a time of a device, which has been prepared (gpu_pack.h). Does not wait; needs room on the
// GPU beside the kernels that run. Errors and thread safety as in gpu_pack.h.
outcome start_timing(void *at_peer, int device, std::unique_ptr<pending> &out);
// What the last one on `device` that is finished has found.
inline_times times_of(int device);
#else
inline outcome start_timing(void *, int, std::unique_ptr<pending> &) { return "mpix was built without CUDA"; }
inline inline_times times_of(int) { return {}; }
#endif

#if MPIX_HAVE_NVCC
// What the kernel leaves: the clock's ticks of each of inline_times, in their order, and of all of it, and that in nanoseconds.
constexpr unsigned timed_ways = 6, ticks_of_all = timed_ways, ns_of_all = timed_ways + 1, timed_words = timed_ways + 2;
// Memory of this GPU that it takes packets out of, and puts them into.
constexpr std::uint64_t timing_bytes = many_packets * (timed_packet_bytes + timed_packet_payload);

// What mail_timing.cc asks of the part that only nvcc can compile; a cudaError_t.
int launch_timing(char *at_peer, char *here, std::uint64_t *words, stream_handle order);
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_MAIL_TIMING_H
