// SPDX-License-Identifier: BSD-3-Clause
//
// Rget beside an inline buffer, by host threads that play GPU threads: a lone thread offers what a block would send
// inline, and the group that has claimed it reads it, takes it out, or refuses it.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "tests/catch.hpp"
#include "tests/unit/rget_bench.hpp"

using namespace rget_bench;

namespace {

// A thread alone has too many packets, and enough bytes to offer; two of them send inline.
pair_shape beside_packets(int partitions, std::uint64_t bytes = 64) {
    pair_shape s = of(partitions, partitions, bytes, 40);
    s.inline_buffer = true;
    return s;
}

std::uint64_t claim_of(const bench &b, int p) { return load_relaxed(b.pair.receiving()->taken + p); }

void send_inline(bench &b, int p) {
    mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
        if (mpix::pready(group, p, b.pair.send()) != MPI_SUCCESS) b.failed = true;
    });
}

// The engine's part until a receiver that waits has gone. (Of what it takes out, the flags come when it does.)
void finish(bench &b, std::thread &receiver) {
    receiver.join();
    b.finish();
}

// In it a lone thread would have offered, so that from the next one on groups ask.
void second_epoch(bench &b) {
    b.first_epoch();
    b.start();
    std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    for (int p = 0; p < b.s.senders; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
    finish(b, receiver);
}

}  // namespace

TEST_CASE("what a lone thread sends is read beside an inline buffer, and what a group sends comes inline") {
    std::mt19937_64 random(Catch::rngSeed());
    std::uint64_t all_read = 0;
    for (int round = 0; round < 12; ++round) {
        const int partitions = 1 + static_cast<int>(random() % 3), groups = 1 + static_cast<int>(random() % 3),
                  threads = 2 + static_cast<int>(random() % 2);
        const std::uint64_t bytes = 40 + 8 * (random() % 4);
        pair_shape s = beside_packets(partitions, bytes);
        s.sole = groups == 1 && random() % 2 == 0;
        bench b(s, {round % 2 != 0, false});
        CAPTURE(partitions, groups, threads, bytes, s.sole, b.prepares);
        second_epoch(b);
        for (int e = 0; e < 8; ++e) {
            b.start();
            std::thread receiver = b.waiting(groups, threads, patience, MPI_SUCCESS, e % 2 == 0);
            std::uint64_t asked = 0;
            for (int n = 0; n < partitions; ++n) {
                const int p = e % 2 == 0 ? partitions - 1 - n : n;
                const auto answers = [&] { return b.pair.read() + b.pair.refused(); };
                const std::uint64_t before = answers();
                // Whom a group that waits there has asked, unless one came first that does not ask.
                const std::uint64_t until = now_ns() + 2'000'000;
                while (b.pair.wanted(p) != b.epoch && now_ns() < until) give_way();
                const bool wanted = b.pair.wanted(p) == b.epoch;
                if (random() % 3 == 0) {
                    send_inline(b, p);
                    continue;
                }
                REQUIRE(b.ready(p) == MPI_SUCCESS);
                if (!wanted) continue;
                ++asked;
                b.until([&] { return b.pair.progress(b.epoch) || answers() != before; });
            }
            finish(b, receiver);
            // Only members that have seen different epochs refuse.
            CHECK((groups > 1 || b.pair.refused() == 0));
            // So that groups go on asking.
            if (asked == 0) tell_would_offer(b.pair.sending(), b.epoch);
        }
        all_read += b.pair.read();
        CHECK((b.prepared_members != 0) == b.prepares);
    }
    CHECK(all_read != 0);
}

TEST_CASE("the claimer that has asked takes what comes inline after all, soon or late") {
    const bool late = GENERATE(false, true);
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    for (int e = 0; e < 6; ++e) {
        b.start();
        std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
        b.until([&] { return b.all_wanted(); });
        // Its first looks are over by then, on most machines.
        if (late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        send_inline(b, 0);
        finish(b, receiver);
        CHECK(claim_of(b, 0) == 2 * b.epoch - 1);
    }
    CHECK(b.pair.read() + b.pair.refused() == 0);
    CHECK(b.pair.sent_inline() == 1);
}

TEST_CASE("the claimer that has asked answers if a flag comes: there is nothing left to move") {
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    for (int e = 0; e < 6; ++e) {
        b.start();
        std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
        b.until([&] { return b.all_wanted(); });
        // A sender that has not seen the question.
        store_pointer(&b.pair.sending()->wanted, static_cast<std::uint64_t *>(nullptr));
        REQUIRE(b.ready(0) == MPI_SUCCESS);
        store_pointer(&b.pair.sending()->wanted, b.pair.receiving()->wanted);
        finish(b, receiver);
        // Or members have found the epoch over, and have refused.
        CHECK((b.pair.answer(0) == 2 * b.epoch || b.pair.answer(0) == 2 * b.epoch + 1));
        tell_would_offer(b.pair.sending(), b.epoch);
    }
    CHECK(b.pair.read() + b.pair.refused() == 0);
}

TEST_CASE("a claimer whose time is over refuses; who claims after it does not ask, and gets it another way") {
    const bool by_engine = GENERATE(false, true);
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    for (int e = 0; e < 3; ++e) {
        b.start();
        std::thread receiver;
        // Who comes to it so late that little is left of its time does not ask.
        receiver = b.waiting(1, 2, 4 * least_reading_ns, MPI_ERR_PENDING);
        receiver.join();
        const bool answered = b.pair.answer(0) == 2 * b.epoch + 1;
        CHECK(claim_of(b, 0) == 2 * b.epoch - 2);
        CHECK(b.pair.wanted(0) == 0);
        receiver = b.waiting(1, 3, patience, MPI_SUCCESS);
        b.until([&] { return claim_of(b, 0) == 2 * b.epoch - 1 || claim_of(b, 0) == 2 * b.epoch - 2; });
        CHECK(b.pair.wanted(0) == 0);
        if (by_engine && answered) {
            // The sender had seen the question.
            store_relaxed(b.pair.receiving()->wanted, b.epoch);
            REQUIRE(b.ready(0) == MPI_SUCCESS);
            b.until([&] { return b.pair.progress(b.epoch); });
        } else {
            send_inline(b, 0);
        }
        finish(b, receiver);
        CHECK(b.pair.read() == 0);
        CHECK(b.pair.refused() == (by_engine && answered ? static_cast<unsigned>(e + 1) : 0u));
        tell_would_offer(b.pair.sending(), b.epoch);
    }
}

TEST_CASE("an offer beside an inline buffer that meets the deadline is read or refused") {
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    const auto answers = [&] { return b.pair.read() + b.pair.refused(); };
    for (unsigned e = 0; e < 60 || (answers() == 0 && e < 600); ++e) {
        b.start();
        const std::uint64_t limit = 4 * least_reading_ns + b.random() % (2'000'000 * (1 + e / 20));
        std::atomic<int> answered{-1};
        std::thread receiver([&] {
            mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
                const int code = b.waits(group)(group, 0, limit);
                if (group.thread_rank() == 0) answered = code;
            });
        });
        b.until([&] { return b.pair.wanted(0) == b.epoch || answered != -1; });
        const std::uint64_t end = now_ns() + b.random() % (limit + 1'000'000);
        while (now_ns() < end) give_way();
        REQUIRE(b.ready(0) == MPI_SUCCESS);
        b.finish();
        receiver.join();
        CHECK((answered == MPI_SUCCESS || answered == MPI_ERR_PENDING));
        tell_would_offer(b.pair.sending(), b.epoch);
    }
    CHECK(answers() != 0);
}

TEST_CASE("beside an inline buffer nobody asks who has not the epoch's first claim") {
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    std::uint64_t claim = 0;
    SECTION("another group has claimed it") { claim = 1; }
    SECTION("it has been given back") { claim = 2; }
    b.start();
    // As a group that has come first.
    if (claim != 0) store_relaxed(b.pair.receiving()->taken, 2 * b.epoch - claim);
    std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    for (int look = 0; look < 20; ++look) {
        CHECK(b.pair.wanted(0) != b.epoch);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (claim == 1) store_relaxed(b.pair.receiving()->taken, 2 * b.epoch - 2);
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    finish(b, receiver);
    CHECK(b.pair.wanted(0) != b.epoch);
    CHECK(b.pair.read() + b.pair.refused() == 0);
}

TEST_CASE("a handle of an older epoch leaves no question beside an inline buffer") {
    bench b(beside_packets(1), {true, false});
    second_epoch(b);
    b.start();
    b.wait_by_old_handle();
    CHECK(b.pair.wanted(0) < b.epoch - 1);
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    b.until([&] { return b.pair.progress(b.epoch); });
    CHECK_FALSE(b.failed);
}

TEST_CASE(
    "a wait by default that has asked keeps its error when its time is over; what is there in part ends no later") {
    const bool one_packet = GENERATE(false, true);
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    b.start();
    if (one_packet) store_packet(b.pair.receiving()->inline_buffer, 0, b.epoch, 1);
    b.pair.receiving()->stall_ns = 20'000'000;
    std::thread receiver = b.waiting(1, 2, mpix::default_timeout, MPI_ERR_PENDING);
    receiver.join();
    CHECK_FALSE(b.failed);
    CHECK(b.pair.receiver_erred());
    CHECK(claim_of(b, 0) == 2 * b.epoch - 2);
}

TEST_CASE("the end of a match ends a wait that has asked") {
    bench b(beside_packets(1), {GENERATE(false, true), false});
    second_epoch(b);
    b.start();
    std::atomic<int> answer{-1};
    std::thread receiver([&] {
        mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
            const auto wait = b.waits(group);
            group.sync();
            const int code = wait(group, 0, 300'000'000);
            if (group.thread_rank() == 0) answer = code;
        });
    });
    b.until([&] { return b.all_wanted(); });
    mpix_prequest *const r = b.pair.receiving();
    store_pointer(&r->wanted, static_cast<std::uint64_t *>(nullptr));
    store_pointer(&r->answers, static_cast<std::uint64_t *>(nullptr));
    store_pointer(&r->flags, static_cast<std::uint64_t *>(nullptr));
    receiver.join();
    CHECK(answer == MPI_ERR_PENDING);
}
