// SPDX-License-Identifier: BSD-3-Clause
//
// Rings the NIC's doorbell for posters that do not reach it: a GPU for which the register's page could not be mapped.
// It looks at the doorbell record, as the software HCA does; entries, records and completions stay the posters' own.
#ifndef MPIX_TRANSPORT_IB_MLX5_DOORBELL_PROXY_H
#define MPIX_TRANSPORT_IB_MLX5_DOORBELL_PROXY_H

#include <mpix/detail/work_queue.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/service_thread.h"

namespace mpix::transport::mlx5 {

/** One queue's. step() is one thread's. */
class queue_doorbell_proxy {
public:
    /** As this process reaches them, with the doorbell. Nothing has been posted yet. */
    explicit queue_doorbell_proxy(const mpix_queue_rings &rings)
        : rings_(rings), rung_(detail::load_relaxed(rings.sq_record)) {}

    /** Ring if more has been handed over since; false if not. */
    bool step() {
        // The entries are there before the record, and the record before our store. Pairs with store_release_record.
        const std::uint32_t record = detail::load_acquire_record(rings_.sq_record);  // pairs: Q3
        if (record == rung_) return false;
        rung_ = record;
        // The form with the next index. A record that was newer by now does no harm: it is what the NIC goes by.
        const std::uint32_t next = detail::from_be(detail::be32{record}) & 0xffff;
        // pairs: Q4
        detail::store_release_mmio(
            rings_.doorbell,
            static_cast<std::uint64_t>(detail::to_be32(rings_.qpn << 8).raw) << 32 | detail::to_be32(next << 8).raw);
        return true;
    }

    std::uint32_t qpn() const { return rings_.qpn; }

private:
    mpix_queue_rings rings_;
    std::uint32_t rung_;
};

/** The thread. Queues are added when they are connected, and removed before they are closed. */
class doorbell_proxy {
public:
    doorbell_proxy() { thread_.start<&doorbell_proxy::serve>("mpix-doorbell", *this); }
    ~doorbell_proxy() {
        ending_.store(true, std::memory_order_relaxed);
        thread_.join();
    }
    doorbell_proxy(const doorbell_proxy &) = delete;
    doorbell_proxy &operator=(const doorbell_proxy &) = delete;

    /** If not, the system gives no thread, and nothing is rung. */
    bool running() const { return thread_.running(); }

    void add(const mpix_queue_rings &rings) {
        change([&] { queues_.emplace_back(rings); });
    }
    /** When it returns the queue is not looked at any more. */
    void remove(std::uint32_t qpn) {
        change([&] { std::erase_if(queues_, [qpn](const queue_doorbell_proxy &q) { return q.qpn() == qpn; }); });
    }

private:
    template <class Change>
    void change(const Change &change) {
        waiting_.fetch_add(1, std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        change();
    }
    bool step_all() {
        const std::lock_guard lock(mutex_);
        bool any = false;
        for (queue_doorbell_proxy &q : queues_) any |= q.step();
        return any;
    }
    void serve() {
        // Spin for a while after work, for more often follows at once; then leave the core to others.
        constexpr int spins = 2000;
        for (int idle = 0; !ending_.load(std::memory_order_relaxed);) {
            // A mutex is not fair: leave it to others for a moment.
            if (waiting_.load(std::memory_order_relaxed) != 0)
                std::this_thread::sleep_for(std::chrono::microseconds(20));
            if (step_all())
                idle = 0;
            else if (++idle >= spins)
                std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    std::mutex mutex_;
    std::atomic<int> waiting_{0};  // for the mutex
    std::vector<queue_doorbell_proxy> queues_;
    std::atomic<bool> ending_{false};
    service_thread thread_;
};

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_DOORBELL_PROXY_H
