// SPDX-License-Identifier: BSD-3-Clause
//
// What a host thread plays: a thread of a kernel, launched by host_launch.
#ifndef MPIX_DETAIL_HOST_LAUNCH_H
#define MPIX_DETAIL_HOST_LAUNCH_H

#if !defined(__CUDA_ARCH__)

#include <atomic>
#include <cstdint>

namespace mpix::detail {

struct host_place {
    int block = 0, thread = 0;
};
inline thread_local host_place played;
// Which call of host_launch it is of; 0: of none.
inline thread_local std::uint32_t host_launch_number = 0;

inline std::uint32_t next_host_launch() {
    static std::atomic<std::uint32_t> launches{0};
    const std::uint32_t number = launches.fetch_add(1, std::memory_order_relaxed) + 1;
    return number != 0 ? number : next_host_launch();
}

}  // namespace mpix::detail

#endif  // !__CUDA_ARCH__

#endif  // MPIX_DETAIL_HOST_LAUNCH_H
