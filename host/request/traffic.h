// SPDX-License-Identifier: BSD-3-Clause
//
// What requests have moved, by path. Nobody counts while bytes move: the number of a request's epoch says how often it
// has moved its message.
#ifndef MPIX_HOST_REQUEST_TRAFFIC_H
#define MPIX_HOST_REQUEST_TRAFFIC_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace mpix {

// As MPIX_Request_path names them; by others nothing moves.
inline constexpr std::array<const char *, 4> traffic_paths = {"shm", "cuda_ipc", "ucx", "verbs"};

struct traffic {
    std::uint64_t messages = 0;    // epochs
    std::uint64_t bytes = 0;       // of all partitions, packed
    std::uint64_t partitions = 0;  // of this side's request
    std::uint64_t deferred = 0;    // partitions that the progress engine has moved; of sends
};

struct traffic_by_path {
    std::array<traffic, traffic_paths.size()> sent, received;
    std::uint64_t requests = 0;  // that there are
};

// In the epochs that have ended so far, of all requests of this process, also those that have been freed. Locks
// setup_mutex.
traffic_by_path traffic_so_far();

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_TRAFFIC_H
