// SPDX-License-Identifier: BSD-3-Clause
//
// The block, thread and launch of a host thread that runs a kernel's code.
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
// The thread's host_launch: the thread that called it, and when (now_ns). 0: none.
struct host_launched {
    std::uint64_t by = 0, at = 0;
};
inline thread_local host_launched launched;

// Unique among the threads that exist at the same time.
inline std::uint64_t this_thread_number() { return static_cast<std::uint64_t>(pthread_self()); }

}  // namespace mpix::detail

#endif  // !__CUDA_ARCH__

#endif  // MPIX_DETAIL_HOST_LAUNCH_H
