// SPDX-License-Identifier: BSD-3-Clause
//
// Host threads that play the blocks of a kernel, so that code written on <mpix/device.cuh> runs, and can be
// debugged and sanitised, on a machine without a GPU.
//
//   mpix::host_launch(4, 32, [&](const mpix::host_group &block) {
//       ... block.group_rank() is blockIdx.x, block.thread_rank() is threadIdx.x ...
//       mpix::pready(block, partition, preq);
//   });
#ifndef MPIX_HOST_GROUP_HPP
#define MPIX_HOST_GROUP_HPP

// First, to report a compiler that is set to an older C++.
#include <mpix/detail/cxx20.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <mpix/detail/give_way.h>
#include <mpix/detail/host_launch.h>
#include <mpix/detail/order.h>
#include <mpix/mpix.h>

namespace mpix {

namespace detail {

// As std::barrier, which yields before it blocks: beside busy processes each yield takes milliseconds.
class host_barrier {
public:
    explicit host_barrier(int members) : members_(members), missing_(members) {}
    void arrive_and_wait() {
        std::unique_lock lock(mutex_);
        const unsigned before = passed_.load(std::memory_order_relaxed);
        if (--missing_ == 0) {
            missing_ = members_;
            passed_.store(before + 1, std::memory_order_relaxed);
            lock.unlock();
            all_are_here_.notify_all();
            return;
        }
        lock.unlock();
        // The others are often near, and a wake-up takes longer than a few looks. The mutex orders what they wrote.
        constexpr int looks = 16, looks_before_yields = 12;
        for (int look = 0; look < looks && passed_.load(std::memory_order_relaxed) == before; ++look)
            if (look >= looks_before_yields && !try_yield()) break;
        lock.lock();
        all_are_here_.wait(lock, [&] { return passed_.load(std::memory_order_relaxed) != before; });
    }

private:
    std::mutex mutex_;
    std::condition_variable all_are_here_;
    const int members_;
    int missing_;
    std::atomic<unsigned> passed_{0};  // changed under the mutex
};

// What the members of one host_group share.
struct host_group_state {
    explicit host_group_state(int n) : barrier(n) {}
    host_barrier barrier;
    std::atomic<std::uint64_t> slot{0};
    std::atomic<int> against{0};
};

}  // namespace detail

/** `num_threads` host threads acting as one group. Each member holds its own copy of this object. */
class host_group {
public:
    host_group(detail::host_group_state &state, int rank, int size, int group_rank)
        : state_(&state), rank_(rank), size_(size), group_rank_(group_rank) {}

    int thread_rank() const { return rank_; }
    int num_threads() const { return size_; }
    /** Index of this group among those launched together: what blockIdx.x is to a block. */
    int group_rank() const { return group_rank_; }

    /** Wait for all members; their writes before are visible to all of them after. */
    void sync() const { state_->barrier.arrive_and_wait(); }

    /** The value that member 0 passed, for all members. */
    std::uint64_t broadcast(std::uint64_t value) const {
        if (rank_ == 0) state_->slot.store(value, std::memory_order_relaxed);
        sync();
        const std::uint64_t result = state_->slot.load(std::memory_order_relaxed);
        sync();  // nobody overwrites the slot before all have read it
        return result;
    }

    /** Whether all members passed true. */
    bool all(bool mine) const {
        if (!mine) state_->against.fetch_add(1, std::memory_order_relaxed);
        sync();
        const bool result = state_->against.load(std::memory_order_relaxed) == 0;
        sync();  // all have read it
        if (rank_ == 0) state_->against.store(0, std::memory_order_relaxed);
        sync();
        return result;
    }

private:
    detail::host_group_state *state_;
    int rank_, size_, group_rank_;
};

/**
 * Run `body` on host threads as a kernel's blocks: all at the same time, so that blocks may wait for each other. Returns
 * when all are done.
 *
 * blocks   number of groups, at least 0
 * threads  host threads of each group, at least 1
 * body     called as body(const host_group &) by every thread. An exception in it ends the program: the other members
 *          could never pass their barrier
 *
 * Meanwhile the caller makes progress, if no thread of the library does (MPIX_PROGRESS=never).
 * Thread safety: any number of threads; calls may nest.
 * Memory order: the caller's earlier writes are visible to all threads, and theirs to the caller after the return.
 */
template <class Body>
void host_launch(int blocks, int threads, const Body &body) {
    std::vector<std::unique_ptr<detail::host_group_state>> states;
    std::vector<std::thread> team;
    std::atomic<int> running{blocks * threads};
    // A nested call counts as part of the outer one.
    const detail::host_launched launch = detail::launched.at != 0
                                             ? detail::launched
                                             : detail::host_launched{detail::this_thread_number(), detail::now_ns()};
    for (int b = 0; b < blocks; ++b) states.push_back(std::make_unique<detail::host_group_state>(threads));
    for (int b = 0; b < blocks; ++b)
        for (int t = 0; t < threads; ++t)
            team.emplace_back([&, b, t] {
                detail::launched = launch;
                detail::played = {b, t};
                try {
                    body(host_group(*states[b], t, threads, b));
                } catch (...) {
                    std::terminate();
                }
                running.fetch_sub(1, std::memory_order_relaxed);  // relaxed: join() orders what the threads have done
            });
    for (unsigned round = 0; running.load(std::memory_order_relaxed) != 0 && MPIX_Progress(); ++round) {
        if (round >= 64 || !detail::try_yield()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    for (auto &thread : team) thread.join();
}

}  // namespace mpix

#endif  // MPIX_HOST_GROUP_HPP
