// SPDX-License-Identifier: BSD-3-Clause
//
// UCX: puts into registered memory of processes on other nodes, over whatever network it finds. One worker a process,
// which one thread at a time is in (a mutex, not UCX's own locks, so that completions are seen by whoever asks).
//
// Words, and puts of few bytes, go as active messages, which the receiving process stores in order (eager.h). More bytes are
// put by UCX, into registered memory; words behind them wait in a list until a flush has confirmed them: a round trip more.
// (ucp_worker_fence would order puts, not messages; and since 1.16 it waits for all puts to have arrived, and so for peers
// that are not in UCX just now.)
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "transport/backends.h"
#include "transport/network.h"
#include "transport/reserve.h"
#include "transport/ucx/eager.h"
#include "transport/ucx/exposed_memory.h"
#include "transport/ucx/gpu_memory.h"
#include "transport/ucx/ucp_library.h"

namespace mpix::transport {
namespace {

using ucx::eager_inbox;
using ucx::eager_outbox;
using ucx::ucp_library;

constexpr std::size_t padding = 4096;
constexpr unsigned eager_id = 0;  // of our active messages
// A peer for which so many bytes of messages wait to be sent is put to from where they are, until some have left.
constexpr std::uint64_t most_leaving = 4u << 20;

// What this thread holds back: between hold and release.
struct holding {
    unsigned depth = 0;
    bool anything = false;
};
thread_local holding held_here;

struct waiting_word {
    std::uint64_t after;  // so many puts have to be confirmed
    std::uint64_t address, value;
};

struct peer_process {
    std::vector<std::uint8_t> address;  // empty: not told yet
    std::uint64_t calls_us = 0;
    ucp_ep_h endpoint = nullptr;
    outcome lost;
    std::uint64_t puts = 0, confirmed = 0;  // ever begun; of them known to have arrived, by a flush
    std::uint64_t begun = 0, left = 0;      // puts and messages; of them known to have left this process, by a flush
    // Words that are not begun, and how many ever were given to us.
    safe_deque<waiting_word> waiting;
    std::uint64_t words = 0;
    eager_outbox outbox;
    bool held_back = false;     // it is not empty, and goes when a thread that holds releases
    std::uint64_t leaving = 0;  // bytes of messages that UCX has, and has not sent
    std::uint64_t asked = 0;    // the last question in it
    eager_inbox inbox;
    bool deaf = false;       // nothing that it says counts any more
    bool unsettled = false;  // progress has something to do for it
    // One flush at a time.
    bool flushing = false;
    std::uint64_t flush_confirms = 0, flush_sees_off = 0;
};

struct eager_message {
    explicit eager_message(peer_process &p) : to(p) {}
    peer_process &to;
    std::vector<std::uint8_t> bytes;
};

// A key of a peer's memory, unpacked once for all regions under it.
struct unpacked_key {
    ucp_rkey_h key = nullptr;
    int peer = 0;
    unsigned users = 0;
};

class ucx_network final : public network {
public:
    const char *name() const override { return "ucx"; }
    transport_id id() const override { return id_ucx; }

    bool usable(outcome &why_not) override {
        const std::lock_guard lock(mutex_);
        if (!tried_) {
            try {
                broken_ = begin();
            } catch (...) {  // the next call tries again
                abandon();
                throw;
            }
            tried_ = true;
        }
        why_not = broken_;
        return broken_.empty();
    }

    // Our address behind the number by which we call the peer: its messages say it.
    outcome introduce(int peer, std::vector<std::uint8_t> &address) override {
        const std::lock_guard lock(mutex_);
        ucp_address_t *own = nullptr;
        std::size_t bytes = 0;
        if (const ucs_status_t s = ucp_.ucp_worker_get_address(worker_, &own, &bytes); s != UCS_OK)
            return error("ucp_worker_get_address", s);
        const auto free_it = [this](ucp_address_t *a) { ucp_.ucp_worker_release_address(worker_, a); };
        const std::unique_ptr<ucp_address_t, decltype(free_it)> held(own, free_it);
        const auto number = static_cast<std::uint64_t>(peer);
        address.resize(sizeof number + bytes);
        std::memcpy(address.data(), &number, sizeof number);
        std::memcpy(address.data() + sizeof number, own, bytes);
        peers_.try_emplace(peer);  // its messages may come before its address
        return {};
    }

    outcome meet(int peer, std::vector<std::uint8_t> address) override {
        const std::lock_guard lock(mutex_);
        std::uint64_t number = 0;
        if (address.size() <= sizeof number) return "an empty UCX address";
        peer_process &p = peers_[peer];
        if (!p.address.empty()) return {};
        std::memcpy(&number, address.data(), sizeof number);
        address.erase(address.begin(), address.begin() + sizeof number);
        address.resize(address.size() + padding);  // UCX is not told where it ends
        p.calls_us = number;
        p.address = std::move(address);
        return {};
    }

    outcome describe(const region &own, wire_region &out) override {
        const std::lock_guard lock(mutex_);
        return memory_.describe(own, out);
    }
    void forget(const region &own) override {
        const std::lock_guard lock(mutex_);
        memory_.forget(own);
    }

    outcome attach(const wire_region &wire, int peer, region &out) override { return attach(wire, nullptr, peer, out); }

    void detach(region &peers) override {
        const std::lock_guard lock(mutex_);
        for (auto it = keys_.begin(); it != keys_.end(); ++it) {
            if (reinterpret_cast<std::uint64_t>(&it->second) != peers.handle) continue;
            if (--it->second.users == 0) {
                retire(peers_.at(it->second.peer), it->second.key);
                keys_.erase(it);
            }
            break;
        }
        peers = {};
    }

    outcome put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                std::unique_ptr<transfer> &out) override {
        if (bytes > wish_.eager_bytes || to.device != on_host)
            return begin_put(to, offset, from, bytes, UCS_MEMORY_TYPE_UNKNOWN, out);
        out = nullptr;
        if (!within(to, offset, bytes)) return beyond;
        if (bytes == 0) return {};
        const std::lock_guard lock(mutex_);
        peer_process &p = peer_of(to);
        if (!p.lost.empty()) return p.lost;
        if (p.leaving > most_leaving) return begin_put_locked(to, offset, from, bytes, UCS_MEMORY_TYPE_UNKNOWN, out);
        if (!p.outbox.has_room(bytes)) send(p);
        p.outbox.put(reinterpret_cast<std::uint64_t>(to.address) + offset, from, bytes);
        send_or_hold(p);
        return p.lost;
    }

    outcome put_word(const region &to, std::uint64_t offset, std::uint64_t value) override {
        if (!within(to, offset, sizeof value)) return beyond;
        const std::lock_guard lock(mutex_);
        peer_process &p = peer_of(to);
        if (!p.lost.empty()) return p.lost;
        // publish_partition: bytes before words. Pairs with eager_inbox's order.
        p.waiting.push_back({p.puts, reinterpret_cast<std::uint64_t>(to.address) + offset, value});
        ++p.words;
        try {
            begin_words(p);
        } catch (const std::bad_alloc &) {  // it waits, then
        }
        send_or_hold(p);
        if (!p.waiting.empty()) unsettle(p);
        return p.lost;
    }

    // What one thread holds back another may send: then it goes earlier.
    void hold() override { ++held_here.depth; }
    void release() override {
        if (--held_here.depth != 0 || !std::exchange(held_here.anything, false)) return;
        const std::lock_guard lock(mutex_);
        for (peer_process *const p : held_back_) {
            p->held_back = false;
            send(*p);
        }
        held_back_.clear();
    }

    gpu_puts *gpu_memory(outcome &why_not) override {
        const std::lock_guard lock(mutex_);
        why_not = no_gpu_memory_;
        return why_not.empty() ? &gpus_ : nullptr;
    }

    std::unique_ptr<transfer> flush(int peer) override {
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        if (it == peers_.end()) return nullptr;
        peer_process &p = it->second;
        if (p.endpoint == nullptr || (all_begun_arrived(p) && p.waiting.empty())) return nullptr;
        return std::make_unique<confirmation>(*this, p);
    }

    std::unique_ptr<transfer> depart(int peer) override {
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        if (it == peers_.end()) return nullptr;
        peer_process &p = it->second;
        if (p.endpoint == nullptr || (p.left == p.begun && p.outbox.empty() && p.waiting.empty())) return nullptr;
        return std::make_unique<departure>(*this, p);
    }

    outcome lost(int peer) override {
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        return it == peers_.end() ? outcome{} : it->second.lost;
    }

    void give_up(int peer) override {
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        if (it == peers_.end() || worker_ == nullptr) return;
        lose(it->second, UCS_ERR_CANCELED);
        it->second.deaf = true;
        close(it->second);
    }

    bool progress() override {
        const std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread is at it
        if (!lock || worker_ == nullptr) return false;
        int events = 0;
        while (events < 16 && ucp_.ucp_worker_progress(worker_) != 0) ++events;
        for (peer_process *const p : std::exchange(unsettled_, {})) {
            p->unsettled = false;
            try {
                settle(*p);
            } catch (const std::bad_alloc &) {  // in the next round, then
                unsettle(*p);
            }
        }
        return events != 0;
    }

    void stop() override {
        const std::lock_guard lock(mutex_);
        if (worker_ == nullptr) return;
        for (auto &[number, p] : peers_) close(p);
        for (auto &[name, k] : keys_) ucp_.ucp_rkey_destroy(k.key);
        keys_.clear();
        ucp_.ucp_worker_destroy(worker_);  // which may still call us back about a flush
        worker_ = nullptr;
        held_back_.clear();
        unsettled_.clear();
        peers_.clear();
        memory_.close();
        ucp_.ucp_cleanup(context_);
        context_ = nullptr;
        broken_ = "MPI_Finalize has been called";
    }

    static ucx_network &instance(const ucx_wish &wish = {}) {
        // Never destroyed, as the other transports.
        static auto *const one = new ucx_network(wish);
        return *one;
    }

private:
    explicit ucx_network(const ucx_wish &wish) : wish_(wish) {}

    using key_name = std::pair<int, std::vector<std::uint8_t>>;

    struct gpu_side final : gpu_puts {
        ucx_network &owner;
        explicit gpu_side(ucx_network &o) : owner(o) {}
        outcome adopt(void *buffer, std::uint64_t bytes, int device, region &out) override {
            const std::lock_guard lock(owner.mutex_);
            return owner.worker_ == nullptr ? owner.broken_ : owner.memory_.adopt(buffer, bytes, device, out);
        }
        outcome describe(const region &own, wire_region &out, wire_region &rest) override {
            const std::lock_guard lock(owner.mutex_);
            return owner.memory_.describe(own, out, rest);
        }
        void forget(region &own) override {
            const std::lock_guard lock(owner.mutex_);
            owner.memory_.forget_adopted(own);
            own = {};
        }
        outcome attach(const wire_region &wire, const wire_region &rest, int peer, region &out) override {
            return owner.attach(wire, &rest, peer, out);
        }
        outcome put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                    std::unique_ptr<transfer> &out) override {
            return owner.begin_put(to, offset, from, bytes, owner.gpu_type(), out);
        }
    };

    // A request of UCX's, until it has completed.
    struct request final : transfer {
        ucx_network &owner;
        int peer;
        void *handle = nullptr;
        request(ucx_network &o, int p) : owner(o), peer(p) {}
        ~request() override {
            if (handle == nullptr) return;
            const std::lock_guard lock(owner.mutex_);
            if (owner.worker_ != nullptr) owner.ucp_.ucp_request_free(handle);  // else it has gone with the worker
        }
        bool finished(outcome &problem) override {
            const std::lock_guard lock(owner.mutex_);
            if (owner.worker_ == nullptr) {
                problem = owner.broken_;
                return true;
            }
            const ucs_status_t s = owner.ucp_.ucp_request_check_status(handle);
            if (s == UCS_INPROGRESS) return false;
            if (s != UCS_OK) problem = owner.lose(owner.peers_.at(peer), s);
            return true;
        }
    };

    // Of all words and bytes given to us for a peer so far: first those words have to be begun; begin() then notes what is under
    // way, and look() says whether that is done.
    struct wait_for_all : transfer {
        ucx_network &owner;
        peer_process &p;  // maps do not move what they hold
        const std::uint64_t words;
        bool begun = false;
        wait_for_all(ucx_network &o, peer_process &to) : owner(o), p(to), words(to.words) {}
        bool finished(outcome &problem) final {
            const std::lock_guard lock(owner.mutex_);
            if (owner.worker_ == nullptr) {
                problem = owner.broken_;
                return true;
            }
            owner.begin_words(p);
            if (!begun && p.lost.empty() && p.words - p.waiting.size() >= words) {
                owner.send(p);
                begin();
                begun = true;
            }
            const bool all = begun && p.lost.empty() && look();
            problem = p.lost;
            return all || !p.lost.empty();
        }
        virtual void begin() = 0;
        virtual bool look() = 0;
    };
    // They are there.
    struct confirmation final : wait_for_all {
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
    // They need nothing of us any more.
    struct departure final : wait_for_all {
        std::uint64_t all = 0;
        using wait_for_all::wait_for_all;
        void begin() override { all = p.begun; }
        bool look() override {
            if (p.left < all) owner.begin_flush(p);
            return p.left >= all;
        }
    };

    static constexpr const char *beyond = "a put beyond the end of the peer's region";
    static bool within(const region &to, std::uint64_t offset, std::uint64_t bytes) {
        return offset <= to.bytes && bytes <= to.bytes - offset;
    }
    peer_process &peer_of(const region &to) {
        return peers_.at(reinterpret_cast<const unpacked_key *>(to.handle)->peer);
    }
    static bool all_begun_arrived(const peer_process &p) {
        return p.confirmed == p.puts && p.outbox.empty() && p.inbox.answered() >= p.outbox.storing();
    }

    ucs_memory_type_t gpu_type() const { return wish_.played_gpus ? UCS_MEMORY_TYPE_HOST : UCS_MEMORY_TYPE_CUDA; }

    outcome attach(const wire_region &wire, const wire_region *rest, int peer, region &out) {
        ucx::remote_memory memory;
        if (outcome bad = ucx::read_description(wire, rest, memory); !bad.empty()) return bad;
        const std::lock_guard lock(mutex_);
        peer_process *p = nullptr;
        if (outcome bad = connect(peer, p); !bad.empty()) return bad;
        std::vector<std::uint8_t> padded = memory.key;  // UCX is not told where it ends
        padded.resize(padded.size() + padding);
        const key_name name{peer, std::move(memory.key)};
        unpacked_key &k = keys_[name];
        if (k.key == nullptr) {
            if (const ucs_status_t s = ucp_.ucp_ep_rkey_unpack(p->endpoint, padded.data(), &k.key); s != UCS_OK) {
                keys_.erase(name);
                return error("ucp_ep_rkey_unpack", s);
            }
            k.peer = peer;
        }
        ++k.users;
        out = {};
        out.address = reinterpret_cast<void *>(memory.address);
        out.bytes = wire.bytes;
        out.device = wire.device;
        out.remote = true;
        out.handle = reinterpret_cast<std::uint64_t>(&k);  // maps do not move what they hold
        return {};
    }

    // `type`: of the memory at `from`, if UCX is not to find out.
    outcome begin_put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                      ucs_memory_type_t type, std::unique_ptr<transfer> &out) {
        out = nullptr;
        if (!within(to, offset, bytes)) return beyond;
        if (bytes == 0) return {};
        const std::lock_guard lock(mutex_);
        return begin_put_locked(to, offset, from, bytes, type, out);
    }
    outcome begin_put_locked(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                             ucs_memory_type_t type, std::unique_ptr<transfer> &out) {
        const auto *const key = reinterpret_cast<const unpacked_key *>(to.handle);
        peer_process &p = peers_.at(key->peer);
        if (!p.lost.empty()) return p.lost;
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
        if (of_gpu && UCS_PTR_IS_ERR(status) && p.lost.empty()) return error("ucp_put_nbx", UCS_PTR_STATUS(status));
        if (UCS_PTR_IS_ERR(status)) lose(p, UCS_PTR_STATUS(status));
        if (UCS_PTR_IS_PTR(status)) {
            made->handle = status;
            out = std::move(made);
        }
        return p.lost;
    }

    // Those of the waiting words whose bytes are confirmed. `mutex_` is held.
    void begin_words(peer_process &p) {
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

    void send_or_hold(peer_process &p) {
        if (held_here.depth == 0) return send(p);
        held_here.anything = true;
        if (!std::exchange(p.held_back, true)) held_back_.push_back(&p);
    }

    void unsettle(peer_process &p) {
        if (!std::exchange(p.unsettled, true)) unsettled_.push_back(&p);
    }

    // What is left for progress: words whose bytes may be confirmed by now, a question of the peer's, and its end if it has sent
    // what cannot be read. `mutex_` is held.
    void settle(peer_process &p) {
        if (p.deaf) return close(p);
        answer(p);
        begin_words(p);
        send(p);
        if (!p.waiting.empty() || p.inbox.asks()) unsettle(p);
    }

    // What is in the outbox. `mutex_` is held.
    void send(peer_process &p) {
        if (p.outbox.empty() || !p.lost.empty()) return;
        std::unique_ptr<eager_message> message(new (std::nothrow) eager_message(p));  // until it has left
        if (message == nullptr) return unsettle(p);                                   // progress sends it
        message->bytes = p.outbox.take(p.calls_us);
        ++p.begun;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                             UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param.flags = UCP_AM_SEND_FLAG_EAGER;
        param.memory_type = UCS_MEMORY_TYPE_HOST;
        param.user_data = message.get();
        param.cb.send = [](void *handle, ucs_status_t, void *data) {
            const std::unique_ptr<eager_message> left(static_cast<eager_message *>(data));
            left->to.leaving -= left->bytes.size();
            instance().ucp_.ucp_request_free(handle);
        };
        const ucs_status_ptr_t status = ucp_.ucp_am_send_nbx(p.endpoint, eager_id, nullptr, 0, message->bytes.data(),
                                                             message->bytes.size(), &param);
        if (UCS_PTR_IS_PTR(status)) {
            p.leaving += message->bytes.size();
            static_cast<void>(message.release());
        }
        if (UCS_PTR_IS_ERR(status)) lose(p, UCS_PTR_STATUS(status));
    }

    // Called in calls of ours, so with the mutex held.
    static ucs_status_t take_message(void *, const void *, std::size_t, void *data, std::size_t bytes,
                                     const ucp_am_recv_param_t *how) {
        ucx_network &us = instance();
        if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;  // refused: nothing of ours sends so
        ucx::eager_head head{};
        if (bytes < sizeof head) return UCS_OK;  // of nobody
        std::memcpy(&head, data, sizeof head);
        const auto it = us.peers_.find(static_cast<int>(head.sender));
        if (it == us.peers_.end() || it->first < 0 || static_cast<std::uint64_t>(it->first) != head.sender)
            return UCS_OK;
        peer_process &p = it->second;
        if (p.deaf) return UCS_OK;
        try {
            if (outcome bad = p.inbox.arrive(
                    data, bytes,
                    [&us](std::uint64_t address, std::uint64_t length) { return us.memory_.covers(address, length); });
                !bad.empty()) {
                p.deaf = true;
                us.lose(p, "the peer has sent " + bad);
            }
        } catch (const std::bad_alloc &) {  // what it has sent is lost, and not through UCX, which is C
            p.deaf = true;
            us.lose(p, "no memory");
        }
        if (p.deaf || p.inbox.asks()) us.unsettle(p);
        return UCS_OK;
    }

    // That we have applied what the peer asked for; not before it has told us its address. `mutex_` is held.
    void answer(peer_process &p) {
        if (!p.inbox.asks() || (p.address.empty() && p.lost.empty())) return;
        if (connect(p).empty()) p.outbox.answer(p.inbox.question());
        p.inbox.take_question();
    }

    // `mutex_` is held.
    void begin_flush(peer_process &p) {
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
    void end_flush(peer_process &p, ucs_status_t s) {
        p.flushing = false;
        if (s != UCS_OK) {
            lose(p, s);
            return;
        }
        p.confirmed = std::max(p.confirmed, p.flush_confirms);
        p.left = std::max(p.left, p.flush_sees_off);
    }

    // Puts under way may still use the key.
    void retire(peer_process &p, ucp_rkey_h key) {
        if (p.endpoint == nullptr) {
            ucp_.ucp_rkey_destroy(key);
            return;
        }
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.user_data = key;
        param.cb.send = [](void *handle, ucs_status_t, void *data) {
            instance().ucp_.ucp_rkey_destroy(static_cast<ucp_rkey_h>(data));
            instance().ucp_.ucp_request_free(handle);
        };
        if (!UCS_PTR_IS_PTR(ucp_.ucp_ep_flush_nbx(p.endpoint, &param))) ucp_.ucp_rkey_destroy(key);
    }

    outcome error(const char *what, ucs_status_t s) const {
        return std::string("UCX: ") + what + ": " + ucp_.ucs_status_string(s);
    }

    const outcome &lose(peer_process &p, const std::string &why) {
        p.waiting.clear();
        p.outbox.clear();
        if (p.lost.empty()) p.lost = why;
        return p.lost;
    }
    // Also in UCX's callbacks, through which nothing may be thrown.
    const outcome &lose(peer_process &p, ucs_status_t s) {
        try {
            return lose(p, std::string("UCX has lost the connection: ") + ucp_.ucs_status_string(s));
        } catch (const std::bad_alloc &) {
            return lose(p, "no memory");
        }
    }

    outcome begin() {
        if (outcome bad = ucp_.load(); !bad.empty()) return bad;
        unsigned major = 0, minor = 0, release = 0;
        ucp_.ucp_get_version(&major, &minor, &release);
        ucp_config_t *config = nullptr;
        if (const ucs_status_t s = ucp_.ucp_config_read(nullptr, nullptr, &config); s != UCS_OK)
            return error("ucp_config_read", s);
        // Its copies by CUDA IPC do not end while kernels of both processes wait for them (seen with 1.22). Who names transports
        // himself may know better.
        if (wish_.gpu_memory && std::getenv("UCX_TLS") == nullptr)
            if (const ucs_status_t s = ucp_.ucp_config_modify(config, "TLS", "^cuda_ipc"); s != UCS_OK) {
                ucp_.ucp_config_release(config);
                return error("ucp_config_modify", s);
            }
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
        params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
        params.name = "mpix";
        const ucs_status_t made = ucp_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
        ucp_.ucp_config_release(config);
        if (made != UCS_OK) return error("ucp_init", made);
        ucp_worker_params_t worker{};
        worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        if (const ucs_status_t s = ucp_.ucp_worker_create(context_, &worker, &worker_); s != UCS_OK) {
            worker_ = nullptr;
            abandon();
            return error("ucp_worker_create", s);
        }
        ucp_am_handler_param_t handler{};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
        handler.id = eager_id;
        handler.cb = take_message;
        if (const ucs_status_t s = ucp_.ucp_worker_set_am_recv_handler(worker_, &handler); s != UCS_OK) {
            abandon();
            return error("ucp_worker_set_am_recv_handler", s);
        }
        memory_.open(context_, gpu_type());
        ucp_context_attr_t attributes{};
        attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
        const bool known = ucp_.ucp_context_query(context_, &attributes) == UCS_OK;
        no_gpu_memory_ = ucx::why_no_gpu_memory(
            wish_, {major, minor, known && (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0});
        return {};
    }

    void abandon() {
        if (worker_ != nullptr) ucp_.ucp_worker_destroy(worker_);
        if (context_ != nullptr) ucp_.ucp_cleanup(context_);
        worker_ = nullptr;
        context_ = nullptr;
    }

    // The peer, with an endpoint.
    outcome connect(int number, peer_process *&out) {
        const auto it = peers_.find(number);
        if (it == peers_.end() || it->second.address.empty()) return "the peer has not said how UCX reaches it";
        out = &it->second;
        return connect(it->second);
    }
    outcome connect(peer_process &p) {
        if (!p.lost.empty()) return p.lost;
        if (p.endpoint != nullptr) return {};
        ucp_ep_params_t params{};
        params.field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.address = reinterpret_cast<const ucp_address_t *>(p.address.data());
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.arg = &p;
        // Called in calls of ours, so with the mutex held.
        params.err_handler.cb = [](void *arg, ucp_ep_h, ucs_status_t s) {
            instance().lose(*static_cast<peer_process *>(arg), s);
        };
        if (const ucs_status_t s = ucp_.ucp_ep_create(worker_, &params, &p.endpoint); s != UCS_OK) {
            p.endpoint = nullptr;
            return error("ucp_ep_create", s);
        }
        return {};
    }

    void close(peer_process &p) {
        if (p.endpoint == nullptr) return;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;  // all is said, and the peer may be gone
        const ucs_status_ptr_t status = ucp_.ucp_ep_close_nbx(p.endpoint, &param);
        p.endpoint = nullptr;
        if (!UCS_PTR_IS_PTR(status)) return;
        // Forced, so it needs no peer; the limit is against a UCX that hangs.
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        while (ucp_.ucp_request_check_status(status) == UCS_INPROGRESS && std::chrono::steady_clock::now() < limit)
            ucp_.ucp_worker_progress(worker_);
        ucp_.ucp_request_free(status);
    }

    const ucx_wish wish_;
    std::mutex mutex_;
    bool tried_ = false;
    outcome broken_;
    ucp_library ucp_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::map<int, peer_process> peers_;
    safe_vector<peer_process *> held_back_, unsettled_;  // maps do not move what they hold
    ucx::exposed_memory memory_{ucp_};
    gpu_side gpus_{*this};
    outcome no_gpu_memory_;
    std::map<key_name, unpacked_key> keys_;
};

}  // namespace

network &ucx_transport(const ucx_wish &wish) { return ucx_network::instance(wish); }

}  // namespace mpix::transport
