// SPDX-License-Identifier: BSD-3-Clause
//
// Puts, by UCX or as messages; the words behind them, which wait until a flush has confirmed what UCX puts; and the
// flushes.
#include <algorithm>
#include <chrono>
#include <new>

#include "transport/ucx/ucx_network.h"

namespace mpix::transport::ucx {

namespace {

// A peer for which so many bytes of messages wait to be sent is put to from where they are, until some have left.
constexpr std::uint64_t most_leaving = 4u << 20;

// Over TCP puts are sent from where they are, without a copy. But a message has one such body, and to copy up to
// `most_copied` bytes costs less than another message; up to `always_copied` no difference was seen.
constexpr std::uint64_t most_copied = 16 * 1024, always_copied = 8 * 1024;

// A word is delayed if another word was put to the peer since the last one that could be: then there are messages both
// ways, and the next of ours can take it along. Or if it may be replaced, and the last one came so short a time ago:
// then the next soon replaces it. So many words to a peer, and so long, are delayed.
constexpr std::size_t most_delayed = 8;
constexpr std::chrono::microseconds longest_delay{50};

constexpr const char *beyond = "a put beyond the end of the peer's region";
bool within(const region &to, std::uint64_t offset, std::uint64_t bytes) {
    return offset <= to.bytes && bytes <= to.bytes - offset;
}

bool all_begun_arrived(const peer_process &p) {
    return p.confirmed == p.puts && p.outbox.empty() && p.delayed.empty() && p.inbox.answered() >= p.outbox.storing();
}

}  // namespace

// A request of UCX's, until it has completed.
struct ucx_network::request final : transfer {
    ucx_network &owner;
    int peer;
    void *handle = nullptr;
    request(ucx_network &o, int p) : owner(o), peer(p) {}
    ~request() override {
        if (handle == nullptr) return;
        const std::lock_guard lock(owner.mutex_);
        if (owner.worker_ != nullptr) owner.ucp_.ucp_request_free(handle);  // else it has gone with the worker
    }
    bool finished(status &bad) override {
        const std::lock_guard lock(owner.mutex_);
        if (owner.worker_ == nullptr) {
            bad = owner.broken_;
            return true;
        }
        const ucs_status_t s = owner.ucp_.ucp_request_check_status(handle);
        if (s == UCS_INPROGRESS) return false;
        if (s != UCS_OK) bad = owner.lose(owner.peers_.at(peer), s);
        return true;
    }
};

status ucx_network::put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                        std::unique_ptr<transfer> &out) {
    out = nullptr;
    if (!within(to, offset, bytes)) return failure(beyond);
    if (bytes == 0) return {};
    std::unique_lock lock(mutex_);
    peer_process &p = peer_of(to);
    if (!p.lost.ok()) return p.lost;
    const std::uint64_t address = reinterpret_cast<std::uint64_t>(to.address) + offset;
    const bool eager = to.device == on_host && bytes <= most_eager(p);
    if (eager && p.over_tcp && bytes > (p.outbox.has_body() ? most_copied : always_copied))
        return begin_messages(lock, p, address, from, bytes, out);
    if (!eager || p.leaving > most_leaving)
        return begin_put_locked(to, offset, from, bytes, UCS_MEMORY_TYPE_UNKNOWN, out);
    if (!p.outbox.has_room(bytes)) send(p);
    p.outbox.put(address, from, bytes);
    send_or_hold(p);
    return p.lost;
}

status ucx_network::begin_put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                              ucs_memory_type_t type, std::unique_ptr<transfer> &out) {
    out = nullptr;
    if (!within(to, offset, bytes)) return failure(beyond);
    if (bytes == 0) return {};
    const std::lock_guard lock(mutex_);
    return begin_put_locked(to, offset, from, bytes, type, out);
}

status ucx_network::begin_put_locked(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                                     ucs_memory_type_t type, std::unique_ptr<transfer> &out) {
    const auto *const key = reinterpret_cast<const unpacked_key *>(to.handle);
    peer_process &p = peers_.at(key->peer);
    if (!p.lost.ok()) return p.lost;
    auto made = std::make_unique<request>(*this, key->peer);  // before there is something to keep in it
    ++p.puts;
    ++p.begun;
    ucp_request_param_t param{};
    if (type != UCS_MEMORY_TYPE_UNKNOWN) {
        param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param.memory_type = type;
    }
    const ucs_status_ptr_t status = ucp_.ucp_put_nbx(
        p.endpoint, from, bytes, reinterpret_cast<std::uint64_t>(to.address) + offset, key->key, &param);
    // That it cannot put between such memory says nothing of the peer.
    const bool of_gpu = to.device != on_host || type != UCS_MEMORY_TYPE_UNKNOWN;
    if (of_gpu && UCS_PTR_IS_ERR(status) && p.lost.ok()) return error("ucp_put_nbx", UCS_PTR_STATUS(status));
    if (UCS_PTR_IS_ERR(status)) lose(p, UCS_PTR_STATUS(status));
    if (UCS_PTR_IS_PTR(status)) {
        made->handle = status;
        out = std::move(made);
    }
    return p.lost;
}

status ucx_network::put_word(const region &to, std::uint64_t offset, std::uint64_t value) {
    if (!within(to, offset, sizeof value)) return failure(beyond);
    const std::lock_guard lock(mutex_);
    peer_process &p = peer_of(to);
    if (!p.lost.ok()) return p.lost;
    const std::uint64_t address = reinterpret_cast<std::uint64_t>(to.address) + offset;
    forget_delayed(p, address);
    add_word(p, address, value);
    p.word_since_delayable = true;
    send_or_hold(p);
    return p.lost;
}

status ucx_network::put_word_delayed(const region &to, std::uint64_t offset, std::uint64_t value,
                                     std::uint64_t most_replaced) {
    if (!within(to, offset, sizeof value)) return failure(beyond);
    const std::lock_guard lock(mutex_);
    peer_process &p = peer_of(to);
    if (!p.lost.ok()) return p.lost;
    const std::uint64_t address = reinterpret_cast<std::uint64_t>(to.address) + offset;
    const auto now = std::chrono::steady_clock::now();
    const bool both_ways = std::exchange(p.word_since_delayable, false);
    const bool replaced_soon = most_replaced != 0 && now - std::exchange(p.last_delayable, now) < longest_delay;
    const auto same = std::find_if(p.delayed.begin(), p.delayed.end(),
                                   [address](const delayed_word &w) { return w.address == address; });
    if (same != p.delayed.end()) {
        same->value = value;
        if (++same->replaced > most_replaced) send_or_hold(p);
        return p.lost;
    }
    // Bytes before words: those that are not confirmed hold it up anyway.
    const bool alone = p.outbox.empty() && p.waiting.empty() && p.confirmed == p.puts;
    const bool room = p.delayed.size() < (most_replaced != 0 ? most_delayed : 1);
    if (!alone || !room || !(both_ways || replaced_soon)) {
        add_word(p, address, value);
        send_or_hold(p);
        return p.lost;
    }
    if (p.delayed.empty()) {
        p.delayed_until = now + longest_delay;
        needs_progress(p);
    }
    p.delayed.push_back({address, value, 0});
    if (p.delayed.size() == 1) peers_with_delayed_words_.fetch_add(1, std::memory_order_relaxed);
    return p.lost;
}

void ucx_network::take_delayed(peer_process &p) {
    if (p.delayed.empty()) return;
    try {
        for (; p.outbox.has_room(sizeof(std::uint64_t)); p.delayed.pop_back()) {
            p.outbox.put_word(p.delayed.back().address, p.delayed.back().value);
            if (p.delayed.size() == 1) return drop_delayed(p);
        }
    } catch (const std::bad_alloc &) {  // with a later message
    }
    needs_progress(p);
}

// A word that would arrive after a later value of its own.
void ucx_network::forget_delayed(peer_process &p, std::uint64_t address) {
    const bool any = !p.delayed.empty();
    std::erase_if(p.delayed, [address](const delayed_word &w) { return w.address == address; });
    if (any && p.delayed.empty()) peers_with_delayed_words_.fetch_sub(1, std::memory_order_relaxed);
}

void ucx_network::drop_delayed(peer_process &p) {
    if (!p.delayed.empty()) peers_with_delayed_words_.fetch_sub(1, std::memory_order_relaxed);
    p.delayed.clear();
}

void ucx_network::add_word(peer_process &p, std::uint64_t address, std::uint64_t value) {
    // Bytes before words. Pairs with eager_inbox's order.
    p.waiting.push_back({p.puts, address, value});
    ++p.words;
    try {
        begin_words(p);
    } catch (const std::bad_alloc &) {  // it waits, then
    }
    if (!p.waiting.empty()) needs_progress(p);
}

void ucx_network::begin_words(peer_process &p) {
    const auto held = [&p] {  // not if the peer is lost, and with it all words
        return !p.waiting.empty() && p.confirmed < p.waiting.front().after;
    };
    while (!p.waiting.empty()) {
        if (held()) begin_flush(p);
        if (held() || p.waiting.empty()) return;
        p.outbox.put_word(p.waiting.front().address, p.waiting.front().value);
        p.waiting.pop_front();
        if (!p.outbox.has_room(sizeof(std::uint64_t))) send(p);  // which may lose the peer
    }
}

void ucx_network::begin_flush(peer_process &p) {
    if (p.flushing) return;
    p.flush_confirms = p.puts;
    p.flush_sees_off = p.begun;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data = &p;
    // Called in calls of ours, so with the mutex held.
    param.cb.send = [](void *handle, ucs_status_t s, void *data) {
        instance().end_flush(*static_cast<peer_process *>(data), s);
        instance().ucp_.ucp_request_free(handle);
    };
    p.flushing = true;
    const ucs_status_ptr_t status = ucp_.ucp_ep_flush_nbx(p.endpoint, &param);
    if (!UCS_PTR_IS_PTR(status)) end_flush(p, UCS_PTR_RAW_STATUS(status));
}

void ucx_network::end_flush(peer_process &p, ucs_status_t s) {
    p.flushing = false;
    if (s != UCS_OK) {
        lose(p, s);
        return;
    }
    p.confirmed = std::max(p.confirmed, p.flush_confirms);
    p.left = std::max(p.left, p.flush_sees_off);
}

// ---- waits ----

// Of all words and bytes given to us for a peer so far: first those words have to be begun; begin() then notes what is
// under way, and look() says whether that is done.
struct ucx_network::wait_for_all : transfer {
    ucx_network &owner;
    peer_process &p;  // maps do not move what they hold
    const std::uint64_t words;
    bool begun = false;
    wait_for_all(ucx_network &o, peer_process &to) : owner(o), p(to), words(to.words) {}
    bool finished(status &bad) final {
        const std::lock_guard lock(owner.mutex_);
        if (owner.worker_ == nullptr) {
            bad = owner.broken_;
            return true;
        }
        owner.begin_words(p);
        if (!begun && p.lost.ok() && p.words - p.waiting.size() >= words) {
            owner.send(p);
            begun = p.outbox.empty();  // else there was no memory to send it
            if (begun) begin();
        }
        const bool all = begun && p.lost.ok() && look();
        bad = p.lost;
        return all || !p.lost.ok();
    }
    virtual void begin() = 0;
    virtual bool look() = 0;
};
// They are there.
struct ucx_network::confirmation final : wait_for_all {
    std::uint64_t puts = 0, messages = 0;
    using wait_for_all::wait_for_all;
    void begin() override {
        puts = p.puts;
        messages = p.outbox.storing();
    }
    bool look() override {
        if (p.confirmed < puts) owner.begin_flush(p);
        if (p.inbox.answered() < messages && p.asked < messages) {
            p.outbox.ask(messages);
            p.asked = messages;
            owner.send(p);
        }
        return p.confirmed >= puts && p.inbox.answered() >= messages;
    }
};
// They need nothing of us any more. Over TCP a flush is a round trip, and usually all has left long before. So it
// begins some time later: then one flush serves several epochs.
struct ucx_network::departure final : wait_for_all {
    static constexpr std::chrono::microseconds patience{200};
    std::uint64_t all = 0;
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
    using wait_for_all::wait_for_all;
    void begin() override { all = p.begun; }
    bool look() override {
        if (p.left < all && std::chrono::steady_clock::now() - since > patience) owner.begin_flush(p);
        return p.left >= all;
    }
};

std::unique_ptr<transfer> ucx_network::flush(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    if (it == peers_.end()) return nullptr;
    peer_process &p = it->second;
    if (p.endpoint == nullptr || (all_begun_arrived(p) && p.waiting.empty())) return nullptr;
    return std::make_unique<confirmation>(*this, p);
}

std::unique_ptr<transfer> ucx_network::depart(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    if (it == peers_.end()) return nullptr;
    peer_process &p = it->second;
    if (p.endpoint == nullptr || (p.left == p.begun && p.outbox.empty() && p.delayed.empty() && p.waiting.empty()))
        return nullptr;
    return std::make_unique<departure>(*this, p);
}

}  // namespace mpix::transport::ucx
