// SPDX-License-Identifier: BSD-3-Clause
//
// A work queue with all its words and rings in one piece of memory, and the software HCA's end of it.
#ifndef MPIX_TESTS_QUEUE_MEMORY_HPP
#define MPIX_TESTS_QUEUE_MEMORY_HPP

#include <cstdint>

#include "transport/wqe/wqe.h"

namespace queue_test {

struct queue_memory {
    static constexpr std::uint32_t qpn = 0x12f;

    alignas(64) mpix_work_queue queue;
    alignas(64) std::uint32_t records[2];  // receive, send
    std::uint32_t cq_record;
    alignas(64) std::uint64_t doorbell;
    alignas(64) mpix_queue_report report;
    // The rings follow.

    static std::size_t bytes(std::uint32_t log_sq, std::uint32_t log_cq) {
        return sizeof(queue_memory) + (std::size_t{64 + 8} << log_sq) + (std::size_t{64} << log_cq);
    }
    /** `memory` is aligned to 64 bytes and as large as bytes() says. */
    static queue_memory *make(void *memory, std::uint32_t log_sq, std::uint32_t log_cq, std::uint64_t first_block = 0,
                              std::uint64_t first_entry = 0) {
        auto *const m = new (memory) queue_memory;
        auto *const sq = reinterpret_cast<mpix::detail::wqe *>(m + 1);
        auto *const cq = reinterpret_cast<mpix::detail::cqe *>(sq + (std::size_t{1} << log_sq));
        auto *const filled = reinterpret_cast<std::uint64_t *>(cq + (std::size_t{1} << log_cq));
        m->doorbell = 0;
        const mpix_queue_rings rings{sq, cq, &m->records[1], &m->cq_record, &m->doorbell, log_sq, log_cq, qpn, 0};
        m->queue = mpix::transport::make_queue(rings, filled, &m->report, first_block, first_entry);
        return m;
    }
};
static_assert(sizeof(queue_memory) % 64 == 0);

}  // namespace queue_test

#endif  // MPIX_TESTS_QUEUE_MEMORY_HPP
