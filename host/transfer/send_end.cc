// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a send's epoch: what the receiver is told, and when the host's Wait may return.
#include <mpix/device.cuh>

#include <algorithm>
#include <cstddef>

#include "host/export/device_request.h"
#include "host/format.h"
#include "host/transfer/send.h"

namespace mpix {

// Once all partitions are ready, and all that was moved will arrive before later words: tells the receiver that the epoch has
// ended (told_end_). Once nothing reads the send buffer any more: ends the epoch (concluded_).
void send_request::conclude() {
    if ((engine_moves_ == 0 && posted_ == nullptr) || concluded_ == epoch_ || waiting_to_move()) return;
    if (!std::all_of(moving_.begin(), moving_.end(), [](const move &m) { return !m.rts && m.transfer->in_order(); }))
        return;
    tell_if_all_moved();
    if (detail::load_acquire(&words->all_ready) < epoch_) return;  // pairs: D2, D5
    // All partitions' ring entries are visible since all_ready is; one that came after drain() looked is found in the
    // next round.
    const auto n = static_cast<std::uint64_t>(op.partitions);
    // pairs: G1
    if (ring_taken_ - ring_at_start_ < n &&
        detail::load_acquire(&home->ring[ring_taken_ % n]) >> 32 == (epoch_ & 0xffffffffu))
        return;
    // All that was posted is under way, ahead of the words below, and nothing reads the buffer any more.
    if (posted_ != nullptr) {
        const std::uint64_t posted = detail::load_relaxed(&words->posted);
        if (posted_->queue->completed() < posted) return;
        if (const status broken = posted_->queue->failed(posted); !broken.ok()) fail(broken);
    }
    if (told_end_ != epoch_) {
        if (route_ == nullptr && refusal_ == refused_not) fail(memory_taken_back);
        tell_end();
    }
    if (!moving_.empty()) return;
    concluded_ = epoch_;
    detail::store_release(&words->concluded, epoch_);  // for kernels that wait for the epoch's end; pairs: K3
}

// Unless the poster of the last partition has. Words that are put now appear after all that the engine or a queue has moved.
void send_request::tell_end() {
    const auto n = static_cast<std::uint64_t>(op.partitions);
    const bool good = refusal_ == refused_not && engine_failure_.ok();
    const bool told = posted_ != nullptr && detail::load_relaxed(&words->ended) == epoch_;
    if (good && !told) set_flags(route_->chunks.all(), 1);
    // The receiver's host relies on the flags once it is told that the message is complete; and after a failure no flag
    // may be under way when the flags' memory is given back.
    if (route_ != nullptr && !route_->arrival.remote && route_->arrival.device != transport::on_host)
        if (auto bad = transport::devices()->flush_words(route_->arrival.device); !bad.ok()) fail(bad);
    if (good && engine_failure_.ok()) {
        // Partitions that kernels have moved may be in the inline buffer.
        const peer_link &link = route_->link;
        if (route_->inline_buffer && device != nullptr && detail::load_relaxed(&words->inline_buffer) != 0 &&
            engine_moves_ < n)
            if (auto bad = link.tell(route_->peer_words, offsetof(mpix_words, inline_buffer), epoch_); !bad.ok())
                fail(bad);
        if (!told)
            if (auto bad = link.tell(route_->peer_words, offsetof(mpix_words, complete), epoch_); !bad.ok()) fail(bad);
        // The network may have accepted the words, but be unable to send them before its next call.
        if (link.wire != nullptr) departing_ = link.wire->depart(peer_world());
    }
    told_end_ = epoch_;
}

bool send_request::done() {
    // The usual case: the host's Preadys have stored everything, so the engine has nothing to do. The epoch is marked
    // ready only after all deferrals are known.
    if (device == nullptr && !exported_to_host && !null_peer()) {
        bool all = detail::load_acquire(&words->all_ready) >= epoch_;  // pairs: D2
        if (!all && fast_path_.all_moved()) {
            const std::lock_guard lock(engine);
            tell_if_all_moved();
            all = true;
        }
        const bool may_wait_for_copies = all && detail::load_pointer(&home->far) != nullptr;
        if (detail::load_relaxed(&home->defer_epoch) != epoch_ && !may_wait_for_copies) return all;
    }
    const std::uint64_t epoch = device != nullptr || exported_to_host ? follow_kernels() : epoch_;
    try_advance();
    const bool told = detail::load_acquire(&words->all_ready) >= epoch;  // pairs: D2
    if (!told && device == nullptr) return false;
    if (told && null_peer()) return true;  // ready, and nowhere to go
    const std::lock_guard lock(engine);
    if (!told && quiet_look_due()) look_for_quiet_end();
    return complete() && all_copied(true);
}

// The last caller of pready has stored told_epoch after whatever it told others, and after the ring entries; so this
// stands for all_ready. `engine` is held.
void send_request::look_for_quiet_end() {
    std::uint64_t told = 0;
    if (const status bad = device->told_epoch(told); !bad.ok()) {
        fail(bad);
        told = 2 * epoch_;
    }
    // A kernel that still runs may have gone on meanwhile, and have told a later epoch.
    const std::uint64_t looked_for = epoch_;
    follow_kernels_locked();
    if (told >> 1 >= looked_for && epoch_ == looked_for && detail::load_relaxed(&words->all_ready) < epoch_)
        detail::store_release(&words->all_ready, epoch_);  // pairs: D2
}

// `engine` is held.
bool send_request::complete() const {
    if (detail::load_acquire(&words->all_ready) < epoch_) return false;  // pairs: D2
    // The host may have marked what kernels had marked already: count_shares notices that.
    if (waiting_to_move() || !moving_.empty() || (host_share_ != 0 && counted_ != epoch_)) return false;
    if (concluded_ == epoch_) return true;
    if (posted_ != nullptr) return false;
    // Complete without the engine only if nothing was deferred: all ring entries are visible by now.
    const auto n = static_cast<std::uint64_t>(op.partitions);
    // pairs: G1
    return engine_moves_ == 0 && detail::load_acquire(&home->ring[ring_taken_ % n]) >> 32 != (epoch_ & 0xffffffffu);
}

bool send_request::prepared() {
    if (null_peer()) return true;
    // This epoch's clear-to-send itself, whatever room the landing has.
    const std::uint64_t epoch = follow_kernels();
    return detail::load_acquire(&words->clear_to_send) >= epoch;  // pairs: C2, N1
}

status send_request::outcome() {
    const std::lock_guard lock(engine);
    if (peer_ended_) return ended_peer();
    if (!engine_failure_.ok() && network() != nullptr && !network()->lost(peer_world()).ok()) return ended_peer();
    if (!failure_.ok())
        return failure_.in_context(format("no path to rank {}: ", op.peer)).of_class(class_of(failure_));
    if (device != nullptr && host_share_ != 0)
        if (auto bad = look_for_both(); !bad.ok()) fail(bad);
    if (!engine_failure_.ok()) return engine_failure_;
    return {};
}

}  // namespace mpix
