// SPDX-License-Identifier: BSD-3-Clause
//
// Posting, publishing in order, and polling; the software HCA steps when told.
#include <algorithm>
#include <cstring>
#include <functional>

// What another thread does between two steps of ours.
static std::function<void()> meanwhile;
#define MPIX_ON_POST_STEP() (meanwhile ? meanwhile() : void())

#include "tests/catch.hpp"
#include "tests/unit/queue_bench.hpp"

using namespace queue_test;

namespace {

constexpr std::uint64_t starts[] = {0, 1, 0xfff9, 0xffff, 0x10000, 0xfffffffd, 0xffffffffffd};

}  // namespace

TEST_CASE("partitions arrive through many laps of a small queue, wherever the counters begin") {
    const std::uint64_t start = GENERATE(from_range(std::begin(starts), std::end(starts)));
    const std::uint32_t log_sq = GENERATE(1u, 2u, 3u);
    bench b({.log_sq = log_sq, .log_cq = 3, .first_block = start, .first_entry = 0xffffff - start % 7});
    for (std::uint64_t epoch = 1; epoch <= 50; ++epoch) {
        for (auto &byte : b.out) byte = static_cast<unsigned char>(byte * 5 + 7 * epoch + 1);
        for (std::uint32_t p = 0; p < 4; ++p) {
            const posted done = post_range(&b.posting, p, 1, epoch);
            REQUIRE(done.what == room::reserved);
            CHECK(done.complete == start + 2 * ((epoch - 1) * 4 + p + 1));
            CHECK(b.flags[p] == epoch - 1);
            b.hca.run();
            CHECK(b.flags[p] == epoch);
            REQUIRE(b.arrived(p));
        }
    }
    poll_queue(&b.q);
    CHECK(queue_completed(&b.q) == start + 400);
    CHECK(b.queue_words->report.completed == start + 400);
    CHECK(b.q.error == 0);
    CHECK(b.hca.counts.strange_kicks == 0);
    CHECK(b.hca.counts.kicks == 200);
    CHECK(b.flags[4] == 0);
}

TEST_CASE("a full queue takes nothing, and something again after the completions were taken in") {
    const std::uint64_t start = GENERATE(from_range(std::begin(starts), std::end(starts)));
    bench b({.first_block = start});
    std::uint64_t first = 0;
    for (int i = 0; i < 4; ++i) CHECK(post_range(&b.posting, 0, 1, 1).what == room::reserved);
    CHECK(post_range(&b.posting, 0, 1, 1).what == room::full);
    CHECK(reserve_now(&b.q, 1, &first) == room::full);
    CHECK(b.q.head == start + 8);
    b.hca.run();
    CHECK(reserve_now(&b.q, 1, &first) == room::full);
    CHECK(post_range(&b.posting, 0, 1, 2).what == room::reserved);  // polls by itself
    CHECK(b.q.completed == start + 8);
}

TEST_CASE("neighbouring partitions share their payload WRITE and, by three, their flag WRITEs") {
    bench b({.log_sq = 4, .log_cq = 4, .partitions = 8});
    const posted done = post_range(&b.posting, 0, 8, 3);
    CHECK(done.count == 8);
    CHECK(done.complete == 1 + 3);
    b.hca.run();
    CHECK(b.hca.counts.executed == 4);
    for (std::uint64_t p = 0; p < 8; ++p) CHECK(b.arrived(p));
    CHECK(std::all_of(b.flags.begin(), b.flags.end() - 1, [](auto f) { return f == 3; }));
    CHECK(b.flags[8] == 0);
    CHECK(poll_queue(&b.q) == 4);
    CHECK(b.q.consumed == 1);  // one of them signalled
}

TEST_CASE("an entry of several flags, byte by byte") {
    struct vector_of {
        std::uint32_t count;
        bool signalled;
        std::vector<std::uint32_t> words;  // as memory has them, big-endian
    };
    const vector_of golden[] = {
        {1,
         true,
         {0x00000708, 0x00012f03, 0x00000008, 0, 0x7f001122, 0x3344a000, 0x00181dd5, 0,  //
          0x80000008, 0x88776655, 0x44332211, 0, 0, 0, 0, 0}},
        {2,
         false,
         {0x00000708, 0x00012f04, 0x00000000, 0, 0x7f001122, 0x3344a000, 0x00181dd5, 0,  //
          0x80000010, 0x88776655, 0x44332211, 0x88776655, 0x44332211, 0, 0, 0}},
        {3,
         true,
         {0x00000708, 0x00012f04, 0x00000008, 0, 0x7f001122, 0x3344a000, 0x00181dd5, 0,  //
          0x80000018, 0x88776655, 0x44332211, 0x88776655, 0x44332211, 0x88776655, 0x44332211, 0}}};
    for (const vector_of &v : golden) {
        CAPTURE(v.count);
        bench b;
        // Whatever the prebuilt one says of its end.
        const wqe prebuilt = make_flag_write(0x12f, {0x7f0011223344a000, 0x00181dd5}, 99, !v.signalled);
        std::memset(static_cast<void *>(b.q.rings.sq), 0xff, 8 * sizeof(wqe));
        put_flags(&b.q, 7, &prebuilt, 0x1122334455667788, v.count, v.signalled);
        std::vector<std::uint32_t> found(16);
        std::memcpy(found.data(), &b.q.rings.sq[7], sizeof(wqe));
        for (std::uint32_t &word : found) word = from_be(be32{word});
        CHECK(found == v.words);
    }
}

TEST_CASE("partitions with gaps between them have WRITEs of their own, and shared flags") {
    bench b({.log_sq = 4, .log_cq = 4, .partitions = 4, .gap = 3});
    CHECK(post_range(&b.posting, 1, 3, 9).complete == 3 + 1);
    b.hca.run();
    CHECK(!b.arrived(0));
    for (std::uint64_t p = 1; p < 4; ++p) CHECK((b.arrived(p) && b.flags[p] == 9));
    CHECK(b.flags[0] == 0);
}

TEST_CASE("empty partitions are flags alone") {
    bench b({.bytes = 0});
    CHECK(post_range(&b.posting, 0, 4, 1).complete == 2);
    CHECK(post_range(&b.posting, 2, 1, 2).complete == 3);
    b.hca.run();
    CHECK(b.flags == std::vector<std::uint64_t>{1, 1, 2, 1, 0});
}

TEST_CASE("of a range that is larger than the queue so much is posted as there is room for") {
    const std::uint64_t start = GENERATE(from_range(std::begin(starts), std::end(starts)));
    bench b({.log_sq = 3, .log_cq = 3, .first_block = start, .partitions = 40});
    posted done = post_range(&b.posting, 0, 40, 1);
    CHECK(done.what == room::reserved);
    CHECK(done.count == 20);
    CHECK(done.complete == start + 1 + 7);  // all of the queue
    CHECK(post_range(&b.posting, 20, 20, 1).what == room::full);
    CHECK(b.q.head == start + 8);
    std::uint32_t count = done.count;
    while (count < 40) {
        b.hca.run();
        done = post_range(&b.posting, count, 40 - count, 1);
        REQUIRE(done.count != 0);
        count += done.count;
    }
    b.hca.run();
    for (std::uint32_t p = 0; p < 40; ++p) CHECK((b.arrived(p) && b.flags[p] == 1));
}

TEST_CASE("a range goes into what is left of a queue, and is posted whole when the completions were taken in") {
    bench b({.log_sq = 3, .log_cq = 3, .partitions = 12});
    b.post(std::vector<wqe>(5, b.write(true)));
    const posted some = post_range(&b.posting, 0, 12, 1);  // 5 entries, and there are 3
    CHECK(some.what == room::reserved);
    CHECK(some.count == 6);
    CHECK(some.complete == 8);
    b.hca.run();
    const posted rest = post_range(&b.posting, 6, 6, 1);
    CHECK(rest.count == 6);
    CHECK(rest.complete == 8 + 1 + 2);
    b.hca.run();
    for (std::uint32_t p = 0; p < 12; ++p) CHECK((b.arrived(p) && b.flags[p] == 1));
}

TEST_CASE("a range of more than 1 GiB is split") {
    bench b({.log_sq = 4, .log_cq = 4, .partitions = 1});
    constexpr std::uint64_t gib = 1u << 30, bytes = 700u << 20;
    b.layout.bytes = b.layout.from_stride = b.layout.to_stride = bytes;
    b.layout.partitions = 5;
    const auto blocks = make_blocks(b.layout);
    const mpix_posting posting = describe_posting(b.layout, &b.q, blocks.data());
    CHECK(post_range(&posting, 1, 4, 1).complete == 3 + 2);
    const wqe *const sq = b.q.rings.sq;
    for (std::uint64_t i = 0; i < 3; ++i) {
        CHECK(from_be(sq[i].data.bytes) == (i < 2 ? gib : 4 * bytes - 2 * gib));
        CHECK(from_be(sq[i].data.address) == b.layout.from.address + bytes + i * gib);
        CHECK(from_be(sq[i].remote.address) == b.layout.to.address + bytes + i * gib);
    }
    CHECK(from_be(sq[3].inlined.bytes) == (24 | wqe_inline_bit));
    CHECK((from_be(sq[3].control.qpn_ds) & 0xff) == 4);
    CHECK(sq[3].control.fm_ce_se == 0);
    CHECK(from_be(sq[4].inlined.bytes) == (8 | wqe_inline_bit));
    CHECK((from_be(sq[4].control.qpn_ds) & 0xff) == 3);
    CHECK(sq[4].control.fm_ce_se == wqe_signalled);
    CHECK(from_be(sq[4].control.index_opcode) == (4u << 8 | wqe_rdma_write));
}

TEST_CASE("what is filled first waits for its predecessor, whose publishing hands both over") {
    const std::uint64_t start = GENERATE(from_range(std::begin(starts), std::end(starts)));
    bench b({.first_block = start});
    std::uint64_t first[3];
    for (auto &f : first) REQUIRE(reserve_now(&b.q, 2, &f) == room::reserved);
    for (const int i : {2, 1}) {
        fill_range(&b.posting, static_cast<std::uint32_t>(i), 1, 1, first[i]);
        publish_blocks(&b.q, first[i], 2);
        b.hca.run();
        CHECK(b.hca.counts.executed == 0);
        CHECK(b.q.publishing == 0);
    }
    CHECK(b.queue_words->doorbell == 0);
    fill_range(&b.posting, 0, 1, 1, first[0]);
    publish_blocks(&b.q, first[0], 2);
    b.hca.run();
    CHECK(b.hca.counts.executed == 6);
    CHECK(b.hca.counts.kicks == 1);
    for (std::uint64_t p = 0; p < 3; ++p) CHECK(b.arrived(p));
}

TEST_CASE("who counts while another is in charge leaves the doorbell to him") {
    bench b;
    std::uint64_t first = 0;
    REQUIRE(reserve_now(&b.q, 2, &first) == room::reserved);
    fill_range(&b.posting, 0, 1, 1, first);
    b.q.publishing = 1;  // somebody between his last pass and leaving
    publish_blocks(&b.q, first, 2);
    CHECK(b.q.publishing == 2);  // so that he cannot leave
    CHECK(b.queue_words->doorbell == 0);
}

TEST_CASE("who is in charge does not leave behind what was filled after his pass") {
    bench b;
    std::uint64_t first[2];
    for (auto &f : first) REQUIRE(reserve_now(&b.q, 2, &f) == room::reserved);
    for (std::uint32_t p = 0; p < 2; ++p) fill_range(&b.posting, p, 1, 1, first[p]);
    meanwhile = [&] {
        if (*b.q.rings.sq_record != to_be32(2).raw) return;
        meanwhile = nullptr;
        publish_blocks(&b.q, first[1], 2);
        CHECK(b.q.ready == 2);  // not his to hand over
    };
    publish_blocks(&b.q, first[0], 2);
    CHECK(!meanwhile);
    b.hca.run();
    CHECK(b.hca.counts.executed == 4);
    CHECK(b.q.publishing == 0);
}

TEST_CASE("nobody polls while another does, of the same side or of the other one") {
    bench b;
    post_range(&b.posting, 0, 1, 1);
    b.hca.run();
    for (std::uint64_t *const taken : {&b.q.polling[MPIX_POLLER_HOST], &b.q.busy[MPIX_POLLER_GPU]}) {
        *taken = 1;
        CHECK(poll_queue(&b.q, MPIX_POLLER_HOST) == 0);
        CHECK(b.q.busy[MPIX_POLLER_HOST] == 0);
        CHECK(b.q.consumed == 0);
        *taken = 0;
    }
    CHECK(b.q.polling[MPIX_POLLER_HOST] == 0);
    CHECK(poll_queue(&b.q, MPIX_POLLER_GPU) == 2);
    CHECK(poll_queue(&b.q, MPIX_POLLER_HOST) == 0);
    post_range(&b.posting, 0, 1, 2);
    b.hca.run();
    CHECK(poll_queue(&b.q, MPIX_POLLER_HOST) == 2);
}

TEST_CASE("a posting that was handed over before it was filled is noticed") {
    bench b;
    std::uint64_t first = 0;
    for (int i = 0; i < 4; ++i) post_range(&b.posting, 0, 1, 1);
    b.hca.run();
    REQUIRE(reserve(&b.q, 2, &first) == room::reserved);
    publish_blocks(&b.q, first, 2);
    b.hca.run();
    CHECK(b.hca.counts.torn > 0);
    poll_queue(&b.q);
    CHECK(error_syndrome(b.q.error) == syndrome_local_operation);
    CHECK(error_index(b.q.error) == 8);
}

TEST_CASE("the first error is kept, and nothing is posted any more") {
    bench b({.first_block = 0xfffe});
    b.hca.faults.fail_at = 0xfffe + 3;
    b.hca.faults.fail_with = syndrome_retries_exceeded;
    for (std::uint32_t p = 0; p < 3; ++p) post_range(&b.posting, p, 1, 1);
    b.hca.run();
    CHECK(poll_queue(&b.q) == 6);
    CHECK(error_syndrome(b.q.error) == syndrome_retries_exceeded);
    CHECK(error_vendor(b.q.error) != 0xf9);
    CHECK(error_index(b.q.error) == 0xfffe + 3);
    CHECK(b.queue_words->report.error == b.q.error);
    CHECK(b.queue_words->report.completed == b.q.completed);
    CHECK(b.flags == std::vector<std::uint64_t>{1, 0, 0, 0, 0});
    CHECK(post_range(&b.posting, 0, 1, 2).what == room::broken);
}

TEST_CASE("completions that speak of nothing under way are errors") {
    bench b;
    post_range(&b.posting, 0, 1, 1);
    cqe &entry = b.q.rings.cq[0];
    entry.opcode_qpn = to_be32(0x08000000 | queue_memory::qpn);
    SECTION("of a later block") { entry.last_word = cqe_last_word(2, cqe_requester, false); }
    SECTION("of an earlier block") { entry.last_word = cqe_last_word(0xffff, cqe_requester, false); }
    SECTION("of another kind") { entry.last_word = cqe_last_word(1, 2, false); }
    SECTION("of another queue pair") {
        entry.opcode_qpn = to_be32(0x08000000 | (queue_memory::qpn + 1));
        entry.last_word = cqe_last_word(1, cqe_requester, false);
    }
    SECTION("a failure without a reason") { entry.last_word = cqe_last_word(1, cqe_requester_error, false); }
    CHECK(poll_queue(&b.q) == 0);
    CHECK(b.q.consumed == 1);
    CHECK(error_syndrome(b.q.error) == syndrome_strange_completion);
    CHECK(post_range(&b.posting, 0, 1, 2).what == room::broken);
}
