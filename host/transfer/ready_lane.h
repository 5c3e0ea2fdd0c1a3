// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of MPI_Pready, in processes of one thread. What the long way (detail::ready) has found out about the
// running epoch, with the first partition that it stored in the landing, serves the others, too.
#ifndef MPIX_HOST_TRANSFER_READY_LANE_H
#define MPIX_HOST_TRANSFER_READY_LANE_H

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <cstdint>
#include <cstring>

namespace mpix {

class ready_lane {
public:
    // Where partition 0 lies, and where it goes; a word for each partition.
    struct way {
        const char *from;
        char *to;
        std::uint64_t *flags, *states;
        std::uint64_t partition_bytes;
    };

    void close() { partitions_ = 0; }

    // Clear-to-send of the epoch has been acquired. `landing` is the request's, of which `w` is made.
    void open(mpix_prequest *home, std::uint64_t epoch, const char *landing, const way &w) {
        home_ = home;
        epoch_ = epoch;
        landing_ = landing;
        way_ = w;
        last_ = epoch * static_cast<std::uint64_t>(home->partitions);
        partitions_ = static_cast<std::uint32_t>(home->partitions);
    }

    // Of an active request. False: nothing was done, and the long way finds out why.
    [[gnu::always_inline]] bool ready(int partition) noexcept {
        const auto p = static_cast<std::uint32_t>(partition);
        mpix_prequest *const home = home_;
        // A faulty peer may undo the route at any time.
        if (p >= partitions_ || detail::load_pointer(&home->landing) != landing_) return false;
        // The last one of an epoch goes the long way, which tells everybody.
        const std::uint64_t readied = detail::load_relaxed(&home->ready_count) + 1;
        std::uint64_t *const state = way_.states + p;
        if (readied == last_ || detail::load_relaxed(state) >= epoch_) return false;
        detail::store_relaxed(state, epoch_);
        // Only callers of Pready look at the count, and there is no other thread.
        detail::store_relaxed(&home->ready_count, readied);
        if (way_.partition_bytes != sizeof(double)) return copy_and_tell(p);
        const std::uint64_t at = p * sizeof(double);
        fetch_ahead(at);
        std::memcpy(way_.to + at, way_.from + at, sizeof(double));  // a store, not a call
        tell(p);
        return true;
    }

private:
    [[gnu::noinline]] bool copy_and_tell(std::uint32_t p) noexcept {
        const std::uint64_t bytes = way_.partition_bytes, at = p * bytes;
        if (bytes < line) fetch_ahead(at);
        if (bytes != 0) std::memcpy(way_.to + at, way_.from + at, bytes);  // the buffer of an empty message may be null
        tell(p);
        return true;
    }
    void tell(std::uint32_t p) noexcept { detail::store_release(way_.flags + p, epoch_); }  // pairs: A1

    // The receiver has read these cache lines in an earlier epoch, and stores to them would wait for one after the
    // other to come from its core. So the lines of small partitions that most programs write next are asked for now.
    // The compiler takes the instruction for no part of x86-64; processors that do not know it ignore it.
    void fetch_ahead(std::uint64_t at) const noexcept {
        const char *const next = way_.to + at + 4 * line;
#if defined __x86_64__
        asm volatile("prefetchw %0" : : "m"(*next));
#else
        __builtin_prefetch(next, 1);
#endif
    }
    static constexpr std::uint64_t line = 64;

    std::uint32_t partitions_ = 0;  // 0: closed
    mpix_prequest *home_ = nullptr;
    const char *landing_ = nullptr;
    std::uint64_t epoch_ = 0, last_ = 0;
    way way_{};
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_READY_LANE_H
