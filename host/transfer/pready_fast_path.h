// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of MPI_Pready, in processes of one thread. The first partition of an epoch goes through detail::ready,
// which finds out the epoch and the addresses. The others reuse them.
#ifndef MPIX_HOST_TRANSFER_PREADY_FAST_PATH_H
#define MPIX_HOST_TRANSFER_PREADY_FAST_PATH_H

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <cstdint>
#include <cstring>

namespace mpix {

class pready_fast_path {
public:
    // Where partition 0 lies, and where it goes; a word for each partition.
    struct addresses {
        const char *from;
        char *to;
        std::uint64_t *flags, *states;
        std::uint64_t partition_bytes;
    };

    void close() { partitions_ = 0; }

    // Clear-to-send of the epoch has been acquired. `landing` is the request's, of which `w` is made.
    void open(mpix_prequest *home, std::uint64_t epoch, const char *landing, const addresses &w) {
        home_ = home;
        epoch_ = epoch;
        landing_ = landing;
        at_ = w;
        last_ = epoch * static_cast<std::uint64_t>(home->partitions);
        partitions_ = static_cast<std::uint32_t>(home->partitions);
    }

    // The request is active. False: nothing was done; call ready_in_full().
    [[gnu::always_inline]] bool ready(int partition) noexcept {
        const auto p = static_cast<std::uint32_t>(partition);
        mpix_prequest *const home = home_;
        // A faulty peer may undo the route at any time.
        if (p >= partitions_ || detail::load_pointer(&home->landing) != landing_) return false;
        // The last partition of an epoch takes the full path, which ends the epoch.
        const std::uint64_t readied = detail::load_relaxed(&home->ready_count) + 1;
        std::uint64_t *const state = at_.states + p;
        if (readied == last_ || detail::load_relaxed(state) >= epoch_) return false;
        detail::store_relaxed(state, epoch_);
        // No atomic exchange: only callers of Pready touch the count, and here that is one thread. The progress thread
        // does not.
        detail::store_relaxed(&home->ready_count, readied);
        if (at_.partition_bytes != sizeof(double)) return copy_and_tell(p);
        const std::uint64_t at = p * sizeof(double);
        fetch_ahead(at);
        std::memcpy(at_.to + at, at_.from + at, sizeof(double));  // a constant size: the compiler makes it one store
        tell(p);
        return true;
    }

private:
    [[gnu::noinline]] bool copy_and_tell(std::uint32_t p) noexcept {
        const std::uint64_t bytes = at_.partition_bytes, at = p * bytes;
        if (bytes != 0) {  // the buffer of an empty message may be null
            if (bytes < line) fetch_ahead(at);
            std::memcpy(at_.to + at, at_.from + at, bytes);
        }
        tell(p);
        return true;
    }
    void tell(std::uint32_t p) noexcept { detail::store_release(at_.flags + p, epoch_); }  // pairs: A1

    // The receiver's core still holds these lines from an earlier epoch. A store would wait for each of them in turn. So
    // the line four ahead is fetched for writing: most programs mark partitions in order. By assembly, since compilers
    // emit prefetchw only for some processors; others ignore it.
    void fetch_ahead(std::uint64_t at) const noexcept {
        const std::uintptr_t ahead =
            reinterpret_cast<std::uintptr_t>(at_.to) + at + 4 * line;  // maybe behind the landing
#if defined __x86_64__
        asm volatile("prefetchw (%0)" : : "r"(ahead));
#else
        __builtin_prefetch(reinterpret_cast<const char *>(ahead), 1);
#endif
    }
    static constexpr std::uint64_t line = 64;

    std::uint32_t partitions_ = 0;  // 0: closed
    mpix_prequest *home_ = nullptr;
    const char *landing_ = nullptr;
    std::uint64_t epoch_ = 0, last_ = 0;
    addresses at_{};
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_PREADY_FAST_PATH_H
