// SPDX-License-Identifier: BSD-3-Clause
#include "transport/wqe/wqe.h"

#include <algorithm>
#include <cstring>

namespace mpix::transport {

using namespace mpix::detail;

namespace {

wqe make_header(std::uint32_t qpn, std::uint32_t units, remote_place to, bool signalled) {
    wqe w;
    std::memset(&w, 0, sizeof w);
    w.control.index_opcode = index_opcode(0, wqe_rdma_write);
    w.control.qpn_ds = qpn_ds(qpn, units);
    w.control.fm_ce_se = signalled ? wqe_signalled : 0;
    w.remote.address = to_be64(to.address);
    w.remote.key = to_be32(to.key);
    return w;
}

std::uint32_t payload_blocks(std::uint64_t bytes) {
    return static_cast<std::uint32_t>((bytes + wqe_most_bytes - 1) / wqe_most_bytes);
}

}  // namespace

wqe make_write(std::uint32_t qpn, remote_place to, local_place from, std::uint64_t bytes, bool signalled) {
    wqe w = make_header(qpn, bytes == 0 ? 2 : 3, to, signalled);
    if (bytes == 0) return w;
    w.data = {to_be32(static_cast<std::uint32_t>(bytes)), to_be32(from.key), to_be64(from.address)};
    return w;
}

wqe make_flag_write(std::uint32_t qpn, remote_place to, std::uint64_t value, bool signalled) {
    wqe w = make_header(qpn, 3, to, signalled);
    w.inlined.bytes = to_be32(8 | wqe_inline_bit);
    std::memcpy(w.inlined.words, &value, sizeof value);
    return w;
}

std::vector<wqe> make_blocks(const partition_layout &l) {
    std::vector<wqe> blocks;
    blocks.reserve(l.partitions * (payload_blocks(l.bytes) + std::size_t{1}));
    for (std::uint64_t p = 0; p < l.partitions; ++p) {
        for (std::uint64_t at = 0; at < l.bytes; at += wqe_most_bytes)
            blocks.push_back(make_write(l.qpn, {l.to.address + p * l.to_stride + at, l.to.key},
                                        {l.from.address + p * l.from_stride + at, l.from.key},
                                        std::min(wqe_most_bytes, l.bytes - at), false));
        blocks.push_back(make_flag_write(l.qpn, {l.flags.address + 8 * p, l.flags.key}, 0, true));
    }
    return blocks;
}

mpix_posting describe_posting(const partition_layout &l, mpix_work_queue *queue, const wqe *blocks) {
    mpix_posting p{};
    p.queue = queue;
    p.blocks = blocks;
    p.partition_bytes = l.bytes;
    p.partitions = l.partitions;
    p.payload_blocks = payload_blocks(l.bytes);
    p.contiguous = l.from_stride == l.bytes && l.to_stride == l.bytes;
    return p;
}

status check_layout(const partition_layout &l, std::uint32_t log_sq) {
    if (log_sq > wqe_most_log) return failure("a send queue has at most 32768 blocks");
    if (l.bytes > (wqe_most_bytes << log_sq) - wqe_most_bytes)
        return failure("a partition does not fit the send queue, whose entries carry 1 GiB each");
    if (l.flags.address % 8 != 0) return failure("the arrival flags are not aligned");
    return {};
}

mpix_work_queue make_queue(const mpix_queue_rings &rings, std::uint64_t *filled, mpix_queue_report *report,
                           std::uint64_t first_block, std::uint64_t first_entry) {
    const std::size_t blocks = std::size_t{1} << rings.log_sq, entries = std::size_t{1} << rings.log_cq;
    std::memset(static_cast<void *>(rings.sq), 0, blocks * sizeof *rings.sq);
    std::memset(static_cast<void *>(rings.cq), 0, entries * sizeof *rings.cq);
    for (std::size_t i = 0; i < entries; ++i) rings.cq[i].last_word = std::uint32_t{cqe_never_written} << 24;
    *rings.sq_record = to_be32(static_cast<std::uint32_t>(first_block & 0xffff)).raw;
    *rings.cq_record = to_be32(static_cast<std::uint32_t>(first_entry & 0xffffff)).raw;
    std::fill_n(filled, blocks, first_block);
    if (report != nullptr) *report = {first_block, 0};
    mpix_work_queue q{};
    q.rings = rings;
    q.filled = filled;
    q.report = report;
    q.head = q.ready = q.completed = first_block;
    q.consumed = first_entry;
    return q;
}

}  // namespace mpix::transport
