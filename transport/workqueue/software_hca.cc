// SPDX-License-Identifier: BSD-3-Clause
#include "transport/workqueue/software_hca.h"

#include <mpix/detail/give_way.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

// A test may hold the thread up between two steps.
#ifndef MPIX_ON_HCA_STEP
#define MPIX_ON_HCA_STEP() static_cast<void>(0)
#endif

namespace mpix::transport {

using namespace mpix::detail;

namespace {

// Vendor's syndromes: a ConnectX-6 says this of flushed entries; the other one is ours, so that a report tells who
// found the error.
constexpr std::uint8_t vendor_flushed = 0xf9, vendor_software = 0x5a;

}  // namespace

// ---- memory --------------------------------------------------------------------------------------------------------

void memory_backend::write(const hca_write &what, hca_operation &op) {
    void *const to = keys_.find(what.remote_key, what.remote_address, what.bytes, may_write_remotely);
    if (to == nullptr) {
        op.finish(syndrome_remote_access);
        return;
    }
    if (what.is_inline && what.bytes % 8 == 0 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
        for (std::uint64_t at = 0; at < what.bytes; at += 8) {
            std::uint64_t flag;
            std::memcpy(&flag, static_cast<const char *>(what.source) + at, sizeof flag);
            // Flags: the payload of earlier writes before them. Pairs with load_acquire() of whoever waits.
            store_release(static_cast<std::uint64_t *>(to) + at / 8, flag);  // pairs: N1
        }
    } else {
        std::memcpy(to, what.source, what.bytes);
    }
    op.finish(syndrome_none);
}

// ---- one queue -----------------------------------------------------------------------------------------------------

hca_queue::hca_queue(const mpix_queue_rings &rings, const key_table &local_keys, hca_backend &backend,
                     std::uint64_t first_block, std::uint64_t first_entry)
    : rings_(rings),
      local_keys_(local_keys),
      backend_(backend),
      next_(first_block),
      posted_(first_block),
      produced_(first_entry),
      consumed_(first_entry) {
    if (rings_.doorbell != nullptr) last_kick_ = load_relaxed(rings_.doorbell);
}

bool hca_queue::look_at_doorbell() {
    if (faults.stall_doorbell.load(std::memory_order_relaxed)) return false;
    const std::uint64_t size = std::uint64_t{1} << rings_.log_sq;
    // The kick before the record: what it speaks of has to be in the record.
    const std::uint64_t kick = rings_.doorbell != nullptr ? load_relaxed(rings_.doorbell) : 0;
    // The entries below, and their payload, can be read. Pairs with store_release_record.
    const auto record = static_cast<std::uint16_t>(from_be(be32{load_acquire_record(rings_.sq_record)}));  // pairs: Q3
    const std::uint64_t ahead = static_cast<std::uint16_t>(record - next_);
    const bool possible = ahead <= size && next_ + ahead >= posted_;
    if (!possible) counts.bad_records.fetch_add(1, std::memory_order_relaxed);
    if (kick != last_kick_) {
        last_kick_ = kick;
        counts.kicks.fetch_add(1, std::memory_order_relaxed);
        const std::uint32_t first = from_be(be32{static_cast<std::uint32_t>(kick)});
        const std::uint32_t second = from_be(be32{static_cast<std::uint32_t>(kick >> 32)});
        // Either the start of the last entry, whose length is not 0, or the index behind it and a length of 0.
        const auto rung = static_cast<std::uint16_t>((first >> 8) + ((second & 0xff) != 0 ? 1 : 0));
        const auto left = static_cast<std::uint16_t>(record - rung);
        if (second >> 8 != rings_.qpn || left >= 0x8000) counts.strange_kicks.fetch_add(1, std::memory_order_relaxed);
    }
    if (!possible || next_ + ahead == posted_) return false;
    posted_ = next_ + ahead;
    return true;
}

void hca_queue::start(const decoded_wqe &d, hca_operation &op) {
    if (d.problem != syndrome_none) {
        op.finish(d.problem);
        return;
    }
    if (op.index_ == faults.fail_at.load(std::memory_order_relaxed)) {
        op.finish(faults.fail_with.load(std::memory_order_relaxed));
        return;
    }
    hca_write what{d.remote_address, d.remote_key, d.inlined, d.bytes, d.is_inline};
    if (!d.is_inline && d.bytes > 0) {
        what.source = local_keys_.find(d.local_key, d.local_address, d.bytes, may_read_locally);
        if (what.source == nullptr) {
            op.finish(syndrome_local_protection);
            return;
        }
    }
    counts.executed.fetch_add(1, std::memory_order_relaxed);
    if (d.opcode == wqe_nop || d.bytes == 0)
        op.finish(syndrome_none);
    else
        backend_.write(what, op);
}

bool hca_queue::execute_next() {
    if (next_ == posted_) return false;
    if (const std::uint64_t delay = faults.delay_ns.load(std::memory_order_relaxed); delay != 0) {
        const std::uint64_t now = now_ns();
        if (now < due_ns_) return true;
        due_ns_ = now + delay;
    }
    wqe *const slot = &rings_.sq[next_ & ((std::uint64_t{1} << rings_.log_sq) - 1)];
    wqe entry;
    std::memcpy(&entry, slot, sizeof entry);
    const decoded_wqe d = decode(entry, next_, rings_.qpn);
    if (d.problem == syndrome_none && d.is_inline && !backend_.in_order() && !under_way_.empty() && !stop_)
        return false;
    if (faults.poison) std::memset(static_cast<void *>(slot), poison_byte, sizeof *slot);
    if (d.torn) counts.torn.fetch_add(1, std::memory_order_relaxed);
    hca_operation &op = under_way_.emplace_back();
    op.index_ = next_++;
    op.opcode_ = d.opcode;
    op.signalled_ = d.signalled;
    if (stop_) {
        op.finish(syndrome_flushed);
    } else {
        try {
            start(d, op);
        } catch (...) {  // as if it had not been looked at; what was written of it is written again
            under_way_.pop_back();
            --next_;
            throw;
        }
    }
    if (const std::uint64_t state = load_relaxed(&op.state_);
        state != 0 && static_cast<std::uint8_t>(state) != syndrome_none)
        stop_ = true;
    return true;
}

bool hca_queue::room_for_entry() {
    const std::uint64_t size = std::uint64_t{1} << rings_.log_cq;
    if (produced_ - consumed_ < size) return true;
    // No order: who posted the entry that completes here had seen this completion-queue entry taken.
    const std::uint32_t record = from_be(be32{load_relaxed(rings_.cq_record)});
    consumed_ += (record - consumed_) & 0xffffff;
    if (produced_ - consumed_ < size) return true;
    counts.overruns.fetch_add(1, std::memory_order_relaxed);
    return false;
}

void hca_queue::write_entry(const hca_operation &op, syndrome outcome, std::uint8_t vendor) {
    cqe *const entry = &rings_.cq[produced_ & ((std::uint64_t{1} << rings_.log_cq) - 1)];
    entry->vendor_syndrome = vendor;
    entry->syndrome = outcome;
    MPIX_ON_HCA_STEP();
    // The rest of the entry first, our reads of the payload, and what was done to the slots. Pairs with fence_acquire
    // in
    // poll_queue. pairs: Q5
    store_release(const_cast<std::uint64_t *>(cqe_tail(entry)),
                  cqe_tail(to_be32(static_cast<std::uint32_t>(op.opcode_) << 24 | rings_.qpn),
                           cqe_last_word(op.index_, outcome == syndrome_none ? cqe_requester : cqe_requester_error,
                                         cqe_owner(produced_, rings_.log_cq))));
    ++produced_;
}

bool hca_queue::complete() {
    bool any = false;
    for (; !under_way_.empty(); under_way_.pop_front()) {
        const hca_operation &op = under_way_.front();
        // What the back end did for this write is done. Pairs with finish, perhaps of another thread.
        const std::uint64_t state = load_acquire(&op.state_);  // pairs: Q10
        if (state == 0) break;
        auto outcome = static_cast<syndrome>(static_cast<std::uint8_t>(state));
        std::uint8_t vendor = 0;
        if (broken_) {
            outcome = syndrome_flushed;  // also what had gone well: nobody can tell any more
            vendor = vendor_flushed;
        } else if (outcome != syndrome_none) {
            vendor = vendor_software;
        }
        if (outcome != syndrome_none || op.signalled_) {
            if (!room_for_entry()) break;
            write_entry(op, outcome, vendor);
        }
        if (outcome != syndrome_none) {
            (broken_ ? counts.flushed : counts.failed).fetch_add(1, std::memory_order_relaxed);
            if (!broken_) failed_at_ = op.index_;
            broken_ = stop_ = true;
        }
        any = true;
    }
    return any;
}

bool hca_queue::step(unsigned most) {
    backend_.progress();
    bool any = complete();
    any |= look_at_doorbell();
    for (unsigned i = 0; i < most && execute_next(); ++i) any = true;
    return any;
}

// ---- the thread ----------------------------------------------------------------------------------------------------

software_hca::software_hca() {
    if (const int error = thread_.start<&software_hca::serve>("mpix-hca", *this); error != 0)
        throw std::system_error(error, std::generic_category());
}

software_hca::~software_hca() {
    ending_.store(true, std::memory_order_relaxed);
    thread_.join();
}

template <class Change>
void software_hca::change(const Change &change) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    change();
}

void software_hca::add(std::shared_ptr<hca_queue> queue) {
    change([&] { queues_.push_back(std::move(queue)); });
}

void software_hca::remove(const hca_queue *queue) {
    change([&] { std::erase_if(queues_, [&](const auto &q) { return q.get() == queue; }); });
}

bool software_hca::step_all() {
    const std::lock_guard lock(mutex_);
    bool any = false;
    for (const auto &q : queues_) {
        try {
            any |= q->step();
        } catch (const std::bad_alloc &) {  // it goes on when there is memory
        }
    }
    return any;
}

void software_hca::serve() {
    // Spin while there is work, then yield, then sleep: others may need the core more.
    constexpr int spins = 200, yields = 232;
    for (int idle = 0; !ending_.load(std::memory_order_relaxed);) {
        // A mutex is not fair: leave it to others for a moment.
        if (waiting_.load(std::memory_order_relaxed) != 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
        if (step_all())
            idle = 0;
        else if (++idle < spins)
            continue;
        else if (idle >= yields || !try_yield())
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

}  // namespace mpix::transport
