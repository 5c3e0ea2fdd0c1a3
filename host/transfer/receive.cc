// SPDX-License-Identifier: BSD-3-Clause
#include "host/transfer/receive.h"

#include <mpix/device.cuh>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "host/config.h"
#include "host/datatype/host_copy.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/request/explain.h"
#include "host/request/upcalls.h"

namespace mpix {
namespace {

// How the host copies a sender's partition out of the landing, for any datatype.
struct plan_taker {
    static constexpr mpix_device_call call = MPIX_CALL_NONE;
    const request &r;
    template <class Group>
    void operator()(const Group &, const mpix_prequest *, std::uint64_t offset, const char *from,
                    std::uint64_t bytes) const {
        unpack_range(*r.op.type, r.op.buffer, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes),
                     from);
    }
    // There may be no other sign that the sender's process has ended.
    bool read(const mpix_far_memory *far, char *to, const char *from, std::uint64_t bytes) const {
        const int error = far->read(far, to, from, bytes);
        if (error == ESRCH) report_end_of(r.peer_world());
        return error == 0;
    }
};

// A sender on this node maps the receive buffer in GPU memory, or a landing of the library's in its place; if neither
// is possible, the init call fails. Over a network the data comes through host memory.
status try_to_share(const request &r) {
    if (r.null_peer() || r.place.owner == nullptr || r.total_bytes() == 0) return {};
    {
        const std::lock_guard lock(setup_mutex());
        status bad;
        if (network_to(r.peer_world(), bad) != nullptr || !bad.ok()) return {};
    }
    return check_sharing(r).in_context("buf: ").of_class(MPI_ERR_BUFFER);
}

// Up to this size, copying a message out takes less time than its last partition needs to get here.
constexpr std::uint64_t short_message = 16384;

}  // namespace

status receive_request::prepare() {
    if (status bad = prepare_gpu(); !bad.ok()) return bad;
    if (status bad = try_to_share(*this); !bad.ok()) return bad;
    return allocate_words(0);
}

const char *receive_request::path_now() const {
    if (refused()) return "none";
    return route_ == nullptr ? "unmatched" : route_->path();
}

// Before the match, only the size is known. (An export after the match is not made for the inline buffer of a later
// match: see inline_wanted.)
bool receive_request::inline_capable() const {
    return route_ != nullptr ? bool(route_->inline_buffer) : fits_inline(largest_inline(!gapless));
}

// ---- an epoch ----------------------------------------------------------------------------------

void receive_request::on_kernel_start() {
    cursor_ = flagged_ = 0;
    unpack_claim_.start();
    if (gives_clear_to_send() && engine_gives_clear_to_send()) tell_clear_to_send(needed::in_this_epoch);
}

void receive_request::on_start() {
    cursor_ = flagged_ = 0;
    unpack_claim_.start();
    // Clear-to-send: the user's buffer may be written from now on.
    const bool ahead = route_ != nullptr && route_->link.wire != nullptr && epoch_ > 1 && route_->slots > 1 &&
                       !progress_is_callers();  // else nobody may call progress
    if (gives_clear_to_send()) tell_clear_to_send(ahead ? needed::in_the_next : needed::in_this_epoch);
    if (needs_engine()) progress_attend(shared_from_this());
}

// Takes what arrives from the network even while the user's threads are not in a call of the library: a sender whose
// network is full waits for that. (Within a node the sender depends on nobody, but kernels wait for what is delivered.)
bool receive_request::advance() {
    const std::unique_lock lock(engine, std::try_to_lock);
    if (lock) follow_kernels_locked();
    if (lock && delivery() != nullptr && active() && !peer_ended_) {
        deliver();
        if (engine_failure_.ok() && !delivery()->whole(epoch_)) return true;
    }
    if (!lock) return true;
    if (!active()) return false;
    if (engine_gives_clear_to_send()) return true;
    return network() != nullptr && detail::load_acquire(&words->complete) < epoch_;  // pairs: D3, N1
}

// `engine` is held.
void receive_request::deliver() {
    if (!engine_failure_.ok()) return;
    if (auto bad = delivery()->step(epoch_, device != nullptr); !bad.ok()) {
        engine_failure_ = bad;
        give_up();
    }
    if (delivery()->copying()) progress_busy();
}

// Copies out what has arrived and nobody has taken, from the cursor on. `whole`: all of the message, in as few pieces
// as possible; in one, without a look at the partitions' states, if nobody has asked for a partition. Otherwise one
// piece, up to the first partition that is missing or taken. `engine` is held.
void receive_request::take_pieces(bool whole, bool by_progress) {
    const std::uint64_t epoch = epoch_, partitions = route_->peer_partitions;
    std::uint64_t *const taken_states = route_->taken, *const flags = home->flags;
    // If so, nobody else can take a partition meanwhile.
    const bool in_place = route_->in_place(),
               apart = !in_place && !exported_to_host && (alone_ ? !by_progress : unpack_claim_.all());
    const auto is_taken = [=](std::uint64_t i) { return detail::load_relaxed(&taken_states[i]) >= 2 * epoch - 1; };
    const auto claim = [=](std::uint64_t i) {
        if (is_taken(i)) return false;
        if (!whole && detail::load_acquire(&flags[i]) < epoch) return false;  // pairs: A1, N1
        return apart || detail::claim_to_take(&taken_states[i], epoch, in_place);
    };
    const auto copy = [&](std::uint64_t first, std::uint64_t end) {
        const std::uint64_t bytes = total_bytes() / partitions;
        const char *const from = route_->source() + detail::slot_of(epoch, route_->slots) * total_bytes();
        return detail::copy_to_user(this_thread(), home, route_->far, first * bytes, from + first * bytes,
                                    (end - first) * bytes, plan_taker{*this});
    };
    if (whole && apart && cursor_ == 0 && (!alone_ || !unpack_claim_.asked())) {
        copy(0, partitions);
        copied_whole_.store(epoch, std::memory_order_release);  // pairs: F1
        cursor_ = partitions;
        return;
    }
    for (std::uint64_t first = cursor_, end; first < partitions; first = end + 1) {
        end = first;
        while (end < partitions && claim(end)) ++end;
        const bool copied = end == first || copy(first, end);
        const std::uint64_t state = copied ? 2 * epoch : 2 * epoch - 2;
        for (std::uint64_t i = first; i < end; ++i)
            detail::store_release_gpu(&taken_states[i], state);  // as in take; pairs: F1
        if (!copied) return;
        if (cursor_ == first) {
            cursor_ = end;
            // Another thread has taken this one, or is taking it.
            if (end < partitions && detail::load_acquire_gpu(&taken_states[end]) >= 2 * epoch) ++cursor_;  // pairs: F1
        }
        if (!whole) return;
    }
}

// Copies out the sender's partition at the cursor. `engine` is held.
bool receive_request::take_next() {
    std::uint64_t *const taken = &route_->taken[cursor_];
    if (detail::load_acquire_gpu(taken) < 2 * epoch_)  // pairs: F1
        detail::take(this_thread(), home, cursor_, epoch_, plan_taker{*this});
    return detail::load_acquire_gpu(taken) >= 2 * epoch_;  // pairs: F1
}

// The sender may tell of `complete` later: where several threads call MPI, in its own Wait. The last flag first, so as
// to leave the others to the core that writes them. `engine` is held.
bool receive_request::all_flags_are_here() {
    const std::uint64_t *const flags = home->flags, n = route_->peer_partitions;
    if (detail::load_acquire(&flags[n - 1]) < epoch_) return false;  // pairs: A1, N1
    for (; flagged_ < n; ++flagged_)
        if (detail::load_acquire(&flags[flagged_]) < epoch_) return false;  // pairs: A1, N1
    return true;
}

// Copies sender partitions to the user's buffer, in order, as far as they have arrived. `engine` is held.
bool receive_request::take_in_order(bool by_progress) {
    const std::uint64_t partitions = route_->peer_partitions;
    // pairs: D3, N1
    const bool all_here = detail::load_acquire(&words->complete) >= epoch_ || all_flags_are_here();
    // A short message is copied at once.
    if (!all_here && !route_->in_place() && total_bytes() <= short_message) return false;
    // Pieces of an incomplete message: only in a process of one thread, and if the sender copies none.
    if (cursor_ < partitions && (all_here || (alone_ && !route_->in_place()))) take_pieces(all_here, by_progress);
    for (; cursor_ < partitions; ++cursor_)
        if (!take_next()) return false;
    // A thread that remembers this epoch as the running one (look) must find that it is over before another can start.
    // The sender writes this flag last, perhaps later than now; the exchange keeps what the sender writes meanwhile.
    std::uint64_t *const whole = &home->flags[partitions];
    if (const std::uint64_t seen = detail::load_relaxed(whole); seen < epoch_)
        detail::cas_acq_rel_gpu(whole, seen, epoch_);  // pairs: D4
    return true;
}

status receive_request::snapshot() {
    seen_flags_.resize(route_->peer_partitions);
    return route_->owner->read(seen_flags_.data(), route_->flags, route_->peer_partitions * sizeof(std::uint64_t),
                               place.device);
}

bool receive_request::flagged_all() const {
    return std::all_of(seen_flags_.begin(), seen_flags_.end(), [this](std::uint64_t f) { return f >= epoch_; });
}

bool receive_request::done() {
    const std::uint64_t epoch = device != nullptr || exported_to_host ? follow_kernels() : epoch_;
    if (null_peer()) return true;
    // A wait for a short message reads its flags only in each 64th look: reading takes the cache lines from the sender
    // that writes them. Usually `complete` ends it. If the sender's engine has had a part, `complete` may come late.
    // pairs: D3, N1, C3
    if (place.owner == nullptr && total_bytes() <= short_message && detail::load_acquire(&words->complete) < epoch &&
        detail::load_acquire(&words->matched) != MPIX_NEVER &&
        looks_.fetch_add(1, std::memory_order_relaxed) % 64 != 63)
        return false;
    const std::lock_guard lock(engine);
    return look_at_flags() || (quiet_look_due() && look_on_device());
}

// `engine` is held.
bool receive_request::look_at_flags(bool by_progress) {
    if (verdict_ == verdict::provisional) return false;
    if (verdict_ != verdict::none) verdict_ = verdict::raised;  // the user is told now, so the match stays
    staged_delivery *const staged = delivery();
    // After an error, too, the buffer is the user's only when no copy to it is under way.
    if (verdict_ == verdict::raised || peer_ended_ || !engine_failure_.ok()) return staged == nullptr || staged->idle();
    if (route_ == nullptr) return false;  // not matched yet
    if (staged != nullptr) {
        deliver();
        return staged->whole(epoch_) || (!engine_failure_.ok() && staged->idle());
    }
    if (!flags_on_device()) return take_in_order(by_progress);
    // pairs: D3, N1
    if (detail::load_acquire(&words->complete) < epoch_)
        return false;  // pairs with say_all_ready's and conclude's store_release
    return !takes_inline_ || detail::load_relaxed(&words->inline_buffer) != epoch_ || inline_drained();
}

// The sender has completed the epoch, and part of it came through the inline buffer. `engine` is held.
bool receive_request::inline_drained() {
    if (inline_drain_->told_all(epoch_)) return true;
    // Some partitions may have come another way, as their flags say; or no kernel asks for them, so the library takes
    // them out.
    if (!inline_drain_->overdue(epoch_)) return false;
    if (auto bad = snapshot(); !bad.ok()) {
        engine_failure_ = bad;
        return true;
    }
    if (flagged_all()) return true;
    drain_inline();
    return !engine_failure_.ok();
}

void receive_request::drain_inline() {
    if (auto bad = inline_drain_->take_rest((device != nullptr ? device : takers_.front())->handle_for_library());
        !bad.ok())
        engine_failure_ = bad;
}

bool receive_request::done_exactly() {
    const std::lock_guard lock(engine);
    follow_kernels_locked();
    return null_peer() || look_at_flags() || look_on_device();
}

// What the sender has not told us yet, or will not tell us; see say_all_ready. `engine` is held.
bool receive_request::look_on_device() {
    if (!flags_on_device() || device == nullptr) return false;
    // If the GPU's memory cannot be read, there is no other sign of a quiet end.
    const auto failed = [this](const status &bad) {
        if (may_end_quietly()) engine_failure_ = bad;
        return may_end_quietly();
    };
    if (const status bad = snapshot(); !bad.ok()) return failed(bad);
    if (!flagged_all()) {
        // What lies in the inline buffer has no flag before somebody takes it out. Without a progress thread at the
        // sender, its word may come late.
        if (takes_inline_ && inline_drain_->look_due(epoch_)) drain_inline();
        return false;
    }
    // As in take_in_order: a kernel that remembers this epoch as the running one must find that it is over. The sender
    // writes the same word, and cannot be in another epoch before our next Start.
    std::uint64_t *const whole = route_->flags + route_->peer_partitions;
    const status bad = route_->owner->write(whole, &epoch_, sizeof epoch_, place.device);
    return bad.ok() || failed(bad);
}

// Whether partition j has arrived, for a message in host memory.
bool receive_request::arrived_here(int j, std::uint64_t epoch) {
    // The route as threads see it that hold no lock. A faulty peer may undo the match at any time, and another match
    // may have no landing (null).
    const std::uint64_t senders = detail::load_relaxed(&home->peer_partitions);
    const std::uint64_t *const taken = detail::load_pointer(&home->taken);
    // The usual case, a loop that asks again and again. After the first epoch the match is final.
    // pairs: F1
    if (epoch > 1 && taken != nullptr && senders == static_cast<std::uint64_t>(op.partitions) &&
        detail::load_acquire_gpu(&taken[j]) >= 2 * epoch)
        return true;
    if (copied_whole_.load(std::memory_order_acquire) >= epoch) return true;  // pairs: F1
    if (alone_)
        unpack_claim_.ask();
    else if (taken != nullptr && !unpack_claim_.some())
        return detail::taken_all(home, detail::sender_partitions(home, j, senders), epoch);
    return detail::arrived(this_thread(), home, j, plan_taker{*this});
}

status receive_request::arrived(int j, bool &flag) {
    if (j < 0 || j >= op.user_partitions()) return no_such_partition(op, j);
    flag = true;
    if (!active() || null_peer()) return {};
    const std::uint64_t epoch = device != nullptr || exported_to_host ? follow_kernels() : epoch_;
    const std::uint64_t route_word = detail::load_acquire(&words->matched);  // pairs: C3
    // Arrived, with the error: a loop over the flag ends.
    if (route_word == MPIX_NEVER) return ending();
    if (route_word == 0) {
        flag = false;
        return {};
    }
    if (place.owner == nullptr) {
        flag = arrived_here(j, epoch);
        return {};
    }
    // The flags are in the GPU's memory; the host looks at them only when asked about one partition.
    const std::lock_guard lock(engine);
    if (route_ == nullptr) {  // the match was undone meanwhile
        flag = false;
        return {};
    }
    const detail::overlap range = detail::sender_partitions(home, j, route_->peer_partitions);
    if (delivery() != nullptr) {
        deliver();
        for (std::uint64_t i = range.first; i <= range.last; ++i) flag = flag && delivery()->delivered(i, epoch_);
        return {};
    }
    if (!takes_inline_ && detail::load_acquire(&words->complete) >= epoch_) return {};  // pairs: D3, N1
    if (auto bad = snapshot(); !bad.ok()) {
        flag = false;
        return bad.of_class(MPI_ERR_OTHER);
    }
    for (std::uint64_t i = range.first; i <= range.last; ++i) flag = flag && seen_flags_[i] >= epoch_;
    if (!flag && takes_inline_) drain_inline();  // if it is there, the next call finds it
    if (!engine_failure_.ok()) return engine_failure_.of_class(MPI_ERR_OTHER);
    return {};
}

bool receive_request::prepared() {
    if (null_peer()) return true;
    const std::scoped_lock lock(setup_mutex(), engine);
    return connected || refusal_ != refused_not || peer_ended_;
}

status receive_request::outcome() {
    const std::lock_guard lock(engine);
    if (peer_ended_) return ended_peer();
    if (refusal_ == refused_size) return failure_.of_class(MPI_ERR_TRUNCATE);
    if (refusal_ != refused_not)
        return failure_.in_context(format("no path from rank {}: ", op.peer)).of_class(class_of(failure_));
    if (!engine_failure_.ok() && network() != nullptr && !network()->lost(peer_world()).ok()) return ended_peer();
    if (!engine_failure_.ok()) return engine_failure_;
    return {};
}

void receive_request::status_of(MPI_Status *status) const {
    status->MPI_SOURCE = op.peer;
    status->MPI_TAG = null_peer() ? MPI_ANY_TAG : op.tag;
    PMPI_Status_set_elements_x(status, MPI_BYTE, null_peer() ? 0 : static_cast<MPI_Count>(total_bytes()));
}

}  // namespace mpix
