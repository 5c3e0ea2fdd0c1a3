// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of MPI_Pready, for partitions without gaps that go by two copies. It is opened once an epoch's
// clear-to-send is there, usually in Start, and then knows the epoch and the addresses.
//
// In a process of one thread it counts the partitions. Where several threads call MPI, a counter would cost each call
// an atomic exchange, and its cache line would go from core to core. So there nothing is counted: a partition's state
// is written last, and Wait or the engine looks at all states.
#ifndef MPIX_HOST_TRANSFER_PREADY_FAST_PATH_H
#define MPIX_HOST_TRANSFER_PREADY_FAST_PATH_H

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>
#include <mpix/impl/send/count.cuh>

#include <atomic>
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

    // Callers of ready() may be moving a partition yet.
    void close() {
        partitions_.store(0, std::memory_order_relaxed);
        opening_.store(false, std::memory_order_relaxed);
        closed_.fetch_add(1, std::memory_order_relaxed);
        in_full_.store(0, std::memory_order_relaxed);
    }

    // True for one caller since it was closed, who has to open it.
    bool may_open() { return !opening_.exchange(true, std::memory_order_relaxed); }
    // Clear-to-send of the epoch has been acquired. Others may call ready() meanwhile.
    void open(mpix_prequest *home, std::uint64_t epoch, const addresses &w, bool one_thread) {
        home_ = home;
        epoch_ = epoch;
        at_ = w;
        last_ = one_thread ? epoch * static_cast<std::uint64_t>(home->partitions) : 0;
        partitions_.store(static_cast<std::uint32_t>(home->partitions), std::memory_order_release);  // pairs: C11
    }
    bool is_open() const { return partitions_.load(std::memory_order_acquire) != 0; }  // pairs: C11

    // False: nothing was done; call ready_in_full(). So it is once the epoch is over, since then all are ready.
    [[gnu::always_inline]] bool ready(int partition) noexcept {
        const auto p = static_cast<std::uint32_t>(partition);
        if (p >= partitions_.load(std::memory_order_acquire)) return false;  // pairs: C11
        const std::uint64_t epoch = epoch_;
        if (detail::load_relaxed(at_.states + p) >= epoch) return false;
        if (last_ != 0) {
            // No atomic exchange: only callers of Pready touch the count, and here that is one thread. The progress
            // thread does not.
            const std::uint64_t readied = detail::load_relaxed(&home_->ready_count) + 1;
            if (readied == last_) [[unlikely]] {
                // If some were left to the engine, the full path tells it.
                if (detail::load_relaxed(&home_->defer_epoch) == epoch) return false;
                end_epoch(p);
                return true;
            }
            detail::store_relaxed(&home_->ready_count, readied);
        }
        if (at_.partition_bytes == sizeof(double)) [[likely]] {
            copy_number(at_, p);
            tell(at_, p, epoch);
        } else {
            copy_and_tell(p);
        }
        return true;
    }

    // The full path begins to move a partition, or has been refused to; the epoch may be over by then. (It counts what it
    // has moved.)
    std::uint64_t begin_in_full() {
        in_full_.fetch_add(1, std::memory_order_relaxed);
        return closed_.load(std::memory_order_relaxed);
    }
    void refused_in_full(std::uint64_t begun) {
        if (closed_.load(std::memory_order_relaxed) == begun) in_full_.fetch_sub(1, std::memory_order_relaxed);
    }
    // Where nothing is counted: whether all partitions are ready, and no caller is still moving one.
    bool all_moved() const noexcept {
        const std::uint64_t n = partitions_.load(std::memory_order_acquire);  // pairs: C11
        if (n == 0 || last_ != 0) return false;
        // The last one first, so as to leave the others to the cores that write them; and none twice.
        if (detail::load_acquire(at_.states + n - 1) < epoch_) return false;                               // pairs: D1
        const std::uint64_t before = (epoch_ - 1) * n, seen = looked_at_.load(std::memory_order_acquire);  // pairs: D1
        for (std::uint64_t p = seen > before && seen <= before + n ? seen - before : 0; p < n; ++p) {
            if (detail::load_acquire(at_.states + p) < epoch_) return false;  // pairs: D1
            looked_at_.store(before + p + 1, std::memory_order_release);      // pairs: D1
        }
        // The full path claims a partition's state before it moves the partition, and counts it afterwards.
        const std::uint64_t counted = detail::load_acquire(&home_->ready_count) - (epoch_ - 1) * n;  // pairs: D1
        return counted == in_full_.load(std::memory_order_relaxed);
    }

private:
    [[gnu::always_inline]] static void copy_number(const addresses &at, std::uint32_t p) noexcept {
        const std::uint64_t offset = p * sizeof(double);
        fetch_ahead(at.to + offset);
        std::memcpy(at.to + offset, at.from + offset,
                    sizeof(double));  // a constant size: the compiler makes it one store
    }
    [[gnu::noinline]] void copy_and_tell(std::uint32_t p) const noexcept {
        const std::uint64_t bytes = at_.partition_bytes, offset = p * bytes;
        if (bytes == sizeof(double)) {
            copy_number(at_, p);
        } else if (bytes != 0) {  // the buffer of an empty message may be null
            if (bytes < line) fetch_ahead(at_.to + offset);
            std::memcpy(at_.to + offset, at_.from + offset, bytes);
        }
        tell(at_, p, epoch_);
    }
    [[gnu::always_inline]] static void tell(const addresses &at, std::uint32_t p, std::uint64_t epoch) noexcept {
        detail::store_release(at.flags + p, epoch);   // pairs: A1
        detail::store_release(at.states + p, epoch);  // pairs: D1
    }
    [[gnu::noinline]] void end_epoch(std::uint32_t p) const noexcept {
        copy_and_tell(p);
        detail::store_relaxed(&home_->ready_count, last_);
        detail::say_all_ready(home_, epoch_);
    }
    // The receiver's core still holds these lines from an earlier epoch. A store would wait for each of them in turn.
    // So the line eight ahead is fetched for writing: most programs mark partitions in order. By assembly, since
    // compilers emit prefetchw only for some processors; others ignore it.
    static void fetch_ahead(const void *to) noexcept {
        const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(to) + 8 * line;  // maybe behind the landing
#if defined __x86_64__
        asm volatile("prefetchw (%0)" : : "r"(ahead));
#else
        __builtin_prefetch(reinterpret_cast<const char *>(ahead), 1);
#endif
    }
    static constexpr std::uint64_t line = 64;

    std::atomic<std::uint32_t> partitions_{0};  // 0: closed
    std::atomic<bool> opening_{false};
    std::atomic<std::uint64_t> closed_{0};   // how often
    std::atomic<std::uint64_t> in_full_{0};  // partitions of this epoch on the full path so far
    // Of all epochs' partitions, those that all_moved has found moved.
    mutable std::atomic<std::uint64_t> looked_at_{0};
    mpix_prequest *home_ = nullptr;
    std::uint64_t epoch_ = 0;
    std::uint64_t last_ = 0;  // the count with the epoch's last partition; 0: nothing is counted
    addresses at_{};
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_PREADY_FAST_PATH_H
