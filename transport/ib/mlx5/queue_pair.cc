// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/queue_pair.h"

#include <cerrno>

namespace mpix::transport::mlx5 {

// ---- open, close --------------------------------------------------------------------------------------------------

status queue_pair::open(const verbs_calls &verbs, ibv_context *device, ibv_pd *domain, const rdma::port &at,
                        std::uint32_t blocks) {
    close();
    verbs_ = verbs;
    port_ = &at;
    status bad = make(device, domain, blocks);
    if (bad.ok()) bad = export_rings();
    if (bad.ok()) bad = rdma::initialize(verbs_.ibv_modify_qp, queue_, at);
    if (!bad.ok()) close();
    return bad;
}

status queue_pair::make(ibv_context *device, ibv_pd *domain, std::uint32_t blocks) {
    if (blocks == 0 || blocks > 1u << detail::wqe_most_log) return failure("a send queue has 1 to 32768 blocks");
    // A register of its own: nobody else rings by it, nor under a lock that we do not hold.
    ibv_td_init_attr thread{};
    thread_domain_ = verbs_.alloc_td(device, &thread);
    if (thread_domain_ == nullptr) return rdma::failed_call("ibv_alloc_td", errno);
    ibv_parent_domain_init_attr parent{};
    parent.pd = domain;
    parent.td = thread_domain_;
    parent_ = verbs_.alloc_parent_domain(device, &parent);
    if (parent_ == nullptr) return rdma::failed_call("ibv_alloc_parent_domain", errno);
    completions_ = verbs_.ibv_create_cq(device, wanted_entries(blocks), nullptr, nullptr, 0);
    if (completions_ == nullptr) return rdma::failed_call("ibv_create_cq", errno);
    ibv_qp_init_attr_ex wanted = wanted_queue(parent_, completions_, blocks);
    queue_ = verbs_.create_qp_ex(device, &wanted);
    if (queue_ == nullptr) return rdma::failed_call("ibv_create_qp_ex", errno);
    psn_ = rdma::any_psn();
    return {};
}

status queue_pair::export_rings() {
    mlx5dv_qp queue{};
    mlx5dv_cq completions{};
    mlx5dv_obj both{};
    both.qp.in = queue_;
    both.qp.out = &queue;
    both.cq.in = completions_;
    both.cq.out = &completions;
    if (const int e = verbs_.mlx5dv_init_obj(&both, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ); e != 0)
        return rdma::failed_call("mlx5dv_init_obj", e);
    status bad = check_export(queue, completions);
    if (bad.ok()) host_ = posting_ = rings_of(queue, completions, queue_->qp_num);
    return bad;
}

status queue_pair::map_for_gpu(gpu_pages &pages) {
    if (queue_ == nullptr) return failure("the queue pair is not open");
    unmap();
    pages_ = &pages;
    status bad;
    const auto hold = [&](auto *host, std::size_t bytes, bool registers) {
        void *gpu = nullptr;
        bad = pages_->hold(host, bytes, registers, gpu);
        if (bad.ok()) held_.push_back({host, bytes});
        return static_cast<decltype(host)>(gpu);
    };
    posting_.sq = hold(host_.sq, sizeof(detail::wqe) << host_.log_sq, false);
    if (bad.ok()) posting_.cq = hold(host_.cq, sizeof(detail::cqe) << host_.log_cq, false);
    if (bad.ok()) posting_.sq_record = hold(host_.sq_record, sizeof *host_.sq_record, false);
    if (bad.ok()) posting_.cq_record = hold(host_.cq_record, sizeof *host_.cq_record, false);
    if (!bad.ok()) {
        unmap();
        return bad.in_context("the GPU does not reach the queue: ");
    }
    // This one takes rights that not every program has; the rest works without.
    posting_.doorbell = hold(host_.doorbell, sizeof *host_.doorbell, true);
    if (bad.ok()) return {};
    posting_.doorbell = nullptr;
    bell_ = bell::by_proxy;
    why_proxy_ = bad.in_context("the GPU does not reach the NIC's doorbell: ");
    return {};
}

void queue_pair::unmap() {
    for (; !held_.empty(); held_.pop_back()) pages_->release(held_.back().host, held_.back().bytes);
    posting_ = host_;
    bell_ = bell::by_poster;
    why_proxy_ = {};
}

void queue_pair::close() {
    // CUDA lets go of the pages before the provider gives them back; the NIC's own hold on them does not depend on it.
    unmap();
    if (queue_ != nullptr) verbs_.ibv_destroy_qp(queue_);
    if (completions_ != nullptr) verbs_.ibv_destroy_cq(completions_);
    if (parent_ != nullptr) verbs_.ibv_dealloc_pd(parent_);
    if (thread_domain_ != nullptr) verbs_.dealloc_td(thread_domain_);
    queue_ = nullptr;
    completions_ = nullptr;
    parent_ = nullptr;
    thread_domain_ = nullptr;
    host_ = posting_ = {};
}

// ---- connect ------------------------------------------------------------------------------------------------------

status queue_pair::connect(const rdma::qp_address &peers) {
    if (queue_ == nullptr) return failure("the queue pair is not open");
    if (!rdma::well_formed(peers)) return failure("a malformed address of the peer's queue pair");
    return rdma::connect(verbs_.ibv_modify_qp, queue_, *port_, psn_, peers);
}

void queue_pair::fail_all() {
    if (queue_ == nullptr) return;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    verbs_.ibv_modify_qp(queue_, &a, IBV_QP_STATE);
}

}  // namespace mpix::transport::mlx5
