// SPDX-License-Identifier: BSD-3-Clause
//
// What the sources of this folder ask of the part that only nvcc can compile.
#ifndef MPIX_DEVICE_KERNELS_LAUNCH_H
#define MPIX_DEVICE_KERNELS_LAUNCH_H

#include <cstdint>

#include "device/kernels/work.h"

namespace mpix::gpu {

// One kernel for all of the message, on the current device. The tables of the message's type and its packed side are
// memory that this device can reach. Returns a cudaError_t.
int launch_pack(const message &m, stream_handle stream);
// The same from one type to another.
int launch_move(const passage &p, stream_handle stream);

// One block, and how many packets of an inline buffer it stores, or takes out.
constexpr unsigned timed_threads = 512, few_packets = 32, many_packets = 4 * timed_threads;
constexpr std::uint64_t timed_packet_bytes = 16, timed_packet_payload = 8;

// What the kernel leaves: the clock's ticks of each of inline_times, in their order, and of all of it, and that in nanoseconds.
constexpr unsigned timed_ways = 6, ticks_of_all = timed_ways, ns_of_all = timed_ways + 1, timed_words = timed_ways + 2;
// Memory of this GPU that it takes packets out of, and puts them into.
constexpr std::uint64_t timing_bytes = many_packets * (timed_packet_bytes + timed_packet_payload);

// One thread that copies, as a kernel's lone thread does in pready; for timing.
int launch_lone_copy(char *to, const char *from, std::int64_t bytes, stream_handle stream);

int launch_timing(char *at_peer, char *here, std::uint64_t *words, stream_handle stream);

// Have all of these kernels loaded on the current device.
int load_kernels();

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_LAUNCH_H
