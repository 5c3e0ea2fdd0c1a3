// SPDX-License-Identifier: BSD-3-Clause
//
// Reliable connections of libibverbs, one queue pair a peer, posted to by the CPU: RDMA writes into registered memory of
// processes on other nodes. Any RDMA device that has them will do, Soft-RoCE included.
//
// Words behind bytes: the writes of one queue pair are executed in the order in which they are posted, and no memory is
// registered with relaxed ordering, so none overtakes another on the way to the receiver's memory.
//
// What is put waits in a list of ours while the queue pair is full: nobody waits for a peer.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "transport/backends.h"
#include "transport/hardware_queues.h"
#include "transport/network.h"
#include "transport/rdma_connection.h"
#include "transport/reserve.h"
#include "transport/verbs/ibverbs_library.h"

namespace mpix::transport {
namespace {

using verbs::ibverbs_library;

constexpr std::uint32_t most_posted = 128;    // writes under way of one queue pair
constexpr std::uint32_t most_entries = 4096;  // of the completion queue
constexpr std::uint32_t inline_wanted = 64;   // bytes that travel in the work request itself

struct wire_address {
    std::uint64_t address;
    std::uint32_t key;
    std::uint8_t reserved[164];
};
static_assert(sizeof(wire_address) == sizeof(wire_region::address));

// What meet() of the peer is given. `queue`: the NIC's work queue, if it executes one, else of version 0.
struct address_pair {
    rdma::calling_card connection, queue;
};

// One put, from put() until its last byte is known to have arrived.
struct put_operation {
    std::uint64_t to;
    std::uint32_t key;
    const char *from;  // null: `word`
    std::uint64_t word;
    std::uint64_t left;  // not posted yet
    ibv_mr *source = nullptr;
};

// A work request under way; they complete in order.
struct posted_write {
    bool last;       // of its put
    ibv_mr *source;  // to be given back then
};

struct peer_process {
    ibv_qp *queue = nullptr;
    std::uint32_t psn = 0;
    std::uint32_t most_inline = 0;
    rdma::calling_card card{}, queues_card{};
    bool met = false, connected = false;
    outcome no_queue;  // why no queue to it is the NIC's
    outcome lost;
    std::uint64_t puts = 0, done = 0;  // ever begun; of them, in order, those that have arrived
    safe_deque<put_operation> waiting;
    safe_deque<posted_write> posted;
};

class verbs_network final : public network {
public:
    explicit verbs_network(const rdma_wish &wish) : wish_(wish) {}

    const char *name() const override { return "verbs"; }
    transport_id id() const override { return id_verbs; }

    bool usable(outcome &why_not) override {
        const std::lock_guard lock(mutex_);
        if (!tried_) {
            try {
                broken_ = begin();
            } catch (...) {  // the next call tries again
                end();
                throw;
            }
            tried_ = true;
            if (!broken_.empty()) end();
        }
        why_not = broken_;
        return broken_.empty();
    }

    std::string device() override {
        const std::lock_guard lock(mutex_);
        return context_ == nullptr ? std::string() : rdma::name_of(context_, port_);
    }

    outcome introduce(int peer, std::vector<std::uint8_t> &address) override {
        const std::lock_guard lock(mutex_);
        if (!broken_.empty()) return broken_;
        peer_process &p = peers_[peer];
        if (!p.lost.empty()) return p.lost;
        if (p.queue == nullptr)
            if (outcome bad = make_queue(p); !bad.empty()) return lose(p, bad);
        address_pair own{rdma::card_of(port_, p.queue->qp_num, p.psn), {}};
        if (hardware_ != nullptr)
            if (outcome bad = hardware_->introduce(peer, own.queue); !bad.empty()) p.no_queue = bad;
        if (outcome bad = connect(peer, p); !bad.empty()) return lose(p, bad);
        const auto *const first = reinterpret_cast<const std::uint8_t *>(&own);
        address.assign(first, first + sizeof own);
        return {};
    }

    outcome meet(int peer, std::vector<std::uint8_t> address) override {
        address_pair peers;
        if (address.size() != sizeof peers) return "a malformed address of its queue pair";
        std::memcpy(&peers, address.data(), sizeof peers);
        if (!rdma::well_formed(peers.connection) || (peers.queue.version != 0 && !rdma::well_formed(peers.queue)))
            return "a malformed address of its queue pair";
        const std::lock_guard lock(mutex_);
        if (!broken_.empty()) return broken_;
        peer_process &p = peers_[peer];
        if (p.met) return p.lost;
        p.met = true;
        p.card = peers.connection;
        p.queues_card = peers.queue;
        outcome bad = connect(peer, p);
        return bad.empty() ? bad : lose(p, bad);
    }

    outcome describe(const region &own, wire_region &out) override {
        const std::lock_guard lock(mutex_);
        if (!broken_.empty()) return broken_;
        ibv_mr *&memory = registrations_[own.backing];
        if (memory == nullptr)
            memory =
                ibv_.reg_mr(domain_, own.backing, own.backing_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (memory == nullptr) {
            registrations_.erase(own.backing);
            return not_registered();
        }
        wire_address address{};
        address.address = reinterpret_cast<std::uint64_t>(own.address);
        address.key = memory->rkey;
        out = {};
        out.transport = id_verbs;
        out.device = on_host;
        out.bytes = own.bytes;
        std::memcpy(out.address, &address, sizeof address);
        return {};
    }

    void forget(const region &own) override {
        if (own.lasting) return;  // the mapping is others' as well, and stays
        const std::lock_guard lock(mutex_);
        const auto it = registrations_.find(own.backing);
        if (it == registrations_.end()) return;
        ibv_.ibv_dereg_mr(it->second);
        registrations_.erase(it);
    }

    outcome attach(const wire_region &wire, int peer, region &out) override {
        wire_address address;
        std::memcpy(&address, wire.address, sizeof address);
        if (wire.transport != id_verbs || address.address == 0 || wire.bytes > ~address.address)
            return "malformed description of a remote region";
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        if (it == peers_.end() || !it->second.met) return "the peer has not said how its queue pair is reached";
        if (!it->second.lost.empty()) return it->second.lost;
        out = {};
        out.address = reinterpret_cast<void *>(address.address);
        out.bytes = wire.bytes;
        out.remote = true;
        out.handle = rdma::handle_of(peer, address.key);
        return {};
    }

    void detach(region &peers) override { peers = {}; }

    outcome put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                std::unique_ptr<transfer> &out) override {
        out = nullptr;
        if (offset > to.bytes || bytes > to.bytes - offset) return "a put beyond the end of the peer's region";
        if (bytes == 0) return {};
        const std::lock_guard lock(mutex_);
        const int peer = rdma::peer_of(to);
        auto made = std::make_unique<arrival>(*this, peer, 0);  // before there is something to wait for
        if (outcome bad = begin_put(peer, to, offset, static_cast<const char *>(from), 0, bytes); !bad.empty())
            return bad;
        made->number = peers_.at(peer).puts;
        out = std::move(made);
        return {};
    }

    outcome put_word(const region &to, std::uint64_t offset, std::uint64_t value) override {
        if (offset > to.bytes || sizeof value > to.bytes - offset) return "a put beyond the end of the peer's region";
        const std::lock_guard lock(mutex_);
        // publish_partition: bytes before words, by the order of the queue pair, see above.
        return begin_put(rdma::peer_of(to), to, offset, nullptr, value, sizeof value);
    }

    std::unique_ptr<transfer> flush(int peer) override {
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        if (it == peers_.end() || it->second.done == it->second.puts || !it->second.lost.empty()) return nullptr;
        return std::make_unique<arrival>(*this, peer, it->second.puts);
    }

    outcome no_hardware_queues() override {
        const std::lock_guard lock(mutex_);
        return broken_.empty() ? no_hardware_ : broken_;
    }

    outcome hardware_queue(int peer, transport &host_memory, transport *gpus, int device,
                           std::unique_ptr<send_queue> &out) override {
        std::shared_ptr<hardware_queues> hardware;
        {
            const std::lock_guard lock(mutex_);
            if (!broken_.empty()) return broken_;
            if (hardware_ == nullptr) return no_hardware_;
            const auto it = peers_.find(peer);
            if (it == peers_.end() || !it->second.connected) return "the queue pair of the peer is not connected";
            if (!it->second.no_queue.empty()) return it->second.no_queue;
            hardware = hardware_;
        }
        return hardware->open_queue(peer, host_memory, gpus, device, out);
    }

    outcome lost(int peer) override {
        const std::lock_guard lock(mutex_);
        const auto it = peers_.find(peer);
        return it == peers_.end() ? outcome{} : it->second.lost;
    }

    void give_up(int peer) override {
        const std::lock_guard lock(mutex_);
        if (const auto it = peers_.find(peer); it != peers_.end()) lose(it->second, "the process has ended");
        if (hardware_ != nullptr) hardware_->give_up(peer);
    }

    bool progress() override {
        const std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread is at it
        if (!lock || completions_ == nullptr) return false;
        ibv_wc entries[16];
        const int n = ibv_poll_cq(completions_, 16, entries);
        for (int i = 0; i < n; ++i) complete(entries[i]);
        for (auto &[number, p] : peers_) post_waiting(number, p);
        return n > 0;
    }

    void stop() override {
        const std::lock_guard lock(mutex_);
        end();
        broken_ = "MPI_Finalize has been called";
    }

private:
    // Finished when so many puts to the peer are known to have arrived.
    struct arrival final : transfer {
        verbs_network &owner;
        int peer;
        std::uint64_t number;
        arrival(verbs_network &o, int p, std::uint64_t n) : owner(o), peer(p), number(n) {}
        bool finished(outcome &problem) override {
            const std::lock_guard lock(owner.mutex_);
            const auto it = owner.peers_.find(peer);
            if (it == owner.peers_.end()) {
                problem = owner.broken_;
                return true;
            }
            if (it->second.done >= number) return true;
            problem = it->second.lost;
            return !problem.empty();
        }
    };

    static outcome not_registered() {
        outcome text = rdma::failed_call("ibv_reg_mr", errno);
        return errno == ENOMEM ? text + " (the limit of locked memory, \"ulimit -l\"?)" : text;
    }

    // ---- the device: `mutex_` is held ----

    outcome begin() {
        if (outcome bad = ibv_.load(); !bad.empty()) return bad;
        int n = 0;
        ibv_device **const devices = ibv_.ibv_get_device_list(&n);
        outcome bad = "there is no RDMA device";
        std::string others;
        for (int i = 0; i < n && context_ == nullptr; ++i) {
            if (devices[i]->transport_type != IBV_TRANSPORT_IB) continue;  // RoCE is that as well
            if (!wish_.name.empty() && wish_.name != devices[i]->name) {
                others += (others.empty() ? "" : ", ") + std::string(devices[i]->name);
                bad = "there is no RDMA device \"" + wish_.name + "\" (MPIX_VERBS_DEVICE), but " + others;
                continue;
            }
            context_ = ibv_.ibv_open_device(devices[i]);
            bad = context_ == nullptr ? rdma::failed_call("ibv_open_device", errno)
                                      : rdma::find_port(ibv_.port(), context_, wish_, port_);
            if (context_ != nullptr && !bad.empty()) {
                ibv_.ibv_close_device(context_);
                context_ = nullptr;
            }
        }
        if (devices != nullptr) ibv_.ibv_free_device_list(devices);
        if (context_ == nullptr) return bad;
        ibv_device_attr can{};
        if (const int e = ibv_.ibv_query_device(context_, &can); e != 0)
            return rdma::failed_call("ibv_query_device", e);
        depth_ = std::min(most_posted, static_cast<std::uint32_t>(can.max_qp_wr));
        entries_ = std::min(most_entries, static_cast<std::uint32_t>(can.max_cqe));
        domain_ = ibv_.ibv_alloc_pd(context_);
        if (domain_ == nullptr) return rdma::failed_call("ibv_alloc_pd", errno);
        // Entries of queue pairs that are gone may still be there, see drop.
        room_ = entries_ - std::min(entries_ / 2, 8 * depth_);
        completions_ = ibv_.ibv_create_cq(context_, static_cast<int>(entries_), nullptr, nullptr, 0);
        if (completions_ == nullptr) return rdma::failed_call("ibv_create_cq", errno);
#if MPIX_HAVE_MLX5
        std::unique_ptr<hardware_queues> hardware;
        no_hardware_ = make_mlx5_queues(context_, domain_, port_, hardware);
        hardware_ = std::move(hardware);
#endif
        return {};
    }

    void end() {
        hardware_ = nullptr;
        for (auto &[number, p] : peers_) drop(p);
        peers_.clear();
        for (auto &[backing, memory] : registrations_) ibv_.ibv_dereg_mr(memory);
        registrations_.clear();
        if (completions_ != nullptr) ibv_.ibv_destroy_cq(completions_);
        if (domain_ != nullptr) ibv_.ibv_dealloc_pd(domain_);
        if (context_ != nullptr) ibv_.ibv_close_device(context_);
        completions_ = nullptr;
        domain_ = nullptr;
        context_ = nullptr;
    }

    // ---- connections: `mutex_` is held ----

    outcome make_queue(peer_process &p) {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = completions_;
        wanted.cap.max_send_wr = depth_;
        wanted.cap.max_recv_wr = 1;
        wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
        wanted.cap.max_inline_data = inline_wanted;
        wanted.qp_type = IBV_QPT_RC;
        wanted.sq_sig_all = 1;
        p.queue = ibv_.ibv_create_qp(domain_, &wanted);
        if (p.queue == nullptr) return rdma::failed_call("ibv_create_qp", errno);
        p.most_inline = std::min(inline_wanted, wanted.cap.max_inline_data);
        if (p.most_inline < sizeof(std::uint64_t)) return "the RDMA device takes no 8 bytes in a work request";
        p.psn = rdma::any_psn();
        return rdma::initialize(ibv_.ibv_modify_qp, p.queue, port_);
    }

    // Once both ends are known.
    outcome connect(int peer, peer_process &p) {
        if (!p.met || p.queue == nullptr || p.connected) return {};
        if (outcome bad = rdma::connect(ibv_.ibv_modify_qp, p.queue, port_, p.psn, p.card); !bad.empty()) return bad;
        p.connected = true;
        if (hardware_ != nullptr && p.no_queue.empty())
            p.no_queue =
                p.queues_card.version == 0 ? "the peer's device executes none" : hardware_->meet(peer, p.queues_card);
        return {};
    }

    // No memory of ours is read or written by way of it any more.
    void drop(peer_process &p) {
        if (p.queue != nullptr) ibv_.ibv_destroy_qp(p.queue);
        p.queue = nullptr;
        under_way_ -= p.posted.size();
        for (const posted_write &w : p.posted)
            if (w.last && w.source != nullptr) ibv_.ibv_dereg_mr(w.source);
        for (const put_operation &o : p.waiting)
            if (o.source != nullptr) ibv_.ibv_dereg_mr(o.source);
        p.posted.clear();
        p.waiting.clear();
    }

    // For good: every later call about the peer gives the same reason.
    const outcome &lose(peer_process &p, const outcome &why) {
        try {
            if (p.lost.empty()) p.lost = (p.connected ? "the RDMA connection is lost: " : "no RDMA connection: ") + why;
        } catch (const std::bad_alloc &) {
            p.lost = "no memory";
        }
        drop(p);
        return p.lost;
    }

    // ---- puts: `mutex_` is held ----

    outcome begin_put(int peer, const region &to, std::uint64_t offset, const char *from, std::uint64_t word,
                      std::uint64_t bytes) {
        const auto it = peers_.find(peer);
        if (it == peers_.end()) return broken_;
        peer_process &p = it->second;
        if (!p.lost.empty()) return p.lost;
        if (!p.connected) return "the queue pair of the peer is not connected";
        ++p.puts;
        p.waiting.push_back(
            {reinterpret_cast<std::uint64_t>(to.address) + offset, rdma::key_of(to), from, word, bytes});
        post_waiting(peer, p);
        return p.lost;
    }

    void post_waiting(int number, peer_process &p) {
        while (!p.waiting.empty() && p.posted.size() < depth_ && under_way_ < room_) {
            put_operation &o = p.waiting.front();
            const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(o.left, port_.attributes.max_msg_sz));
            const bool is_inline = o.source == nullptr && o.left <= p.most_inline;
            if (!is_inline && o.source == nullptr) {
                // Whatever the user sends from, for as long as it takes: what a kept registration says of memory that
                // was given back and taken anew would be wrong.
                o.source = ibv_.reg_mr(domain_, const_cast<char *>(o.from), o.left, 0);
                if (o.source == nullptr) {
                    if (errno == ENOMEM && !p.posted.empty()) return;  // what is under way gives memory back
                    lose(p, not_registered());
                    return;
                }
            }
            ibv_sge piece{};
            piece.addr =
                reinterpret_cast<std::uint64_t>(o.from != nullptr ? o.from : reinterpret_cast<char *>(&o.word));
            piece.length = bytes;
            piece.lkey = is_inline ? 0 : o.source->lkey;
            ibv_send_wr wr{}, *refused = nullptr;
            wr.wr_id = static_cast<std::uint32_t>(number);
            wr.sg_list = &piece;
            wr.num_sge = 1;
            wr.opcode = IBV_WR_RDMA_WRITE;
            wr.send_flags = is_inline ? IBV_SEND_INLINE : 0;
            wr.wr.rdma.remote_addr = o.to;
            wr.wr.rdma.rkey = o.key;
            if (const int e = ibv_post_send(p.queue, &wr, &refused); e != 0) {
                lose(p, rdma::failed_call("ibv_post_send", e));
                return;
            }
            ++under_way_;
            o.left -= bytes;
            o.to += bytes;
            if (o.from != nullptr) o.from += bytes;
            p.posted.push_back({o.left == 0, o.source});
            if (o.left == 0) p.waiting.pop_front();
        }
    }

    void complete(const ibv_wc &entry) {
        const auto it = peers_.find(static_cast<int>(entry.wr_id));
        if (it == peers_.end() || !it->second.lost.empty()) return;  // of a queue pair that is gone
        peer_process &p = it->second;
        if (entry.status != IBV_WC_SUCCESS) {
            lose(p, ibv_.ibv_wc_status_str(entry.status));
            return;
        }
        if (p.posted.empty()) return;
        const posted_write w = p.posted.front();
        p.posted.pop_front();
        --under_way_;
        if (!w.last) return;
        if (w.source != nullptr) ibv_.ibv_dereg_mr(w.source);
        ++p.done;
    }

    const rdma_wish wish_;
    std::mutex mutex_;
    bool tried_ = false;
    outcome broken_;
    ibverbs_library ibv_;
    ibv_context *context_ = nullptr;
    ibv_pd *domain_ = nullptr;
    ibv_cq *completions_ = nullptr;
    rdma::port port_;
    outcome no_hardware_ = "mpix was built without the vendor's header for ConnectX";
    std::shared_ptr<hardware_queues> hardware_;  // or null, and why
    std::uint32_t depth_ = 0;                    // of a queue pair
    std::uint32_t entries_ = 0;                  // of the completion queue
    std::uint32_t room_ = 0;                     // of them, for work requests under way
    std::size_t under_way_ = 0;                  // work requests posted to all peers that have not completed
    std::map<int, peer_process> peers_;
    safe_map<void *, ibv_mr *> registrations_;
};

}  // namespace

network &verbs_transport(const rdma_wish &device) {
    // Never destroyed, as the other transports.
    static auto *const one = new verbs_network(device);
    return *one;
}

}  // namespace mpix::transport
