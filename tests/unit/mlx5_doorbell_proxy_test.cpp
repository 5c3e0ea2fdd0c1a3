// SPDX-License-Identifier: BSD-3-Clause
//
// A thread of the host rings for posters that do not reach the doorbell; the software HCA is the NIC.
#include "transport/ib/mlx5/doorbell_proxy.h"

#include "tests/catch.hpp"
#include "tests/unit/queue_bench.hpp"

using namespace mpix::detail;
using namespace mpix::transport::mlx5;

TEST_CASE("the doorbell proxy rings what has been handed over, once, and the NIC takes it") {
    queue_test::bench b;
    const mpix_queue_rings host = b.q.rings;
    b.q.rings.doorbell = nullptr;  // as the GPU sees it
    queue_doorbell_proxy one(host);
    CHECK(!one.step());
    const std::uint64_t before = b.queue_words->doorbell;
    post_range(&b.posting, 0, 2, 5);
    CHECK(b.queue_words->doorbell == before);
    CHECK(one.step());
    CHECK(b.queue_words->doorbell != before);
    CHECK(!one.step());
    b.hca.run();
    CHECK(b.hca.counts.kicks == 1);
    CHECK(b.hca.counts.strange_kicks == 0);
    CHECK(b.arrived(1));
    CHECK(b.flags[1] == 5);
}

TEST_CASE("the doorbell proxy's thread serves queues that come and go") {
    doorbell_proxy r;
    for (int round = 0; round < 5; ++round) {
        queue_test::bench b;
        r.add(b.q.rings);
        mpix_queue_rings &posting = b.q.rings;
        posting.doorbell = nullptr;
        post_range(&b.posting, 0, 4, 7);
        for (const std::uint64_t end = now_ns() + 20'000'000'000u; b.hca.counts.kicks == 0;) {
            REQUIRE(now_ns() < end);
            b.hca.run();
        }
        r.remove(queue_test::queue_memory::qpn);
        const std::uint64_t rung = b.queue_words->doorbell;
        b.hca.run();
        poll_queue(&b.q);
        post_range(&b.posting, 0, 4, 8);
        CHECK(b.queue_words->doorbell == rung);
        CHECK(b.hca.counts.strange_kicks == 0);
    }
}
