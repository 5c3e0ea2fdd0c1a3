// SPDX-License-Identifier: BSD-3-Clause
//
// How a host thread that waits gives its core to others.
#ifndef MPIX_DETAIL_GIVE_WAY_H
#define MPIX_DETAIL_GIVE_WAY_H

#include <mpix/detail/order.h>

#if !defined(__CUDA_ARCH__)
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#endif

namespace mpix::detail {

#if !defined(__CUDA_ARCH__)
// Beside busy processes sched_yield returns only after each of them has had its time slice: after milliseconds. A
// thread that wakes up from a sleep runs sooner. So after a slow yield no thread of the process yields before
// yields_again_at (now_ns). That pause begins at 2 ms, doubles with each slow yield up to 200 ms, and becomes
// shorter with each quick one. Relaxed: hints.
inline constexpr std::uint64_t least_without_yields_ns = 2'000'000, most_without_yields_ns = 200'000'000;
inline std::atomic<std::uint64_t> yields_again_at{0}, without_yields_ns{least_without_yields_ns};

// Yields. False, and nothing has been done: yields are slow now, so sleep instead.
inline bool try_yield() {
    constexpr std::uint64_t slow_ns = 1'000'000;
    const std::uint64_t before = now_ns();
    std::uint64_t again = yields_again_at.load(std::memory_order_relaxed);
    if (before < again) return false;
    sched_yield();
    const std::uint64_t after = now_ns(), pause = without_yields_ns.load(std::memory_order_relaxed);
    if (after - before > slow_ns) {
        // Of several threads that were slow at once, one.
        if (yields_again_at.compare_exchange_strong(again, after + pause, std::memory_order_relaxed))
            without_yields_ns.store(pause < most_without_yields_ns / 2 ? 2 * pause : most_without_yields_ns,
                                    std::memory_order_relaxed);
    } else if (pause > least_without_yields_ns) {
        without_yields_ns.store(pause - pause / 8, std::memory_order_relaxed);
    }
    return true;
}

#endif

// Called between two looks. A GPU thread continues at once.
MPIX_FN void give_way() {
#if !defined(__CUDA_ARCH__)
    if (!try_yield()) usleep(50);
#endif
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_GIVE_WAY_H
