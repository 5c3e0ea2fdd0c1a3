// SPDX-License-Identifier: BSD-3-Clause
//
// A receive's match: it is made, refused or undone.
#include <mpix/device.cuh>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "host/export/device_request.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/request/explain.h"
#include "host/request/upcalls.h"
#include "host/transfer/receive.h"

namespace mpix {

receive_request::~receive_request() {
    // This comes first: a kernel may be working with the rest, and keeps it if it does not end.
    if (inline_drain_ != nullptr && !inline_drain_->end()) {
        if (route_ != nullptr) route_->arrival->abandon();
        words_region = {};
        for (auto &taker : takers_) taker.release();
        device.release();
    }
}

// ---- setup: setup_mutex is held ---------------------------------------------------------------

void receive_request::bind(std::uint64_t from, const offer_body &sender) {
    const std::lock_guard lock(engine);
    freed_by_sender_ = false;
    peer_number = from;
    accept_body answer{.partitions = op.partitions, .bytes = total_bytes()};
    const auto reply = [&] { send_control(peer_world(), {.from = number, .to = peer_number, .body = answer}); };
    if (verdict_ == verdict::raised) {  // that there is no path to that process
        answer.refusal = refused_unreachable;
        answer.reason = reason_for_peer(failure_);
        return reply();
    }
    if (sender.bytes != total_bytes()) {
        refusal_ = refused_size;
        failure_ = attempt([&] {
            const auto counted = [](std::uint64_t bytes, int partitions) {
                return bytes == 0 ? std::string("no bytes") : format("{} bytes in {} partitions", bytes, partitions);
            };
            return failure(format("the matching send of rank {} (world rank {}), tag {}, has {}, the receive {}",
                                  op.peer, peer_world(), op.tag, counted(sender.bytes, sender.partitions),
                                  counted(total_bytes(), op.partitions)));
        });
        refuse(sender, nullptr, answer);
    } else {
        receive_match match{*this, sender, {}, {}, nullptr, former_flags_.empty()};
        failure_ = attempt([&] {
            const auto since = explain_clock(op);
            transport::ends pair;
            pair.unreached = reach_words(*this, sender, match.link, words_);
            pair.by_network = match.link.wire != nullptr;
            pair.receiver_on_gpu = place.owner != nullptr;
            pair.sender_has_devices = sender.flags.has(offer_flag::has_devices);
            match.choice = transport::choose(pair);
            match.words = words_ ? &*words_ : nullptr;
            status bad = make_receive_route(match, route_, sender_gpu_);
            if (bad.ok()) bad = describe(*route_, *this, answer);
            explain_time(*this, "make and describe what the sender maps", since);
            return bad;
        });
        if (failure_.ok()) {
            show_route();
            if (needs_engine() && active()) progress_attend(shared_from_this());
        } else {
            refusal_ = refused_path;
            route_ = nullptr;
            sender_gpu_ = nullptr;
            refuse(sender, match.choice ? &*match.choice : nullptr, answer);
        }
    }
    reply();
}

// The sender's words are needed for our clear-to-send, which tells it that the refusal is final.
void receive_request::refuse(const offer_body &sender, const transport::choice *choice, accept_body &answer) {
    if (!words_)
        static_cast<void>(attempt([&] {
            peer_link link;
            return reach_words(*this, sender, link, words_);
        }));
    verdict_ = words_ ? verdict::provisional : verdict::refused;
    answer.refusal = words_ ? refusal_ : refused_unreachable;
    answer.reason = reason_for_peer(failure_);
    if (verdict_ == verdict::refused) give_up();
    explain_receive(*this, choice, {}, failure_.message().c_str());
}

// Stores the route first, then the word that says it is there (store_release; pairs with load_acquire_pair in
// read_host).
void receive_request::show_route() {
    detail::store_relaxed(&home->peer_partitions, route_->peer_partitions);
    detail::store_relaxed(&home->slots, route_->slots);
    if (!flags_on_device() && delivery() == nullptr) {
        detail::store_pointer(&home->far, static_cast<const mpix_far_memory *>(route_->far));
        detail::store_pointer(&home->taken, route_->taken);
        detail::store_pointer(&home->landing, const_cast<char *>(route_->source()));
        detail::store_pointer(&home->flags, route_->flags);
    }
    if (words_->link.wire == nullptr)
        detail::store_pointer(&home->peer_clear_to_send,
                              &static_cast<mpix_words *>(words_->region.address)->clear_to_send);
    if (device != nullptr)
        if (auto bad = attempt([this] { return install_on_device(); }); !bad.ok()) engine_failure_ = bad;
    detail::store_release(&words->matched, 1);  // pairs: C3
}

// Nothing will arrive any more: whoever asks for a partition must not wait for it.
void receive_request::give_up() {
    if (route_ != nullptr) {
        // Executors that have seen clear-to-send open look at the word again once the whole message seems to be there.
        const std::uint64_t whole = MPIX_NEVER;
        std::uint64_t *const flag = route_->flags + route_->peer_partitions;
        if (delivery() != nullptr) {
            if (auto bad = delivery()->tell_never(); !bad.ok()) say(bad.message());
        } else if (!flags_on_device())
            detail::store_relaxed(flag, whole);
        else if (auto bad = route_->owner->write(flag, &whole, sizeof whole, place.device); !bad.ok())
            say(bad.message());
    }
    detail::store_release(&words->matched, MPIX_NEVER);  // pairs with load_acquire_pair in read_host; pairs: C3
}

// Pairs with load_acquire_pair in read_host.
void receive_request::tell_clear_to_send(needed when) {
    const auto tell = [this](std::uint64_t offset, std::uint64_t value) {
        if (auto bad = words_->link.tell(words_->region, offset, value); !bad.ok()) engine_failure_ = bad;
    };
    // From the first epoch with our kernels on. Stored before clear-to-send: see read_host.
    if (inline_drain_ != nullptr && device != nullptr && !takes_inline_) {
        takes_inline_ = true;
        tell(offsetof(mpix_words, inline_buffer), 1);
    }
    if (route_ != nullptr && route_->in_place())
        tell(offsetof(mpix_words, read_cost), detail::load_relaxed(&route_->far->read_cost));
    constexpr std::uint64_t at = offsetof(mpix_words, clear_to_send);
    if (when == needed::in_this_epoch)
        tell(at, epoch_);
    else if (auto bad = words_->link.tell_delayed(words_->region, at, epoch_, route_->slots / 2 - 1); !bad.ok())
        engine_failure_ = bad;
}

// From here on Start gives clear-to-send itself. An epoch that is running already, or has failed already, gets it now.
void receive_request::open() {
    if (bond_ != bond::loose) return;  // it changes under setup_mutex
    const std::lock_guard lock(engine);
    bond_ = bond::single;
    if (gives_clear_to_send() && epoch_ != 0) tell_clear_to_send(needed::in_this_epoch);
}

void receive_request::make_final() {
    open();
    const std::lock_guard lock(engine);
    bond_ = bond::final;
    if (verdict_ != verdict::provisional) return;
    verdict_ = verdict::refused;
    give_up();
}

// The sender has mapped the landing, or could not.
void receive_request::take_connect(std::uint64_t from, const connect_body &m) {
    // The user may have freed a request whose pair was refused. Then we have sent DETACH, and must not touch the
    // sender's words: they may belong to another request by now. Before the sender has answered our WITHDRAW, this
    // CONNECT belongs to an earlier match.
    if (from != peer_number || connected || freed || parting()) return;
    const std::lock_guard lock(engine);
    connected = true;
    if (refusal_ == refused_not)
        explain_receive(*this, &route_->choice, landing(), m.refusal != refused_not ? m.reason.c_str() : "");
    if (m.refusal != refused_not && refusal_ == refused_not) {
        refusal_ = refused_path;
        failure_ = attempt([&m] { return from_sentence(m.reason.c_str()); });
        verdict_ = bond_ == bond::final ? verdict::refused : verdict::provisional;
    }
    // Before kernels are told that nothing will come: after that they may start epochs, and tell the sender of these.
    if (gives_clear_to_send() && epoch_ != 0) tell_clear_to_send(needed::in_this_epoch);
    if (refusal_ != refused_not && verdict_ == verdict::refused) give_up();
}

landing_kind receive_request::landing() const {
    landing_kind now = route_->kind();
    if (!why_no_view_.empty()) now.no_rget = why_no_view_;
    return now;
}

void receive_request::part() {
    const std::lock_guard lock(engine);
    const parted_match parted{peer_number, route_};
    if (undo_match()) parting_.push_back(parted);
}

bool receive_request::unbind() {
    const std::lock_guard lock(engine);
    freed_by_sender_ = undo_match();
    return freed_by_sender_;
}

// `engine` is held, too.
bool receive_request::undo_match() {
    bond_ = bond::loose;
    takes_inline_ = false;
    flagged_ = 0;
    copied_whole_.store(0, std::memory_order_relaxed);
    if (verdict_ == verdict::raised) return false;
    verdict_ = verdict::none;
    if (device != nullptr)
        if (auto bad = device->install({}); !bad.ok()) engine_failure_ = bad;
    inline_drain_ = nullptr;
    detail::store_release(&words->matched, 0);  // pairs: C3
    detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(nullptr));
    detail::store_pointer(&home->landing, static_cast<char *>(nullptr));
    detail::store_pointer(&home->taken, static_cast<std::uint64_t *>(nullptr));
    detail::store_pointer(&home->far, static_cast<const mpix_far_memory *>(nullptr));
    detail::store_pointer(&home->peer_clear_to_send, static_cast<std::uint64_t *>(nullptr));
    former_flags_.push_back(route_ == nullptr ? nullptr : route_->arrival);
    if (active() || delivery() != nullptr) former_routes_.push_back(route_);
    words_view_ = nullptr;
    why_no_view_.clear();
    route_ = nullptr;
    sender_gpu_ = nullptr;
    words_.reset();
    refusal_ = refused_not;
    failure_ = {};
    connected = peer_gone = false;
    peer_number = 0;
    question = nullptr;  // the answer was about that send
    return true;
}

void receive_request::take_back_buffer() {
    if (route_ != nullptr && route_->by_puts()) route_->registered->take_back();
    for (const auto &former : former_routes_)
        if (former != nullptr && former->by_puts()) former->registered->take_back();
}

// The sender's mapping may now be closed. (Only in a call of the user's own: see close_unused_mappings.)
void receive_request::on_leave() {
    const std::lock_guard lock(engine);
    take_back_buffer();
    words_view_ = nullptr;
    sender_gpu_ = nullptr;
}

void receive_request::take_detach(std::uint64_t from) {
    if (const auto answered = std::find_if(parting_.begin(), parting_.end(),
                                           [&](const parted_match &p) { return from != 0 && p.sender == from; });
        answered != parting_.end())
        parting_.erase(answered);
    else if (from == 0 || from == peer_number)
        peer_gone = true;
}

void receive_request::peer_ended() {
    const std::lock_guard lock(engine);
    follow_kernels_locked();
    take_back_buffer();
    // All of the peer's writes that will arrive are here now, and a message that is whole is complete; in a single copy, one that
    // has been copied.
    const bool refused = verdict_ == verdict::provisional;
    if (refused) verdict_ = verdict::refused;
    // What is still in the inline buffer, the host takes out at its next look.
    const bool sent_inline = takes_inline_ && detail::load_acquire(&words->complete) >= epoch_;  // pairs: D3, N1
    // pairs: D3, N1
    const bool over =
        !active() || sent_inline ||
        (!refused &&
         (delivery() == nullptr ? look_at_flags(true) || (may_end_quietly() && look_on_device())
                                : detail::load_acquire(&words->complete) >= epoch_ || delivery()->arrived(epoch_)));
    if (over) return;
    // Of a quiet epoch nobody has told us that packets are in the inline buffer. What a kernel of the library takes out of
    // there now, the next look at the flags finds.
    if (!refused && takes_inline_ && may_end_quietly() && engine_failure_.ok()) {
        if (inline_drain_->busy()) return;
        if (std::exchange(drained_at_end_, epoch_) != epoch_) {
            drain_inline();
            if (engine_failure_.ok()) return;
        }
    }
    peer_ended_ = true;
    give_up();
}

}  // namespace mpix
