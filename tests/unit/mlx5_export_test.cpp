// SPDX-License-Identifier: BSD-3-Clause
//
// The decisions about a ConnectX's queue pair, on what mlx5dv_init_obj might say.
#include "transport/ib/mlx5/export.h"

#include <vector>

#include "tests/catch.hpp"

using namespace mpix::transport;
using namespace mpix::transport::mlx5;
using mpix::status;
using mpix::detail::cqe;
using mpix::detail::wqe;

namespace {

struct said {
    alignas(4096) wqe sq[8];
    alignas(4096) cqe cq[16];
    alignas(64) __be32 records[2], cq_records[2];
    alignas(4096) unsigned char page[4096];
    mlx5dv_qp queue{};
    mlx5dv_cq completions{};
    said() {
        queue.dbrec = records;
        queue.sq.buf = sq;
        queue.sq.wqe_cnt = 8;
        queue.sq.stride = 64;
        queue.bf.reg = page + 0x800;
        queue.bf.size = 256;
        completions.buf = cq;
        completions.dbrec = cq_records;
        completions.cqe_cnt = 16;
        completions.cqe_size = 64;
        completions.cqn = 5;
    }
    status check() const { return check_export(queue, completions); }
};

bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }
bool contains(const status &what, const char *part) { return contains(what.message(), part); }

}  // namespace

TEST_CASE("what mlx5dv_init_obj says, in our terms") {
    const said s;
    REQUIRE(s.check().ok());
    const mpix_queue_rings r = rings_of(s.queue, s.completions, 0x12f);
    CHECK(r.sq == s.sq);
    CHECK(r.cq == s.cq);
    CHECK(static_cast<const void *>(r.sq_record) == &s.records[1]);  // word 0 is the receive queue's
    CHECK(static_cast<const void *>(r.cq_record) == &s.cq_records[0]);
    CHECK(static_cast<const void *>(r.doorbell) == s.page + 0x800);
    CHECK(r.log_sq == 3);
    CHECK(r.log_cq == 4);
    CHECK(r.qpn == 0x12f);
}

TEST_CASE("queues that our code cannot post to are refused by a sentence") {
    said s;
    const char *part = "";
    SECTION("no send queue") { s.queue.sq.buf = nullptr, part = "where the queues lie"; }
    SECTION("no record") { s.queue.dbrec = nullptr, part = "where the queues lie"; }
    SECTION("no completion queue") { s.completions.buf = nullptr, part = "where the queues lie"; }
    SECTION("no record of completions") { s.completions.dbrec = nullptr, part = "where the queues lie"; }
    SECTION("no doorbell") { s.queue.bf.reg = nullptr, part = "where the doorbell is"; }
    SECTION("stride") { s.queue.sq.stride = 128, part = "but 128"; }
    SECTION("completions of 128 bytes") { s.completions.cqe_size = 128, part = "MLX5_CQE_SIZE"; }
    SECTION("blocks no power of two") { s.queue.sq.wqe_cnt = 6, part = "no power of two: 6"; }
    SECTION("no blocks") { s.queue.sq.wqe_cnt = 0, part = "no power of two: 0"; }
    SECTION("a single block") { s.queue.sq.wqe_cnt = 1, part = "this has 1"; }
    SECTION("more blocks than 16 bits tell apart") {
        s.queue.sq.wqe_cnt = s.completions.cqe_cnt = 1 << 16, part = "this has 65536";
    }
    SECTION("completions no power of two") { s.completions.cqe_cnt = 15, part = "no power of two: 15"; }
    SECTION("fewer completions than blocks") { s.completions.cqe_cnt = 4, part = "send queue: 4"; }
    SECTION("too many completions") { s.completions.cqe_cnt = 1 << 24, part = "24 bits"; }
    SECTION("send queue not aligned") { s.queue.sq.buf = reinterpret_cast<char *>(s.sq) + 32, part = "not aligned"; }
    SECTION("completions not aligned") { s.completions.buf = reinterpret_cast<char *>(s.cq) + 8, part = "not aligned"; }
    SECTION("record not aligned") { s.queue.dbrec = s.records + 1, part = "not aligned"; }
    SECTION("doorbell not aligned") { s.queue.bf.reg = s.page + 0x804, part = "not aligned"; }
    const status why = s.check();
    INFO(why.message());
    CHECK(contains(why, part));
    CHECK(contains(why, "mlx5dv_init_obj"));
}

TEST_CASE("the largest queue is taken") {
    said s;
    s.queue.sq.wqe_cnt = s.completions.cqe_cnt = 1 << 15;
    CHECK(s.check().ok());
}

TEST_CASE("what is asked of the provider") {
    auto *const domain = reinterpret_cast<ibv_pd *>(0x10);
    auto *const completions = reinterpret_cast<ibv_cq *>(0x20);
    const ibv_qp_init_attr_ex w = wanted_queue(domain, completions, 256);
    CHECK(w.qp_type == IBV_QPT_RC);
    CHECK(w.pd == domain);
    CHECK((w.send_cq == completions && w.recv_cq == completions));
    CHECK(w.cap.max_send_wr == 256);
    CHECK(w.sq_sig_all == 0);
    CHECK(w.comp_mask == (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS));
    CHECK(w.send_ops_flags ==
          (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
    // As the provider adds up: control, remote and atomic segment, then the longer of one data segment and inline data.
    CHECK(16 + 16 + 16 + (4 + w.cap.max_inline_data + 15) / 16 * 16 <= 64);
    // It makes a power of two of one more than what is asked for.
    CHECK(wanted_entries(256) == 511);
    CHECK(wanted_entries(200) == 511);
}

TEST_CASE("whole pages") {
    CHECK(pages_around(0x1000, 0x1000, 0x1000) == page_range{0x1000, 0x1000});
    CHECK(pages_around(0x1fff, 2, 0x1000) == page_range{0x1000, 0x2000});
    CHECK(pages_around(0x1800, 8, 0x1000) == page_range{0x1000, 0x1000});  // a doorbell
    CHECK(pages_around(0x1800, 0, 0x1000) == page_range{0x1000, 0x1000});
    CHECK(pages_around(0x12345, 0x10000, 0x10000) == page_range{0x10000, 0x20000});
}

TEST_CASE("what of an allocation is exported as a dma-buf") {
    status problem;
    const auto range = [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t base, std::uint64_t all) {
        return pages_to_export(at, bytes, base, all, 0x1000, problem);
    };
    dmabuf_range r = range(0x200010, 16, 0x200000, 0x200000);
    CHECK((problem.ok() && r.pages == page_range{0x200000, 0x1000} && r.offset == 0x10));
    r = range(0x201ff0, 0x20, 0x200000, 0x200000);
    CHECK((problem.ok() && r.pages == page_range{0x201000, 0x2000} && r.offset == 0xff0));
    r = range(0x200000, 0x200000, 0x200000, 0x200000);
    CHECK((problem.ok() && r.pages == page_range{0x200000, 0x200000} && r.offset == 0));
    range(0x200800, 8, 0x200800, 0x1000);  // a part of a page belongs to somebody else
    CHECK(contains(problem, "does not begin and end with a page"));
    range(0x201000, 8, 0x200000, 0x1800);
    CHECK(contains(problem, "does not begin and end with a page"));
    for (const auto &[at, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
             {0x1ff000, 8}, {0x3ffff8, 16}, {0x400000, 8}, {0x200000, 0}, {0x200010, ~std::uint64_t{0}}}) {
        range(at, bytes, 0x200000, 0x200000);
        CHECK(contains(problem, "not within one allocation"));
    }
}

TEST_CASE("flags are ordered strictly, payload is not") {
    CHECK((access_of(contents::flags) & IBV_ACCESS_RELAXED_ORDERING) == 0);
    CHECK(access_of(contents::flags) == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    CHECK((access_of(contents::payload_landing) & IBV_ACCESS_RELAXED_ORDERING) != 0);
    CHECK((access_of(contents::payload_landing) & IBV_ACCESS_REMOTE_WRITE) != 0);
    // What is only sent from, no peer may touch.
    CHECK((access_of(contents::payload_source) & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)) == 0);
}

TEST_CASE("whether a flag is believed") {
    using enum flag_reader;
    CHECK(flags_not_believable(ordering_owner, true, owner_gpu).ok());
    CHECK(flags_not_believable(ordering_all_devices, true, owner_gpu).ok());
    CHECK(flags_not_believable(ordering_all_devices, true, other_gpu).ok());
    CHECK(contains(flags_not_believable(ordering_owner, true, other_gpu), "itself only"));
    CHECK(contains(flags_not_believable(ordering_none, true, owner_gpu), "a flush is needed"));
    CHECK(contains(flags_not_believable(50, true, owner_gpu), "50"));
    CHECK(contains(flags_not_believable(ordering_all_devices, true, host), "the host polls"));
    CHECK(contains(flags_not_believable(ordering_all_devices, false, owner_gpu), "two places"));
}
