// SPDX-License-Identifier: BSD-3-Clause
//
// UCX: puts into registered memory of processes on other nodes, over whatever network it finds. One worker a process,
// which one thread at a time is in (a mutex, not UCX's own locks, so that completions are seen by whoever asks).
//
// Words, and puts of up to MPIX_UCX_EAGER_BYTES (over TCP all puts), go as active messages, which the receiving process
// stores in order (eager.h). More bytes are put by UCX, into registered memory; words behind them wait in a list until
// a flush has confirmed them: a round trip more. (ucp_worker_fence would order puts, not messages; and since 1.16 it
// waits for all puts to have arrived, and so for peers that are not in UCX just now.)
//
// The class is in four files: ucx.cc has its beginning, progress and end, and the GPU memory; peers.cc the peers with
// their endpoints and the keys of their memory; messages.cc what goes as eager messages, also out of the caller's
// memory; flushes.cc the choice between these and puts by UCX, waiting words, the flushes that confirm them, and
// delayed words.
#ifndef MPIX_TRANSPORT_UCX_UCX_NETWORK_H
#define MPIX_TRANSPORT_UCX_UCX_NETWORK_H

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/backends.h"
#include "transport/network.h"
#include "transport/reserve.h"
#include "transport/ucx/eager.h"
#include "transport/ucx/exposed_memory.h"
#include "transport/ucx/ucp_library.h"

namespace mpix::transport::ucx {

// UCX is not told where an address or a key ends.
constexpr std::size_t padding = 4096;
constexpr unsigned eager_id = 0;  // of our active messages

struct waiting_word {
    std::uint64_t after;  // so many puts have to be confirmed
    std::uint64_t address, value;
};

struct delayed_word {
    std::uint64_t address, value;
    std::uint64_t replaced;  // so many earlier values
};

// Held by each message that still reads one caller's buffer; use_count() counts them.
using buffer_use = std::shared_ptr<bool>;

struct peer_process {
    std::vector<std::uint8_t> address;  // empty: not told yet
    std::uint64_t calls_us = 0;
    ucp_ep_h endpoint = nullptr;
    status lost;
    std::uint64_t puts = 0, confirmed = 0;  // ever begun; of them known to have arrived, by a flush
    std::uint64_t begun = 0, left = 0;      // puts and messages; of them known to have left this process, by a flush
    // Words that are not begun, and how many ever were given to us.
    safe_deque<waiting_word> waiting;
    std::uint64_t words = 0;
    eager_outbox outbox;
    buffer_use body_use;     // of the body in it
    bool over_tcp = false;   // UCX reaches it over TCP only
    bool held_back = false;  // it is not empty, and goes when a thread that holds releases
    // Go with the next message, at the latest at that time.
    safe_vector<delayed_word> delayed;
    std::chrono::steady_clock::time_point delayed_until{};
    std::chrono::steady_clock::time_point last_delayable{};  // when the last word came that could be delayed
    bool word_since_delayable = false;                       // another word was put since
    std::uint64_t leaving = 0;                               // bytes of messages that UCX has, and has not sent
    std::uint64_t asked = 0;                                 // the last question in it
    eager_inbox inbox;
    bool deaf = false;              // nothing that it says counts any more
    bool in_progress_list = false;  // progress has something to do for it
    // One flush at a time.
    bool flushing = false;
    std::uint64_t flush_confirms = 0, flush_sees_off = 0;
};

struct eager_message {
    explicit eager_message(peer_process &p) : to(p) {}
    std::size_t copied() const { return parts.before.size() + parts.behind.size(); }
    peer_process &to;
    eager_parts parts;
    std::array<ucp_dt_iov_t, 3> pieces{};  // with a body
    buffer_use body_use;
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

    bool usable(status &why_not) override;
    // Our address behind the number by which we call the peer: its messages say it.
    status introduce(int peer, std::vector<std::uint8_t> &address) override;
    status meet(int peer, std::vector<std::uint8_t> address) override;
    status describe(const region &own, wire_region &out) override;
    void forget(const region &own) override;
    status attach(const wire_region &wire, int peer, region &out) override;
    void detach(region &peers) override;
    status put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
               std::unique_ptr<transfer> &out) override;
    status put_word(const region &to, std::uint64_t offset, std::uint64_t value) override;
    status put_word_delayed(const region &to, std::uint64_t offset, std::uint64_t value,
                            std::uint64_t most_replaced) override;
    bool has_delayed_words() const override { return peers_with_delayed_words_.load(std::memory_order_relaxed) != 0; }
    std::uint64_t eager_limit(int peer) override;
    // What one thread holds back another may send: then it goes earlier.
    void hold() override;
    void release() override;
    gpu_puts *gpu_memory(status &why_not) override;
    std::unique_ptr<transfer> flush(int peer) override;
    std::unique_ptr<transfer> depart(int peer) override;
    status lost(int peer) override;
    void give_up(int peer) override;
    bool progress() override;
    void stop() override;

    static ucx_network &instance(const ucx_options &options = {});

private:
    explicit ucx_network(const ucx_options &options) : options_(options) {}

    using key_name = std::pair<int, std::vector<std::uint8_t>>;

    struct gpu_side final : gpu_puts {
        ucx_network &owner;
        explicit gpu_side(ucx_network &o) : owner(o) {}
        status adopt(void *buffer, std::uint64_t bytes, int device, region &out) override;
        status describe(const region &own, wire_region &out, wire_region &rest) override;
        void forget(region &own) override;
        status attach(const wire_region &wire, const wire_region &rest, int peer, region &out) override;
        status put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                   std::unique_ptr<transfer> &out) override;
    };
    struct put_in_place;  // messages out of the caller's memory
    struct request;       // a request of UCX's, until it has completed
    struct wait_for_all;  // and what is made of it: flushes.cc
    struct confirmation;
    struct departure;

    // ucx.cc
    status begin();
    void abandon();
    void needs_progress(peer_process &p);
    // What is left for progress: words whose bytes may be confirmed by now, a question of the peer's, and its end if it
    // has sent what cannot be read. `mutex_` is held.
    void progress_peer(peer_process &p);
    ucs_memory_type_t gpu_type() const { return options_.fake_gpus ? UCS_MEMORY_TYPE_HOST : UCS_MEMORY_TYPE_CUDA; }

    // peers.cc
    // The peer, with an endpoint.
    status connect(int number, peer_process *&out);
    status connect(peer_process &p);
    void close(peer_process &p);
    std::string printed_info(ucp_ep_h endpoint) const;
    status error(const char *what, ucs_status_t s) const;
    const status &lose(peer_process &p, const status &why);
    // Also in UCX's callbacks, through which nothing may be thrown.
    const status &lose(peer_process &p, ucs_status_t s);
    status attach(const wire_region &wire, const wire_region *rest, int peer, region &out);
    // Puts under way may still use the key.
    void retire(peer_process &p, ucp_rkey_h key);
    std::uint64_t most_eager(const peer_process &p) const {
        if (options_.eager_bytes.has_value()) return *options_.eager_bytes;
        return p.over_tcp ? std::numeric_limits<std::uint64_t>::max() : ucx_options::usual_eager_bytes;
    }
    peer_process &peer_of(const region &to) {
        return peers_.at(reinterpret_cast<const unpacked_key *>(to.handle)->peer);
    }

    // messages.cc
    // Bytes that stay where they are until UCX has sent them. Gives `lock`, of mutex_, up now and then.
    status begin_messages(std::unique_lock<std::mutex> &lock, peer_process &p, std::uint64_t address, const void *from,
                          std::uint64_t bytes, std::unique_ptr<transfer> &out);
    void send_or_hold(peer_process &p);
    // What is in the outbox. `mutex_` is held.
    void send(peer_process &p);
    // Called in calls of ours, so with the mutex held.
    static ucs_status_t take_message(void *, const void *, std::size_t, void *data, std::size_t bytes,
                                     const ucp_am_recv_param_t *how);
    // That we have applied what the peer asked for; not before it has told us its address. `mutex_` is held.
    void answer(peer_process &p);

    // flushes.cc
    // `type`: of the memory at `from`, if UCX is not to find out.
    status begin_put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                     ucs_memory_type_t type, std::unique_ptr<transfer> &out);
    status begin_put_locked(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                            ucs_memory_type_t type, std::unique_ptr<transfer> &out);
    // To the outbox, or to the waiting words. `mutex_` is held.
    void add_word(peer_process &p, std::uint64_t address, std::uint64_t value);
    // Into the outbox, as far as it has room. `mutex_` is held.
    void take_delayed(peer_process &p);
    void forget_delayed(peer_process &p, std::uint64_t address);
    void drop_delayed(peer_process &p);
    // Those of the waiting words whose bytes are confirmed. `mutex_` is held.
    void begin_words(peer_process &p);
    // `mutex_` is held.
    void begin_flush(peer_process &p);
    void end_flush(peer_process &p, ucs_status_t s);

    const ucx_options options_;
    std::mutex mutex_;
    bool tried_ = false;
    status broken_;
    ucp_library ucp_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::map<int, peer_process> peers_;
    safe_vector<peer_process *> held_back_, to_progress_;  // maps do not move what they hold
    std::atomic<unsigned> peers_with_delayed_words_{0};
    std::uint64_t received_ = 0;  // messages
    exposed_memory memory_{ucp_};
    gpu_side gpus_{*this};
    status no_gpu_memory_;
    std::map<key_name, unpacked_key> keys_;
};

}  // namespace mpix::transport::ucx

#endif  // MPIX_TRANSPORT_UCX_UCX_NETWORK_H
