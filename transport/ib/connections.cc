// SPDX-License-Identifier: BSD-3-Clause
//
// The queue pairs, one a peer: how they are made, connected and lost. And the NIC's own work queues, where it has them.
#include <algorithm>
#include <cstring>
#include <new>

#include "transport/ib/verbs_network.h"

namespace mpix::transport::verbs {
namespace {

constexpr std::uint32_t inline_wanted = 64;  // bytes that travel in the work request itself

// What meet() of the peer is given. `queue`: the NIC's work queue, if it executes one, else of version 0.
struct address_pair {
    rdma::qp_address connection, queue;
};

}  // namespace

status verbs_network::introduce(int peer, std::vector<std::uint8_t> &address) {
    const std::lock_guard lock(mutex_);
    if (!broken_.ok()) return broken_;
    peer_process &p = peers_[peer];
    if (!p.lost.ok()) return p.lost;
    if (p.queue == nullptr)
        if (status bad = make_queue(p); !bad.ok()) return lose(p, bad);
    address_pair own{rdma::qp_address_of(port_, p.queue->qp_num, p.psn), {}};
    if (hardware_ != nullptr)
        if (status bad = hardware_->introduce(peer, own.queue); !bad.ok()) p.no_queue = bad;
    if (status bad = connect(peer, p); !bad.ok()) return lose(p, bad);
    const auto *const first = reinterpret_cast<const std::uint8_t *>(&own);
    address.assign(first, first + sizeof own);
    return {};
}

status verbs_network::meet(int peer, std::vector<std::uint8_t> address) {
    address_pair peers;
    if (address.size() != sizeof peers) return failure("a malformed address of its queue pair");
    std::memcpy(&peers, address.data(), sizeof peers);
    if (!rdma::well_formed(peers.connection) || (peers.queue.version != 0 && !rdma::well_formed(peers.queue)))
        return failure("a malformed address of its queue pair");
    const std::lock_guard lock(mutex_);
    if (!broken_.ok()) return broken_;
    peer_process &p = peers_[peer];
    if (p.met) return p.lost;
    p.met = true;
    p.address = peers.connection;
    p.queues_address = peers.queue;
    status bad = connect(peer, p);
    return bad.ok() ? bad : lose(p, bad);
}

status verbs_network::make_queue(peer_process &p) {
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
    if (p.most_inline < sizeof(std::uint64_t)) return failure("the RDMA device takes no 8 bytes in a work request");
    p.psn = rdma::any_psn();
    return rdma::initialize(ibv_.ibv_modify_qp, p.queue, port_);
}

status verbs_network::connect(int peer, peer_process &p) {
    if (!p.met || p.queue == nullptr || p.connected) return {};
    if (status bad = rdma::connect(ibv_.ibv_modify_qp, p.queue, port_, p.psn, p.address); !bad.ok()) return bad;
    p.connected = true;
    if (hardware_ != nullptr && p.no_queue.ok())
        p.no_queue = p.queues_address.version == 0 ? failure("the peer's device executes none")
                                                   : hardware_->meet(peer, p.queues_address);
    return {};
}

void verbs_network::drop(peer_process &p) {
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

const status &verbs_network::lose(peer_process &p, const status &why) {
    try {
        if (p.lost.ok())
            p.lost = why.in_context(p.connected ? "the RDMA connection is lost: " : "no RDMA connection: ");
    } catch (const std::bad_alloc &) {
        p.lost = no_memory();
    }
    drop(p);
    return p.lost;
}

status verbs_network::lost(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    return it == peers_.end() ? status{} : it->second.lost;
}

void verbs_network::give_up(int peer) {
    const std::lock_guard lock(mutex_);
    if (const auto it = peers_.find(peer); it != peers_.end()) lose(it->second, failure("the process has ended"));
    if (hardware_ != nullptr) hardware_->give_up(peer);
}

status verbs_network::no_hardware_queues() {
    const std::lock_guard lock(mutex_);
    return broken_.ok() ? no_hardware_ : broken_;
}

status verbs_network::hardware_queue(int peer, transport &host_memory, transport *gpus, int device,
                                     std::unique_ptr<send_queue> &out) {
    std::shared_ptr<hardware_queues> hardware;
    {
        const std::lock_guard lock(mutex_);
        if (!broken_.ok()) return broken_;
        if (hardware_ == nullptr) return no_hardware_;
        const auto it = peers_.find(peer);
        if (it == peers_.end() || !it->second.connected) return failure("the queue pair of the peer is not connected");
        if (!it->second.no_queue.ok()) return it->second.no_queue;
        hardware = hardware_;
    }
    return hardware->open_queue(peer, host_memory, gpus, device, out);
}

}  // namespace mpix::transport::verbs
