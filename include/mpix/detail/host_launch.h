// SPDX-License-Identifier: BSD-3-Clause
//
// Which call of host_launch a host thread plays a kernel of; 0: of none.
#ifndef MPIX_DETAIL_HOST_LAUNCH_H
#define MPIX_DETAIL_HOST_LAUNCH_H

#if !defined(__CUDA_ARCH__)

#include <atomic>
#include <cstdint>

namespace mpix::detail {

inline thread_local std::uint32_t host_launch_number = 0;

inline std::uint32_t next_host_launch() {
    static std::atomic<std::uint32_t> launches{0};
    std::uint32_t number = launches.fetch_add(1, std::memory_order_relaxed) + 1;
    return number != 0 ? number : next_host_launch();
}

}  // namespace mpix::detail

#endif  // !__CUDA_ARCH__

#endif  // MPIX_DETAIL_HOST_LAUNCH_H
