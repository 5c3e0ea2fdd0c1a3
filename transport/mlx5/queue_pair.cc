// SPDX-License-Identifier: BSD-3-Clause
#include "transport/mlx5/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

namespace mpix::transport::mlx5 {

namespace {

constexpr std::uint8_t ack_timeout = 18;  // 4.096 us * 2^18, about a second,
constexpr std::uint8_t retries = 7;       // so often, before a peer is taken for lost

// What connect() of the peer needs of our end.
struct calling_card {
    std::uint32_t version;
    std::uint32_t qpn, psn;
    std::uint16_t lid;
    std::uint8_t mtu;
    std::uint8_t by_gid;
    std::uint8_t gid[16];
};
static_assert(sizeof(calling_card) == 32);
constexpr std::uint32_t card_version = 1;

outcome error(const char *what, int number) { return std::string(what) + ": " + std::strerror(number); }

// RoCE: version 2, of an IPv4 address if there is one; else whatever comes first.
bool choose_gid(const verbs_calls &verbs, ibv_context *device, port &p) {
    constexpr std::uint8_t ipv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    int best = 0;
    for (int i = 0; i < p.attributes.gid_tbl_len && i < 256; ++i) {
        ibv_gid_entry entry{};
        if (verbs._ibv_query_gid_ex(device, p.number, static_cast<std::uint32_t>(i), &entry, 0, sizeof entry) != 0)
            continue;
        const int rank =
            1 + 2 * (entry.gid_type == IBV_GID_TYPE_ROCE_V2) + (std::memcmp(entry.gid.raw, ipv4, sizeof ipv4) == 0);
        if (rank <= best) continue;
        best = rank;
        p.gid = entry.gid;
        p.gid_index = static_cast<std::uint8_t>(i);
    }
    return best != 0;
}

}  // namespace

outcome find_port(const verbs_calls &verbs, ibv_context *device, port &out) {
    if (!verbs.mlx5dv_is_supported(device->device)) return "the RDMA device is no mlx5 device";
    ibv_device_attr can{};
    if (const int e = verbs.ibv_query_device(device, &can); e != 0) return error("ibv_query_device", e);
    for (std::uint8_t number = 1; number <= can.phys_port_cnt; ++number) {
        port p;
        p.number = number;
        if (verbs.query_port(device, number, &p.attributes) != 0 || p.attributes.state != IBV_PORT_ACTIVE) continue;
        p.by_gid = p.attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
        if (p.by_gid && !choose_gid(verbs, device, p)) continue;
        out = p;
        return {};
    }
    return "no port of the mlx5 device is active";
}

// ---- open, close --------------------------------------------------------------------------------------------------

outcome queue_pair::open(const verbs_calls &verbs, gpu_pages *pages, ibv_context *device, ibv_pd *domain,
                         const port &at, std::uint32_t blocks) {
    close();
    verbs_ = verbs;
    pages_ = pages;
    port_ = &at;
    outcome bad = make(device, domain, blocks);
    if (bad.empty()) bad = export_rings();
    if (bad.empty()) bad = map_for_gpu();
    if (bad.empty()) bad = to_initial_state();
    if (!bad.empty()) close();
    return bad;
}

outcome queue_pair::make(ibv_context *device, ibv_pd *domain, std::uint32_t blocks) {
    if (blocks == 0 || blocks > 1u << detail::wqe_most_log) return "a send queue has 1 to 32768 blocks";
    // A register of its own: nobody else rings by it, nor under a lock that we do not hold.
    ibv_td_init_attr thread{};
    thread_domain_ = verbs_.alloc_td(device, &thread);
    if (thread_domain_ == nullptr) return error("ibv_alloc_td", errno);
    ibv_parent_domain_init_attr parent{};
    parent.pd = domain;
    parent.td = thread_domain_;
    parent_ = verbs_.alloc_parent_domain(device, &parent);
    if (parent_ == nullptr) return error("ibv_alloc_parent_domain", errno);
    completions_ = verbs_.ibv_create_cq(device, wanted_entries(blocks), nullptr, nullptr, 0);
    if (completions_ == nullptr) return error("ibv_create_cq", errno);
    ibv_qp_init_attr_ex wanted = wanted_queue(parent_, completions_, blocks);
    queue_ = verbs_.create_qp_ex(device, &wanted);
    if (queue_ == nullptr) return error("ibv_create_qp_ex", errno);
    psn_ = std::random_device{}() & 0xffffff;
    return {};
}

outcome queue_pair::export_rings() {
    mlx5dv_qp queue{};
    mlx5dv_cq completions{};
    mlx5dv_obj both{};
    both.qp.in = queue_;
    both.qp.out = &queue;
    both.cq.in = completions_;
    both.cq.out = &completions;
    if (const int e = verbs_.mlx5dv_init_obj(&both, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ); e != 0)
        return error("mlx5dv_init_obj", e);
    outcome bad = check_export(queue, completions);
    if (bad.empty()) host_ = posting_ = rings_of(queue, completions, queue_->qp_num);
    return bad;
}

outcome queue_pair::map_for_gpu() {
    if (pages_ == nullptr) return {};
    outcome bad;
    const auto hold = [&](auto *host, std::size_t bytes, bool registers) {
        void *gpu = nullptr;
        bad = pages_->hold(host, bytes, registers, gpu);
        if (bad.empty()) held_.push_back({host, bytes});
        return static_cast<decltype(host)>(gpu);
    };
    posting_.sq = hold(host_.sq, sizeof(detail::wqe) << host_.log_sq, false);
    if (bad.empty()) posting_.cq = hold(host_.cq, sizeof(detail::cqe) << host_.log_cq, false);
    if (bad.empty()) posting_.sq_record = hold(host_.sq_record, sizeof *host_.sq_record, false);
    if (bad.empty()) posting_.cq_record = hold(host_.cq_record, sizeof *host_.cq_record, false);
    if (!bad.empty()) return "the GPU does not reach the queue: " + bad;
    // This one takes rights that not every program has; the rest works without.
    posting_.doorbell = hold(host_.doorbell, sizeof *host_.doorbell, true);
    if (bad.empty()) return {};
    posting_.doorbell = nullptr;
    bell_ = bell::by_ringer;
    why_ringer_ = "the GPU does not reach the NIC's doorbell: " + bad;
    return {};
}

void queue_pair::close() {
    // CUDA lets go of the pages before the provider gives them back; the NIC's own hold on them does not depend on it.
    for (; !held_.empty(); held_.pop_back()) pages_->release(held_.back().host, held_.back().bytes);
    if (queue_ != nullptr) verbs_.ibv_destroy_qp(queue_);
    if (completions_ != nullptr) verbs_.ibv_destroy_cq(completions_);
    if (parent_ != nullptr) verbs_.ibv_dealloc_pd(parent_);
    if (thread_domain_ != nullptr) verbs_.dealloc_td(thread_domain_);
    queue_ = nullptr;
    completions_ = nullptr;
    parent_ = nullptr;
    thread_domain_ = nullptr;
    host_ = posting_ = {};
    bell_ = bell::by_poster;
    why_ringer_ = {};
}

// ---- connect ------------------------------------------------------------------------------------------------------

outcome queue_pair::modify(ibv_qp_attr &a, int mask) {
    const int e = verbs_.ibv_modify_qp(queue_, &a, mask);
    return e == 0 ? outcome{} : error("ibv_modify_qp", e);
}

outcome queue_pair::to_initial_state() {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = port_->number;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    return modify(a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

std::vector<std::uint8_t> queue_pair::address() const {
    calling_card card{};
    card.version = card_version;
    card.qpn = host_.qpn;
    card.psn = psn_;
    card.lid = port_->attributes.lid;
    card.mtu = static_cast<std::uint8_t>(port_->attributes.active_mtu);
    card.by_gid = port_->by_gid;
    std::memcpy(card.gid, port_->gid.raw, sizeof card.gid);
    const auto *const first = reinterpret_cast<const std::uint8_t *>(&card);
    return {first, first + sizeof card};
}

outcome queue_pair::connect(const std::vector<std::uint8_t> &peers) {
    calling_card card;
    if (queue_ == nullptr) return "the queue pair is not open";
    if (peers.size() != sizeof card) return "a malformed address of the peer's queue pair";
    std::memcpy(&card, peers.data(), sizeof card);
    if (card.version != card_version || card.mtu < IBV_MTU_256 || card.mtu > IBV_MTU_4096 || card.qpn > 0xffffff ||
        card.psn > 0xffffff || card.by_gid > 1)
        return "a malformed address of the peer's queue pair";
    if (card.by_gid != static_cast<std::uint8_t>(port_->by_gid))
        return "one of the two ports is InfiniBand's, the other one Ethernet's";
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = static_cast<ibv_mtu>(std::min<int>(card.mtu, port_->attributes.active_mtu));
    a.dest_qp_num = card.qpn;
    a.rq_psn = card.psn;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 12;
    a.ah_attr.port_num = port_->number;
    a.ah_attr.dlid = card.lid;
    if (port_->by_gid) {
        a.ah_attr.is_global = 1;
        std::memcpy(a.ah_attr.grh.dgid.raw, card.gid, sizeof card.gid);
        a.ah_attr.grh.sgid_index = port_->gid_index;
        a.ah_attr.grh.hop_limit = 64;
    }
    if (outcome bad = modify(a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        !bad.empty())
        return bad;
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = ack_timeout;
    a.retry_cnt = retries;
    a.rnr_retry = retries;
    a.sq_psn = psn_;
    a.max_rd_atomic = 1;
    return modify(a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace mpix::transport::mlx5
