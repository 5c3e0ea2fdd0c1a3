// SPDX-License-Identifier: BSD-3-Clause
//
// UCX: puts into registered memory of processes on other nodes, over whatever network it finds. One worker a process,
// which one thread at a time is in (a mutex, not UCX's own locks, so that completions are seen by whoever asks).
//
// Words behind bytes: ucp_worker_fence, which UCX defines to order puts of one worker (UCX API, ucp_worker_fence). Since
// 1.16 that call waits for all puts to have arrived, and so for peers that are not in UCX just now. There words wait in a
// list of ours instead, until a flush has confirmed the bytes that were put before them: a round trip more. Where
// UCX emulates puts, the receiving process stores the bytes in its own progress, in the order in which they were sent.
// Bytes from or to GPU memory may go another way than words; only where words wait for the flush is UCX asked to put those.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "transport/backends.h"
#include "transport/network.h"
#include "transport/ucx/exposed_memory.h"
#include "transport/ucx/gpu_memory.h"
#include "transport/ucx/ucp_library.h"

namespace mpix::transport {
namespace {

using ucx::ucp_library;

constexpr std::size_t padding = 4096;

struct waiting_word {
    std::uint64_t after;  // so many puts have to be confirmed
    std::uint64_t address, value;
    ucp_rkey_h key;
};

struct peer_process {
    std::vector<std::uint8_t> address;
    ucp_ep_h endpoint = nullptr;
    outcome lost;
    std::uint64_t puts = 0, confirmed = 0;  // ever begun; of them known to have arrived, by a flush
    // Where fences wait: words that are not begun, the places of those that are and are not confirmed, and how many ever
    // were given to us. One flush at a time.
    std::deque<waiting_word> waiting;
    std::set<std::uint64_t> open;
    std::vector<ucp_rkey_h> given_up;  // keys that some of them may need
    std::uint64_t words = 0;
    bool flushing = false;
    std::uint64_t flush_confirms = 0;
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
            tried_ = true;
            broken_ = begin();
        }
        why_not = broken_;
        return broken_.empty();
    }

    outcome introduce(int, std::vector<std::uint8_t> &address) override {
        const std::lock_guard lock(mutex_);
        ucp_address_t *own = nullptr;
        std::size_t bytes = 0;
        if (const ucs_status_t s = ucp_.ucp_worker_get_address(worker_, &own, &bytes); s != UCS_OK)
            return error("ucp_worker_get_address", s);
        const auto *const first = reinterpret_cast<const std::uint8_t *>(own);
        address.assign(first, first + bytes);
        ucp_.ucp_worker_release_address(worker_, own);
        return {};
    }

    outcome meet(int peer, std::vector<std::uint8_t> address) override {
        const std::lock_guard lock(mutex_);
        if (address.empty()) return "an empty UCX address";
        const auto [it, is_new] = peers_.try_emplace(peer);
        if (!is_new) return {};
        address.resize(address.size() + padding);  // UCX is not told where it ends
        it->second.address = std::move(address);
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
        return begin_put(to, offset, from, bytes, UCS_MEMORY_TYPE_UNKNOWN, out);
    }

    outcome put_word(const region &to, std::uint64_t offset, std::uint64_t value) override {
        if (offset > to.bytes || sizeof value > to.bytes - offset) return "a put beyond the end of the peer's region";
        const std::lock_guard lock(mutex_);
        const auto *const key = reinterpret_cast<const unpacked_key *>(to.handle);
        peer_process &p = peers_.at(key->peer);
        if (!p.lost.empty()) return p.lost;
        // publish_partition: bytes before words. Pairs with the peer's order of arrival, see above.
        p.waiting.push_back({p.puts, reinterpret_cast<std::uint64_t>(to.address) + offset, value, key->key});
        ++p.words;
        if (fence_waits_) {
            begin_words(p);
            return p.lost;
        }
        if (const ucs_status_t s = ucp_.ucp_worker_fence(worker_); s != UCS_OK) {
            p.waiting.pop_back();
            return error("ucp_worker_fence", s);
        }
        begin_word(p);
        return p.lost;
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
        if (p.endpoint == nullptr || (p.confirmed == p.puts && p.waiting.empty())) return nullptr;
        return std::make_unique<confirmation>(*this, p);
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
        close(it->second);
    }

    bool progress() override {
        const std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread is at it
        if (!lock || worker_ == nullptr) return false;
        int events = 0;
        while (events < 16 && ucp_.ucp_worker_progress(worker_) != 0) ++events;
        if (fence_waits_)
            for (auto &[number, p] : peers_) begin_words(p);
        return events != 0;
    }

    void stop() override {
        const std::lock_guard lock(mutex_);
        if (worker_ == nullptr) return;
        for (auto &[number, p] : peers_) {
            close(p);
            for (const ucp_rkey_h key : p.given_up) ucp_.ucp_rkey_destroy(key);
        }
        for (auto &[name, k] : keys_) ucp_.ucp_rkey_destroy(k.key);
        keys_.clear();
        ucp_.ucp_worker_destroy(worker_);  // which may still call us back about a flush
        worker_ = nullptr;
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
        void *handle;
        request(ucx_network &o, int p, void *h) : owner(o), peer(p), handle(h) {}
        ~request() override {
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

    // All words and bytes given to us for a peer so far are there.
    struct confirmation final : transfer {
        ucx_network &owner;
        peer_process &p;  // maps do not move what they hold
        const std::uint64_t words;
        std::uint64_t puts = 0;  // once those words are begun
        confirmation(ucx_network &o, peer_process &to) : owner(o), p(to), words(to.words) {}
        bool finished(outcome &problem) override {
            const std::lock_guard lock(owner.mutex_);
            if (owner.worker_ == nullptr) {
                problem = owner.broken_;
                return true;
            }
            problem = p.lost;
            if (!p.lost.empty()) return true;
            owner.begin_words(p);
            if (puts == 0 && p.words - p.waiting.size() >= words) puts = p.puts;
            if (puts == 0) return false;
            if (p.confirmed < puts) owner.begin_flush(p);
            return p.confirmed >= puts;
        }
    };

    ucs_memory_type_t gpu_type() const { return wish_.played_gpus ? UCS_MEMORY_TYPE_HOST : UCS_MEMORY_TYPE_CUDA; }

    outcome attach(const wire_region &wire, const wire_region *rest, int peer, region &out) {
        ucx::remote_memory memory;
        if (outcome bad = ucx::read_description(wire, rest, memory); !bad.empty()) return bad;
        const std::lock_guard lock(mutex_);
        peer_process *p = nullptr;
        if (outcome bad = connect(peer, p); !bad.empty()) return bad;
        const key_name name{peer, std::move(memory.key)};
        unpacked_key &k = keys_[name];
        if (k.key == nullptr) {
            std::vector<std::uint8_t> padded = name.second;  // UCX is not told where it ends
            padded.resize(padded.size() + padding);
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
        if (offset > to.bytes || bytes > to.bytes - offset) return "a put beyond the end of the peer's region";
        if (bytes == 0) return {};
        const std::lock_guard lock(mutex_);
        const auto *const key = reinterpret_cast<const unpacked_key *>(to.handle);
        peer_process &p = peers_.at(key->peer);
        if (!p.lost.empty()) return p.lost;
        ++p.puts;
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
        out = pending(key->peer, status);
        return p.lost;
    }

    // The first of the waiting words. `mutex_` is held.
    void begin_word(peer_process &p) {
        const waiting_word w = p.waiting.front();
        p.waiting.pop_front();
        ++p.puts;
        if (fence_waits_) p.open.insert(w.address);
        auto word = std::make_unique<std::uint64_t>(w.value);  // until it has left
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.user_data = word.get();
        param.cb.send = [](void *handle, ucs_status_t, void *data) {
            delete static_cast<std::uint64_t *>(data);
            instance().ucp_.ucp_request_free(handle);
        };
        const ucs_status_ptr_t status =
            ucp_.ucp_put_nbx(p.endpoint, word.get(), sizeof w.value, w.address, w.key, &param);
        if (UCS_PTR_IS_PTR(status)) word.release();
        if (UCS_PTR_IS_ERR(status)) lose(p, UCS_PTR_STATUS(status));
    }

    // Those of the waiting words whose bytes are confirmed; of two values of one word the second when the first is.
    // `mutex_` is held.
    void begin_words(peer_process &p) {
        const auto held = [&p] {  // not if the peer is lost, and with it all words
            return !p.waiting.empty() &&
                   (p.confirmed < p.waiting.front().after || p.open.count(p.waiting.front().address) != 0);
        };
        while (!p.waiting.empty()) {
            if (held()) begin_flush(p);
            if (held()) return;
            if (!p.waiting.empty()) begin_word(p);
        }
        if (!p.given_up.empty())
            for (const ucp_rkey_h key : std::exchange(p.given_up, {})) retire(p, key);
    }

    // `mutex_` is held.
    void begin_flush(peer_process &p) {
        if (p.flushing) return;
        p.flush_confirms = p.puts;
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
        if (p.confirmed == p.puts) p.open.clear();
    }

    // Of what an _nbx function has returned; null if that was done at once, or has failed. `mutex_` is held.
    std::unique_ptr<transfer> pending(int peer, ucs_status_ptr_t status) {
        if (UCS_PTR_IS_PTR(status)) return std::make_unique<request>(*this, peer, status);
        if (UCS_PTR_IS_ERR(status)) lose(peers_.at(peer), UCS_PTR_STATUS(status));
        return nullptr;
    }

    // Puts under way, and words that wait, may still use the key.
    void retire(peer_process &p, ucp_rkey_h key) {
        if (!p.waiting.empty()) {
            p.given_up.push_back(key);
            return;
        }
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

    const outcome &lose(peer_process &p, ucs_status_t s) {
        p.waiting.clear();
        if (p.lost.empty()) p.lost = std::string("UCX has lost the connection: ") + ucp_.ucs_status_string(s);
        return p.lost;
    }

    outcome begin() {
        if (outcome bad = ucp_.load(); !bad.empty()) return bad;
        unsigned major = 0, minor = 0, release = 0;
        ucp_.ucp_get_version(&major, &minor, &release);
        fence_waits_ = major > 1 || minor >= 16 || wish_.played_gpus;
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
        params.features = UCP_FEATURE_RMA;
        params.name = "mpix";
        const ucs_status_t made = ucp_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
        ucp_.ucp_config_release(config);
        if (made != UCS_OK) return error("ucp_init", made);
        ucp_worker_params_t worker{};
        worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        if (const ucs_status_t s = ucp_.ucp_worker_create(context_, &worker, &worker_); s != UCS_OK) {
            ucp_.ucp_cleanup(context_);
            context_ = nullptr;
            worker_ = nullptr;
            return error("ucp_worker_create", s);
        }
        memory_.open(context_, gpu_type());
        ucp_context_attr_t attributes{};
        attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
        const bool known = ucp_.ucp_context_query(context_, &attributes) == UCS_OK;
        no_gpu_memory_ = ucx::why_no_gpu_memory(
            wish_, {major, minor, known && (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0});
        return {};
    }

    // The peer, with an endpoint.
    outcome connect(int number, peer_process *&out) {
        const auto it = peers_.find(number);
        if (it == peers_.end()) return "the peer has not said how UCX reaches it";
        peer_process &p = it->second;
        out = &p;
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
    bool fence_waits_ = false;
    outcome broken_;
    ucp_library ucp_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::map<int, peer_process> peers_;
    ucx::exposed_memory memory_{ucp_};
    gpu_side gpus_{*this};
    outcome no_gpu_memory_;
    std::map<key_name, unpacked_key> keys_;
};

}  // namespace

network &ucx_transport(const ucx_wish &wish) { return ucx_network::instance(wish); }

}  // namespace mpix::transport
