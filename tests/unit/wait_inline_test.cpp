// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of a wait for a partition that comes inline (wait_inline.cuh).
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/packet_pair.hpp"

namespace {

// What an epoch handle knows of the receive of a pair with as many partitions on both sides.
mpix::detail::receive_state known_receive(pair_of_requests &r, std::uint64_t epoch) {
    mpix::detail::receive_state state{};
    state.epoch = epoch;
    state.flags = r.receive->flags;
    state.partitions = state.senders = static_cast<unsigned>(r.receive->partitions);
    state.told = r.told.data();
    state.buffer = r.receive->buffer;
    state.inline_buffer = r.receive->inline_buffer;
    state.partition_bytes = r.receive->partition_bytes;
    return state;
}

template <bool Known, class Group>
bool waits_fast(const Group &group, const pair_of_requests &r, int j, bool sole,
                const mpix::detail::receive_state &known = {}) {
    mpix_prequest *const handle = mpix::detail::inline_capable_receive(r.receive, sole, 1);
    mpix::detail::claimed_question question{};
    return mpix::detail::wait_inline_fast<Known>(group, handle, j, known, mpix::default_timeout, question) ==
           MPI_SUCCESS;
}

}  // namespace

TEST_CASE("a small partition of whole words is taken at once") {
    std::mt19937_64 random(Catch::rngSeed());
    for (int round = 0; round < 40; ++round) {
        // Of more than a warp's number some have nothing to do.
        const int threads = round % 16 == 0 ? 33 + static_cast<int>(random() % 4) : 1 + static_cast<int>(random() % 5),
                  partitions = 1 + static_cast<int>(random() % 3);
        const std::uint64_t bytes =
            round % 16 == 0 ? 8 * (1 + random() % 8) : 8 * (1 + random() % (4 * static_cast<unsigned>(threads)));
        const bool sole = random() % 2 == 0;
        pair_of_requests r(partitions, partitions, bytes, 8 * (round % 2), 8 * (round / 2 % 2));
        CAPTURE(threads, partitions, bytes, sole);
        for (std::uint64_t epoch = 2; epoch < 5; ++epoch) {
            r.begin(epoch, random);
            std::atomic<int> taken{0};
            std::thread receiver([&] {
                mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                    for (int j = 0; j < partitions; ++j) {
                        // On a machine that others keep busy the sender may need longer than it looks.
                        for (backoff wait; !waits_fast<false>(group, r, j, sole);) wait.pause();
                        if (group.thread_rank() == 0) ++taken;
                    }
                });
            });
            mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                for (int p = partitions; p-- > 0;) mpix::detail::store_small<false>(group, r.send, p, {});
            });
            receiver.join();
            CHECK(taken == partitions);
            CHECK(r.right());
            for (int j = 0; j < partitions; ++j) {
                CHECK(r.receive->flags[j] == epoch);
                CHECK(r.receive->taken[j] == 2 * epoch - 1);
                CHECK(r.told[static_cast<std::size_t>(j)] == epoch);
            }
        }
    }
}

TEST_CASE("what is not to be taken at once is left as it was") {
    std::mt19937_64 random(Catch::rngSeed());
    std::uint64_t bytes = 16;
    int receivers = 2, asked = 1;
    unsigned skew = 0;
    std::uint64_t epoch = 2, claim = 0, left = 0;
    std::function<void(mpix_prequest *)> before = [](mpix_prequest *) {};
    bool stored_inline = true, there = false;
    SECTION("words in pieces") { skew = 4; }
    SECTION("bytes that are no whole words") { bytes = 12; }
    SECTION("the sender has other partitions") { receivers = 1, asked = 0; }
    SECTION("there is no such partition") { asked = 2; }
    SECTION("more lines than are looked at") { bytes = 40; }
    SECTION("the first epoch") { epoch = 1; }
    SECTION("a send") {
        before = [](mpix_prequest *r) { r->head ^= std::uint64_t{MPIX_KIND_SEND ^ MPIX_KIND_RECV} << 32; };
    }
    SECTION("no inline buffer") {
        before = [](mpix_prequest *r) { r->inline_buffer = nullptr; };
    }
    SECTION("another group has set about it") { claim = left = 3; }
    SECTION("all has come") {
        before = [](mpix_prequest *r) { r->flags[2] = 2; };
        left = 2;
    }
    SECTION("it came another way") {
        stored_inline = false;
        before = [](mpix_prequest *r) { r->flags[1] = 2; };
        left = 3, there = true;  // nobody needs the claim any more
    }
    SECTION("it does not come") { stored_inline = false, left = 2; }
    pair_of_requests r(2, receivers, bytes, 0, skew);
    r.begin(epoch, random);
    if (stored_inline && r.send->partition_bytes % 8 == 0 && r.send->partition_bytes <= 32 && epoch > 1)
        CHECK(mpix::detail::store_small<false>(mpix::thread_group{}, r.send, 1, {}).epoch == epoch);
    r.receive->taken[1] = claim;
    std::uint64_t *const taken = r.receive->taken;
    before(r.receive);
    CHECK(waits_fast<false>(mpix::thread_group{}, r, asked, true) == there);
    CHECK(taken[1] == left);
    CHECK(r.untouched());
    CHECK(r.told[1] == 0);
}

// In a group of more than a warp, the last thread has the claim and no packet to look at.
TEST_CASE("all threads of a large group hear the same of what is not to be taken at once") {
    std::mt19937_64 random(Catch::rngSeed());
    enum { by_flag, claimed, missing };
    for (const bool known : {false, true})
        for (const int what : {by_flag, claimed, missing}) {
            const int threads = 33 + static_cast<int>(random() % 6);
            CAPTURE(known, what, threads);
            pair_of_requests r(2, 2, 16, 0, 0);
            r.begin(2, random);
            if (what == claimed)
                CHECK(mpix::detail::store_small<false>(mpix::thread_group{}, r.send, 1, {}).epoch == 2);
            if (what == by_flag) r.receive->flags[1] = 2;
            r.receive->taken[1] = what == claimed ? 3 : 0;
            const mpix::detail::receive_state state = known_receive(r, 2);
            std::atomic<int> there{0};
            mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                there += known ? waits_fast<true>(group, r, 1, true, state) : waits_fast<false>(group, r, 1, true);
            });
            CHECK(there == (what == by_flag ? threads : 0));
            CHECK(r.receive->taken[1] == (what == missing ? 2 : 3));
            CHECK(r.untouched());
            CHECK(r.told[1] == 0);
        }
}
