// SPDX-License-Identifier: BSD-3-Clause
//
// A send's match: it is made, refused or undone.
#include "host/transfer/send.h"

#include <mpix/device.cuh>

#include <utility>

#include "host/export/device_request.h"
#include "host/progress.h"
#include "host/request/explain.h"
#include "host/request/upcalls.h"

namespace mpix {
namespace {

// Clear-to-send, for all epochs, of a send whose data is discarded as soon as it is ready.
constexpr std::uint64_t clear_to_discard = ~std::uint64_t{0};

}  // namespace

// ---- setup: setup_mutex is held ---------------------------------------------------------------

void send_request::take_withdraw(std::uint64_t from) {
    if (from == peer_number) undo_match();
    send_control(peer_world(), {.from = number, .to = from, .body = detach_body{}});
}

void send_request::take_detach(std::uint64_t from) {
    if (from != 0 && from != peer_number) return;  // from a receive that is no longer our match
    peer_gone = true;
    // A receiver that refused us gives no more clear-to-send.
    if (refusal_ != refused_not) detail::store_release(&words->clear_to_send, clear_to_discard);  // pairs: C2
}

void send_request::take_accept(std::uint64_t from, const accept_body &m) {
    if (freed || peer_number != 0) return;
    const std::lock_guard lock(engine);
    peer_number = from;
    connect_body answer;
    const auto reply = [&] { send_control(peer_world(), {.from = number, .to = peer_number, .body = answer}); };
    if (connected) {  // there is no path to that process, and the receiver knows
        answer.refusal = refused_unreachable;
        return reply();
    }
    refusal_ = m.refusal;
    if (m.refusal == refused_not) {
        transport::choice choice;
        status bad = attempt([&] {
            choice = choose_transport(*this, m);
            const auto since = explain_clock(op);
            status failed = make_send_route(*this, *offer_, m, choice, !former_routes_.empty(), route_);
            if (failed.ok()) fill_in_home();
            explain_time(*this, "map the receiver's memory (the first request to a process also times the link)",
                         since);
            if (failed.ok() && device != nullptr && former_routes_.empty()) failed = install_on_device();
            if (failed.ok() && exported_to_host) export_to_host(true);
            return failed;
        });
        if (bad.ok()) {
            explain_send(*this, choice, route_->how, route_->slots, bad.message());
        } else {
            drop_route();
            refusal_ = refused_path;
            answer.refusal = refused_path;
            answer.reason = reason_for_peer(bad);
            explain_send(*this, choice, {}, 0, bad.message());
        }
        failure_ = std::move(bad);
    } else {
        if (m.refusal != refused_size)
            failure_ = attempt([&m] { return from_sentence(m.reason.c_str()); });  // the error is the receiver's alone
        explain_refusal(*this, m.reason.c_str());
    }
    if (refusal_ == refused_unreachable) detail::store_release(&words->clear_to_send, clear_to_discard);  // pairs: C2
    connected = true;
    reply();
    progress_wake();
}

// For callers of Pready. The host stores by itself from host memory to host memory, and leaves everything else to the
// engine; then the landing is null.
void send_request::fill_in_home() {
    // Callers that remember an earlier landing, which may have had fewer slots, are given no other: see
    // protocol/select.h.
    const bool first = former_routes_.empty();
    if (first) detail::store_relaxed(&home->slots, route_->slots);
    if (route_->landing.remote) return;  // nobody can store there: all is left to the engine
    detail::store_pointer(&home->peer_complete, &static_cast<mpix_words *>(route_->peer_words.address)->complete);
    if (route_->arrival.device == transport::on_host)
        detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(route_->arrival.address));
    if (first) {
        if (route_->in_place()) detail::store_pointer(&home->taken, route_->taken());
        detail::store_pointer(&home->far, static_cast<const mpix_far_memory *>(route_->far));
        if (active()) choose_copying_side();
    }
    // Written last: home's fields are read without locks after clear-to-send, which the receiver gives after our
    // CONNECT.
    if (route_->how.by_caller) detail::store_pointer(&home->landing, static_cast<char *>(route_->landing.address));
}

// The receiver freed its request before starting it, or matched it with another send. No byte has moved, since there
// was no clear-to-send. After a process that cannot reach us no later match would be better.
void send_request::undo_match() {
    const std::lock_guard lock(engine);
    peer_number = 0;
    peer_gone = false;
    question = nullptr;  // the answer was about that receive
    if (refusal_ == refused_unreachable && epoch_ != 0) return;
    if (detail::load_relaxed(&words->clear_to_send) != 0 && active()) {
        fail("the peer has taken its memory back in the middle of an epoch");
        moving_.clear();  // these moves would put there
        kernel_ready_.clear();
        host_ready_.clear();
    }
    // Before the CONNECT to the next receiver, and so before its clear-to-send.
    if (device != nullptr)
        if (auto bad = device->install({}); !bad.ok()) fail(bad);
    // Callers of Pready may be storing by it. Only a faulty peer withdraws then, but that must not crash this process.
    if (epoch_ != 0) former_routes_.push_back(route_);
    drop_route();
    refusal_ = refused_not;
    failure_ = {};
    detail::store_release(&words->clear_to_send, 0);  // pairs: C2
    connected = false;
}

void send_request::drop_route() {
    fast_path_.close();
    detail::store_pointer(&home->landing, static_cast<char *>(nullptr));
    leave_queue();
    detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(nullptr));
    detail::store_pointer(&home->peer_complete, static_cast<std::uint64_t *>(nullptr));
    detail::store_relaxed(&home->slots, 0);
    words_view_ = nullptr;  // lasting mappings: does not wait
    flags_view_ = nullptr;
    route_ = nullptr;
}

void send_request::on_leave() {
    const std::lock_guard lock(engine);
    words_view_ = nullptr;
    flags_view_ = nullptr;
    route_ = nullptr;  // former ones stay to the request's end: a copy may be under way yet
}

// Nothing moves any more, but the user's calls of Pready still count.
void send_request::peer_ended() {
    const std::lock_guard lock(engine);
    follow_kernels_locked();
    if (!active()) return;
    if (may_end_quietly()) look_for_quiet_end();
    tell_if_all_moved();
    if (complete() && all_copied(false)) return;
    peer_ended_ = true;
    refusal_ = refused_path;
    detail::store_release(&words->clear_to_send, clear_to_discard);  // pairs: C2
    progress_wake();
}

}  // namespace mpix
