// SPDX-License-Identifier: BSD-3-Clause
//
// Another process's own memory, on the same node: nothing is mapped, the system copies for us (process_vm_readv,
// process_vm_writev). That takes leave to trace the other process, which containers, Yama and other users do not give;
// so whoever means to copy tries it first.
#ifndef MPIX_TRANSPORT_CMA_H
#define MPIX_TRANSPORT_CMA_H

#include <mpix/detail/abi.h>

#include <algorithm>
#include <cstdint>

#include "transport/transport.h"

namespace mpix::transport {

// What a process tells others of itself, for them to try.
struct memory_probe {
    std::int64_t pid;
    std::uint64_t address;   // of the words there
    std::uint64_t nonce[2];  // which they hold
};
memory_probe probe_of_this_process();

// A process whose memory may be read and written.
struct peer_memory final : mpix_far_memory {
    std::int64_t pid = 0;
    int alive = -1;  // readable once that process has ended; or -1
    // What a copy takes, in nanoseconds for a MiB; 0: not known. A lower figure replaces it at once, a higher one raises it by
    // an eighth at most, since a thread may have been suspended. Written by `read` and `write`; accessed atomically, and
    // orders nothing.
    mutable std::uint64_t read_cost = 0, write_cost = 0;
    mutable std::uint64_t epochs = 0;  // of sends to that process by a single copy; for copying_side.h
};
constexpr std::uint64_t cannot_copy = ~std::uint64_t{0};  // a cost: the system has not let us
constexpr std::uint64_t next_copy_cost(std::uint64_t before, std::uint64_t bytes, std::uint64_t ns) {
    const std::uint64_t now = std::max<std::uint64_t>((ns << 20) / bytes, 1);
    return before == 0 ? now : std::min(now, before + before / 8 + 1);
}

// Reads there, so that it is the right process, and writes there. Fails if that cannot be done.
status reach_memory(const memory_probe &theirs, peer_memory &out);

// A file that stands for a process, readable once it has ended; and an open file of that process, by its number there. -1
// and errno: the system is older, or does not allow it.
int open_process(std::int64_t pid);
int take_file(int process, std::int64_t number);
// Fails if no open files of that process may be taken (pidfd_getfd).
status reach_files(const peer_memory &theirs);

// Whether the system can reach a buffer of ours that way, as it cannot where memory of devices is mapped. By its first
// and last byte.
bool others_reach(void *buffer, std::uint64_t bytes);

// Whether all of that can be read that way. Slow: for who has to know why a copy has failed.
bool can_be_read(const void *from, std::uint64_t bytes);

// The user's own buffer, to the wire, and from there to an address for peer_memory.
void describe_buffer(void *buffer, std::uint64_t bytes, wire_region &out);
status attach_buffer(const wire_region &wire, region &out);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_CMA_H
