// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/export.h"

#include <bit>
#include <string>

namespace mpix::transport::mlx5 {

using namespace mpix::detail;

// ---- the queue pair -----------------------------------------------------------------------------------------------

ibv_qp_init_attr_ex wanted_queue(ibv_pd *domain, ibv_cq *completions, std::uint32_t blocks) {
    ibv_qp_init_attr_ex w{};
    w.send_cq = w.recv_cq = completions;
    w.cap.max_send_wr = blocks;
    w.cap.max_recv_wr = 0;
    w.cap.max_send_sge = 1;
    // The provider adds the largest segments of all operations up before it counts blocks, so that with more inline
    // bytes it would take two blocks for an entry. What one of ours holds, 28, is a matter of its own length.
    w.cap.max_inline_data = 12;
    w.qp_type = IBV_QPT_RC;
    w.sq_sig_all = 0;
    w.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    w.pd = domain;
    w.send_ops_flags =
        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    return w;
}

int wanted_entries(std::uint32_t blocks) { return static_cast<int>(2 * std::bit_ceil(blocks) - 1); }

status check_export(const mlx5dv_qp &queue, const mlx5dv_cq &completions) {
    const auto says = [](const char *what, std::uint64_t number) {
        return "mlx5dv_init_obj: " + std::string(what) + " " + std::to_string(number);
    };
    const std::uint32_t blocks = queue.sq.wqe_cnt, entries = completions.cqe_cnt;
    if (queue.sq.buf == nullptr || queue.dbrec == nullptr || completions.buf == nullptr || completions.dbrec == nullptr)
        return failure("mlx5dv_init_obj: it does not say where the queues lie");
    if (queue.bf.reg == nullptr) return failure("mlx5dv_init_obj: it does not say where the doorbell is");
    if (queue.sq.stride != sizeof(wqe))
        return failure(says("blocks of the send queue are not 64 bytes long, but", queue.sq.stride));
    if (completions.cqe_size != sizeof(cqe))
        return failure(says("completions are not 64 bytes long, but", completions.cqe_size) +
                       " (MLX5_CQE_SIZE is set?)");
    if (!std::has_single_bit(blocks)) return failure(says("the blocks of the send queue are no power of two:", blocks));
    if (blocks < 2 || blocks > 1u << wqe_most_log)
        return failure(says("a send queue of 2 to 32768 blocks is needed, this has", blocks));
    if (!std::has_single_bit(entries)) return failure(says("the completions are no power of two:", entries));
    if (entries > 1u << 23) return failure(says("more completions than their count of 24 bits tells apart:", entries));
    if (entries < blocks) return failure(says("fewer completions than blocks of the send queue:", entries));
    const auto aligned = [](const void *at, std::uint64_t unit) {
        return reinterpret_cast<std::uint64_t>(at) % unit == 0;
    };
    if (!aligned(queue.sq.buf, sizeof(wqe)) || !aligned(completions.buf, sizeof(cqe)) || !aligned(queue.dbrec, 8) ||
        !aligned(completions.dbrec, 8) || !aligned(queue.bf.reg, 8))
        return failure("mlx5dv_init_obj: a queue, a record or the doorbell is not aligned");
    return {};
}

mpix_queue_rings rings_of(const mlx5dv_qp &queue, const mlx5dv_cq &completions, std::uint32_t qpn) {
    mpix_queue_rings r{};
    r.sq = static_cast<wqe *>(queue.sq.buf);
    r.cq = static_cast<cqe *>(completions.buf);
    r.sq_record = reinterpret_cast<std::uint32_t *>(queue.dbrec) + MLX5_SND_DBR;
    r.cq_record = reinterpret_cast<std::uint32_t *>(completions.dbrec);  // the second word is for events
    r.doorbell = static_cast<std::uint64_t *>(queue.bf.reg);
    r.log_sq = static_cast<std::uint32_t>(std::countr_zero(queue.sq.wqe_cnt));
    r.log_cq = static_cast<std::uint32_t>(std::countr_zero(completions.cqe_cnt));
    r.qpn = qpn;
    return r;
}

// ---- pages --------------------------------------------------------------------------------------------------------

page_range pages_around(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) {
    const std::uint64_t begin = address / page * page, end = address + (bytes == 0 ? 1 : bytes);
    return {begin, (end - begin + page - 1) / page * page};
}

dmabuf_range pages_to_export(std::uint64_t address, std::uint64_t bytes, std::uint64_t allocation,
                             std::uint64_t allocation_bytes, std::uint64_t page, status &bad) {
    bad = {};
    if (bytes == 0 || address < allocation || bytes > allocation_bytes ||
        address - allocation > allocation_bytes - bytes) {
        bad = failure("the memory is not within one allocation of the GPU's");
        return {};
    }
    const page_range pages = pages_around(address, bytes, page);
    if (pages.begin < allocation || pages.begin - allocation > allocation_bytes - bytes ||
        pages.bytes > allocation_bytes - (pages.begin - allocation)) {
        bad = failure("the allocation does not begin and end with a page, as a dma-buf has to");
        return {};
    }
    return {pages, address - pages.begin};
}

// ---- memory -------------------------------------------------------------------------------------------------------

unsigned access_of(contents what) {
    switch (what) {
        case contents::payload_source:
            return IBV_ACCESS_RELAXED_ORDERING;
        case contents::payload_landing:
            return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING;
        case contents::flags:
            break;
    }
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
}

status flags_not_believable(int ordering, bool same_gpu, flag_reader reader) {
    if (!same_gpu)
        return failure(
            "the arrival flags do not lie where the payload goes to, and what a NIC writes to two places need not "
            "arrive "
            "in order");
    if (reader == flag_reader::host)
        return failure("what a NIC writes to a GPU is in order for GPUs, and the host polls the flags");
    switch (ordering) {
        case ordering_all_devices:
            return {};
        case ordering_owner:
            if (reader == flag_reader::owner_gpu) return {};
            return failure(
                "what a NIC writes to this GPU is in order for the GPU itself only, and another one polls the flags");
        case ordering_none:
            return failure(
                "a flush is needed before a flag in this GPU's memory is believed "
                "(cudaDevAttrGPUDirectRDMAWritesOrdering is none)");
        default:
            return failure("cudaDevAttrGPUDirectRDMAWritesOrdering has a value that mpix does not know: " +
                           std::to_string(ordering));
    }
}

}  // namespace mpix::transport::mlx5
