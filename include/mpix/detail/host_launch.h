// SPDX-License-Identifier: BSD-3-Clause
//
// What a host thread plays: a thread of a kernel, launched by host_launch.
#ifndef MPIX_DETAIL_HOST_LAUNCH_H
#define MPIX_DETAIL_HOST_LAUNCH_H

#if !defined(__CUDA_ARCH__)

#include <pthread.h>

#include <cstdint>

namespace mpix::detail {

struct host_place {
    int block = 0, thread = 0;
};
inline thread_local host_place played;
// The call of host_launch that the thread is of: which thread made it, and when, as now_ns() says. 0: of none.
struct host_launched {
    std::uint64_t by = 0, at = 0;
};
inline thread_local host_launched launched;

// Another thread has another number, as long as both are there.
inline std::uint64_t this_thread_number() { return static_cast<std::uint64_t>(pthread_self()); }

}  // namespace mpix::detail

#endif  // !__CUDA_ARCH__

#endif  // MPIX_DETAIL_HOST_LAUNCH_H
