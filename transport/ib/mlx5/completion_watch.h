// SPDX-License-Identifier: BSD-3-Clause
//
// What the host knows of a queue whose completions the posting side takes: it reads along and takes nothing, so a
// kernel may have ended without having polled.
//
//   - What was taken is known from the consumer's record, and how far it went from the report. We go on behind it.
//   - An entry behind the record is of this lap, or by its owner bit not valid. It may be overwritten while we look, by
//     a later one of the same connection: that says more than the one before, of the same blocks.
#ifndef MPIX_TRANSPORT_IB_MLX5_COMPLETION_WATCH_H
#define MPIX_TRANSPORT_IB_MLX5_COMPLETION_WATCH_H

#include <mpix/detail/work_queue.h>

#include <algorithm>
#include <cstdint>

namespace mpix::transport::mlx5 {

/** One thread at a time. */
class completion_watch {
public:
    static constexpr std::uint64_t no_block = ~std::uint64_t{0};

    /** As the host reaches them. Nothing has been posted yet. */
    completion_watch(const mpix_queue_rings &rings, const mpix_queue_report *report) : rings_(rings), report_(report) {}

    void look() {
        using namespace detail;
        // The record before the report, or what we pass over might not have been reported.
        const std::uint64_t ahead = (from_be(be32{load_relaxed(rings_.cq_record)}) - next_) & 0xffffff;
        if (ahead < 1u << 23) next_ += ahead;
        // An error is there before the completion of what failed. Pairs with store_release in poll_queue.
        const std::uint64_t reported = load_acquire(&report_->completed);  // pairs: Q7
        if (const std::uint64_t error = load_relaxed(&report_->error); error != 0) fail(error, error_index(error));
        completed_ = std::max(completed_, reported);
        const std::uint64_t entries = std::uint64_t{1} << rings_.log_cq;
        for (std::uint64_t n = 0; n < entries; ++n, ++next_) {
            const cqe *const entry = &rings_.cq[next_ & (entries - 1)];
            // The NIC has read what this completes, and the rest of the entry can be read. Pairs with the NIC.
            const std::uint64_t tail = load_acquire(cqe_tail(entry));  // pairs: Q5
            const std::uint32_t word = last_word_of(tail);
            if (!cqe_valid(word, next_, rings_.log_cq)) return;
            const std::uint64_t index = completed_ + ((cqe_counter(word) - completed_) & 0xffff);
            if (qpn_of(tail) != rings_.qpn)
                fail(queue_error(syndrome_strange_completion, 0, index), completed_);
            else if (cqe_kind(word) != cqe_requester)
                // What is flushed has a cause: if we have not seen it, it lies in what we passed over.
                fail(queue_error(entry->syndrome, entry->vendor_syndrome, index),
                     entry->syndrome == syndrome_flushed ? completed_ : index);
            completed_ = index + 1;
        }
    }

    /** Blocks below are done with. */
    std::uint64_t completed() const { return completed_; }
    /** The first that was not executed; no_block if there is none. */
    std::uint64_t failed_at() const { return failed_at_; }
    /** Of it, see queue_error. */
    std::uint64_t error() const { return error_; }

private:
    void fail(std::uint64_t error, std::uint64_t at) {
        if (at >= failed_at_) return;
        failed_at_ = at;
        error_ = error;
    }

    const mpix_queue_rings rings_;
    const mpix_queue_report *const report_;
    std::uint64_t next_ = 0;  // entry
    std::uint64_t completed_ = 0, failed_at_ = no_block, error_ = 0;
};

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_COMPLETION_WATCH_H
