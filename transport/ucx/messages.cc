// SPDX-License-Identifier: BSD-3-Clause
//
// What goes to a peer as eager messages, and what comes from it.
#include <algorithm>
#include <cstring>
#include <new>

#include "transport/ucx/ucx_network.h"

namespace mpix::transport::ucx {

namespace {

// What this thread holds back: between hold and release.
struct holding {
    unsigned depth = 0;
    bool anything = false;
};
thread_local holding held_here;

}  // namespace

void ucx_network::hold() { ++held_here.depth; }

void ucx_network::release() {
    if (--held_here.depth != 0 || !std::exchange(held_here.anything, false)) return;
    const std::lock_guard lock(mutex_);
    for (peer_process *const p : held_back_) {
        p->held_back = false;
        send(*p);
    }
    held_back_.clear();
}

void ucx_network::send_or_hold(peer_process &p) {
    if (held_here.depth == 0) return send(p);
    held_here.anything = true;
    if (!std::exchange(p.held_back, true)) held_back_.push_back(&p);
}

void ucx_network::send(peer_process &p) {
    take_delayed(p);
    if (p.outbox.empty() || !p.lost.ok()) return;
    std::unique_ptr<eager_message> message(new (std::nothrow) eager_message(p));  // until it has left
    if (message == nullptr) return needs_progress(p);                             // progress sends it
    eager_parts &parts = message->parts = p.outbox.take(p.calls_us);
    message->body_use = std::move(p.body_use);
    message->pieces = {{{parts.before.data(), parts.before.size()},
                        {const_cast<void *>(parts.body), parts.body_bytes},
                        {parts.behind.data(), parts.behind.size()}}};
    const bool with_body = parts.body != nullptr;
    ++p.begun;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                         UCP_OP_ATTR_FIELD_MEMORY_TYPE | (with_body ? UCP_OP_ATTR_FIELD_DATATYPE : 0);
    param.datatype = ucp_dt_make_iov();
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.user_data = message.get();
    param.cb.send = [](void *handle, ucs_status_t, void *data) {
        const std::unique_ptr<eager_message> left(static_cast<eager_message *>(data));
        left->to.leaving -= left->copied();
        instance().ucp_.ucp_request_free(handle);
    };
    const void *const from = with_body ? static_cast<const void *>(message->pieces.data()) : parts.before.data();
    const std::size_t count = with_body ? (parts.behind.empty() ? 2 : 3) : parts.before.size();
    const ucs_status_ptr_t status = ucp_.ucp_am_send_nbx(p.endpoint, eager_id, nullptr, 0, from, count, &param);
    if (UCS_PTR_IS_PTR(status)) {
        p.leaving += message->copied();
        static_cast<void>(message.release());
    }
    if (UCS_PTR_IS_ERR(status)) lose(p, UCS_PTR_STATUS(status));
}

// Finished when no message reads the memory that was put any more. (UCX ends messages to a lost peer, too.)
struct ucx_network::put_in_place final : transfer {
    ucx_network &owner;
    peer_process &p;  // maps do not move what they hold
    const buffer_use use = std::make_shared<bool>();
    put_in_place(ucx_network &o, peer_process &to) : owner(o), p(to) {}
    bool finished(status &bad) override {
        const std::lock_guard lock(owner.mutex_);
        bad = owner.worker_ == nullptr ? owner.broken_ : p.lost;
        return owner.worker_ == nullptr || use.use_count() == 1;
    }
};

status ucx_network::begin_messages(std::unique_lock<std::mutex> &lock, peer_process &p, std::uint64_t address,
                                   const void *from, std::uint64_t bytes, std::unique_ptr<transfer> &out) {
    constexpr std::uint64_t most = eager_outbox::body_bytes_over_tcp, messages_in_a_row = 16;
    auto made = std::make_unique<put_in_place>(*this, p);
    try {
        for (std::uint64_t at = 0, n = 0; at < bytes && p.lost.ok(); at += n) {
            n = std::min(most, bytes - at);
            if (at != 0 && at / most % messages_in_a_row == 0) {  // others may put in between: numbers keep the order
                lock.unlock();
                lock.lock();
            }
            if (p.outbox.has_body() || !p.outbox.has_room(n)) send(p);
            if (p.outbox.has_body()) throw std::bad_alloc();  // it has not gone
            p.outbox.put_in_place(address + at, static_cast<const char *>(from) + at, n);
            p.body_use = made->use;
        }
    } catch (const std::bad_alloc &) {
        if (made->use.use_count() == 1) throw;  // nothing has begun, and all can be put again
        lose(p, no_memory());
    }
    send_or_hold(p);
    if (made->use.use_count() != 1) out = std::move(made);
    return p.lost;
}

ucs_status_t ucx_network::take_message(void *, const void *, std::size_t, void *data, std::size_t bytes,
                                       const ucp_am_recv_param_t *how) {
    ucx_network &us = instance();
    ++us.received_;
    if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;  // refused: nothing of ours sends so
    eager_head head{};
    if (bytes < sizeof head) return UCS_OK;  // of nobody
    std::memcpy(&head, data, sizeof head);
    const auto it = us.peers_.find(static_cast<int>(head.sender));
    if (it == us.peers_.end() || it->first < 0 || static_cast<std::uint64_t>(it->first) != head.sender) return UCS_OK;
    peer_process &p = it->second;
    if (p.deaf) return UCS_OK;
    try {
        if (status bad = p.inbox.arrive(
                data, bytes,
                [&us](std::uint64_t address, std::uint64_t length) { return us.memory_.covers(address, length); });
            !bad.ok()) {
            p.deaf = true;
            us.lose(p, bad.in_context("the peer has sent "));
        }
    } catch (const std::bad_alloc &) {  // what it has sent is lost, and not through UCX, which is C
        p.deaf = true;
        us.lose(p, no_memory());
    }
    if (p.deaf || p.inbox.asks()) us.needs_progress(p);
    return UCS_OK;
}

void ucx_network::answer(peer_process &p) {
    if (!p.inbox.asks() || (p.address.empty() && p.lost.ok())) return;
    if (connect(p).ok()) p.outbox.answer(p.inbox.question());
    p.inbox.take_question();
}

}  // namespace mpix::transport::ucx
