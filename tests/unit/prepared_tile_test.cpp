// SPDX-License-Identifier: BSD-3-Clause
//
// Prepared tiles of halo exchanges, on the ways of GPU threads, gone by host threads (MPIX_FAKE_GPU).
#include <mpix/halo.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_tile.hpp"

using namespace fake;
namespace halo = mpix::halo;

TEST_CASE("a group that keeps what it knows of a tile") {
    std::mt19937_64 random(Catch::rngSeed());
    int straight_rounds = 0;
    for (int round = 0; round < 64; ++round) {
        constexpr std::array word_bytes{4, 8, 16, 2};
        tile_shape s{.word_bytes = word_bytes[random() % 4],
                     .copies = 1 + static_cast<int>(random() % 3),
                     // From 97 on, threads share the work in the barrier.
                     .threads = round % 16 == 0  ? 97 + static_cast<int>(random() % 32)
                                : round % 2 == 0 ? 33 + static_cast<int>(random() % 8)
                                                 : 1 + static_cast<int>(random() % 4),
                     .padding = 8 * (random() % 3),
                     .parcels = 1 + static_cast<int>(random() % 2),
                     .runs = 2,
                     .sets = 2 << random() % 3};
        if (s.copies == 3) s.parcels = 1;
        // In the others the barrier does not wait, or some sends look the tile up.
        const bool by_barrier = random() % 3 != 0, always_kept = random() % 2 == 0;
        CAPTURE(round, s.word_bytes, s.copies, s.threads, s.padding, s.parcels, s.sets, by_barrier, always_kept);
        tile_that_sends_to_itself t(s, random);
        const int steps = 2 * s.sets + 8;
        t.x.steps_ = steps;
        halo::prepared_tile mine;
        std::array<std::byte, field_bytes> before;
        std::atomic<const char *> failure{nullptr};
        std::atomic<int> straight{0}, claimed{0};
        std::atomic<bool> ended{false};
        const std::uint64_t seed = random();
        std::mt19937_64 cells(seed + 1);
        std::thread group([&] {
            mpix::host_launch(1, s.threads, [&](const mpix::host_group &g) {
                std::mt19937_64 same(seed);  // in all members
                const auto expect = [&](bool good, const char *what) {
                    if (!good) failure.store(what);
                };
                halo::prepare(g, t.x, 0, mine);
                expect(mine.number() == 0 && mine.cells() == t.tile.cells, "the tile");
                expect(mine.sends_ == (s.is_kept() && t.is_inline(s.threads) ? s.parcels : -1) &&
                           mine.waits_ == mine.sends_,
                       "what is kept");
                for (std::int64_t step = 0; step < steps; ++step) {
                    const int allocation = t.x.allocation_(step);
                    if (g.thread_rank() == 0) {
                        t.fill(allocation, cells);
                        before = t.fields[static_cast<std::size_t>(allocation)].bytes;
                        t.poison_messages();
                    }
                    g.sync();
                    // What is claimed can't be sent by number.
                    const bool by_tile = by_barrier || always_kept || same() % 4 != 0;
                    const int sent = by_tile ? halo::send(g, t.x, mine, step) : halo::send(g, t.x, 0, step);
                    const int waited =
                        by_barrier ? halo::sync_blocks(g, t.x, 1, &mine, 1, step) : halo::wait(g, t.x, 0, step);
                    if (g.thread_rank() == 0)
                        for (int k = 0; k < mine.sends_; ++k) claimed += mine.sent_[k].claimed == step + 1;
                    expect(sent == MPI_SUCCESS && waited == MPI_SUCCESS, "a call has failed");
                    if (g.thread_rank() == 0) {
                        expect(t.right(allocation, before), "ghost cells");
                        straight += t.messages_are_untouched();
                    }
                    g.sync();
                    expect(halo::next(g, t.x, step) == MPI_SUCCESS, "next");
                }
            });
            ended.store(true);
        });
        for (backoff wait; !ended.load(); wait.pause())
            for (const auto &pair : t.pairs) pair->progress_of_kernels(1);
        group.join();
        INFO(std::string(failure.load() == nullptr ? "" : failure.load()));
        CHECK(failure.load() == nullptr);
        // The host has begun the first exchange of each set; the second one's handle is looked up.
        const bool goes_straight = s.is_kept() && t.is_inline(s.threads);
        CHECK(straight == (goes_straight && by_barrier ? steps - 2 * s.sets : 0));
        CHECK(claimed == (goes_straight && by_barrier ? s.parcels * (steps - 2 * s.sets) : 0));
        straight_rounds += goes_straight && by_barrier;
        CHECK(t.words[halo::device_exchange::failed_at] == 0);
    }
    CHECK(straight_rounds != 0);
}

TEST_CASE("calls on a prepared tile after a call has failed") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const std::uint64_t padding : {0, 512}) {
        for (const bool before_send : {true, false}) {
            tile_shape s = small;
            s.padding = padding;
            played_tile t(s, random);
            REQUIRE(t.is_inline(1) == (padding == 0));
            t.exchange(0, 4, random);
            CHECK(t.mine.sends_ == (padding == 0 ? 1 : -1));
            if (padding == 0) CHECK(t.mine.sent_[0].claimed == 5);
            CHECK(halo::next(t.self, t.x, 4) == MPI_SUCCESS);
            t.fill_for(5, random);
            if (!before_send) CHECK(halo::send(t.self, t.x, t.mine, 5) == MPI_SUCCESS);
            t.words[halo::device_exchange::failed_at] = halo::device_exchange::next_failed;
            // What the barrier has claimed goes even so.
            if (before_send) CHECK(halo::send(t.self, t.x, t.mine, 5) == (padding == 0 ? MPI_SUCCESS : MPI_ERR_OTHER));
            CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 5) == MPI_ERR_OTHER);
            if (padding == 0) CHECK(t.mine.sent_[0].claimed != 6);
            if (padding == 0) CHECK(halo::send(t.self, t.x, t.mine, 6) == MPI_ERR_OTHER);
            CHECK(halo::send(t.self, t.x, t.mine, 100) == MPI_SUCCESS);  // there is no such exchange
        }
    }
}

TEST_CASE("a prepared tile is waited for while other groups have not come to the barrier") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const bool one_allocation : {false, true}) {
        played_tile t(small, random);
        const std::int64_t step = one_allocation ? 0 : 5;
        if (one_allocation) {
            t.copies[1].cells[1] = t.copies[1].cells[0];
            halo::prepare(t.self, t.x, 0, t.mine);
        } else {
            t.exchange(0, 4, random);
            CHECK(halo::next(t.self, t.x, 4) == MPI_SUCCESS);
        }
        t.fill_for(step, random);
        CHECK(halo::send(t.self, t.x, t.mine, step) == MPI_SUCCESS);
        t.x.stall_ns_ = 1000;
        // The other group never comes. Ghost cells that it may be reading stay as they are.
        CHECK(halo::sync_blocks(t.self, t.x, 2, &t.mine, 1, step) == MPI_ERR_PENDING);
        CHECK(t.words[halo::device_exchange::arrivals_at] == static_cast<std::uint64_t>(step) + 1);
        CHECK(t.words[halo::device_exchange::failed_at] == halo::device_exchange::barrier_failed);
        if (one_allocation)
            CHECK(t.fields[0].bytes == t.before);
        else
            CHECK(t.right(t.x.allocation_(step), t.before));
    }
}

TEST_CASE("own cells of a prepared tile are copied behind the barrier") {
    std::mt19937_64 random(Catch::rngSeed());
    constexpr std::size_t bytes = 16, from = field_bytes / 2 - 64, to = field_bytes - 64;
    played_tile t(small, random);
    device_copy own = t.copies[1];
    own.message = -1;
    own.words = static_cast<std::uint32_t>(bytes) / static_cast<std::uint32_t>(own.word_bytes);
    own.by_words = tile_that_sends_to_itself::divisor(own.words);
    for (int loop = 0; loop < 3; ++loop) own.count[loop] = 1;
    for (std::size_t i = 0; i < 2; ++i) {
        own.cells[i] = t.fields[i].bytes.data() + to;
        own.own_cells[i] = t.fields[i].bytes.data() + from;
    }
    t.copies.push_back(own);
    t.x.copies_ = t.copies.data();
    t.tile.ghosts.end = t.tile.ghosts.small = static_cast<std::int32_t>(t.copies.size());
    halo::prepare(t.self, t.x, 0, t.mine);
    CHECK(t.mine.own_count_ == 1);
    CHECK(t.mine.waits_ == 1);
    for (std::int64_t step = 0; step < 8; ++step) {
        t.fill_for(step, random);
        CHECK(halo::send(t.self, t.x, t.mine, step) == MPI_SUCCESS);
        CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, step) == MPI_SUCCESS);
        std::copy_n(t.before.begin() + from, bytes, t.before.begin() + to);
        CHECK(t.right(t.x.allocation_(step), t.before));
        CHECK(halo::next(t.self, t.x, step) == MPI_SUCCESS);
    }
    // Not after a failure.
    t.fill_for(8, random);
    t.words[halo::device_exchange::failed_at] = halo::device_exchange::next_failed;
    CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 8) == MPI_ERR_OTHER);
    CHECK(t.fields[static_cast<std::size_t>(t.x.allocation_(8))].bytes == t.before);
}

TEST_CASE("a tile whose next send the barrier has claimed") {
    std::mt19937_64 random(Catch::rngSeed());
    played_tile t(small, random);
    const auto step_on = [&](std::int64_t step) {
        t.fill_for(step, random);
        CHECK(halo::send(t.self, t.x, t.mine, step) == MPI_SUCCESS);
        CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, step) == MPI_SUCCESS);
        CHECK(t.right(t.x.allocation_(step), t.before));
        // Other calls, such as next(), find the partition taken.
        const halo::detail::kept_receive &known = t.mine.awaited_[0].sets[step % 2];
        if (known.packets != nullptr) CHECK(*known.flag == known.epoch + static_cast<std::uint64_t>(step / 2));
        return t.mine.sent_[0].claimed == step + 1;
    };
    const auto state = [&](int set) -> std::uint64_t & {
        return mpix::detail::partition_states(t.pairs[static_cast<std::size_t>(set)]->sending())[0];
    };
    // The handles of both sets are known from exchange 4 on.
    for (std::int64_t step = 0; step < 6; ++step) {
        CHECK(step_on(step) == (step >= 3));
        if (step < 5) CHECK(halo::next(t.self, t.x, step) == MPI_SUCCESS);
    }
    // Exchange 7 has not begun.
    const std::uint64_t before = state(1);
    CHECK(!step_on(6));
    CHECK(state(1) == before);
    for (const std::int64_t step : {5, 6}) CHECK(halo::next(t.self, t.x, step) == MPI_SUCCESS);
    CHECK(step_on(7));
    // So another call for exchange 8 is refused. After that nothing is claimed.
    CHECK(state(0) == t.mine.sent_[0].sets[0].epoch + 4);
    CHECK(halo::next(t.self, t.x, 7) == MPI_SUCCESS);
    t.fill_for(8, random);
    CHECK(halo::send(t.self, t.x, 0, 8) != MPI_SUCCESS);
    CHECK(t.words[halo::device_exchange::failed_at] != 0);
    CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 8) == MPI_ERR_OTHER);
    CHECK(t.mine.sent_[0].claimed == 8);
}

TEST_CASE("a prepared tile is not claimed before its exchange has begun on both sides") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const bool receiver_only : {true, false}) {
        played_tile t(small, random);
        t.exchange(0, 5, random);
        t.fill_for(6, random);
        CHECK(halo::send(t.self, t.x, t.mine, 6) == MPI_SUCCESS);
        const std::uint64_t state = mpix::detail::partition_states(t.pairs[1]->sending())[0];
        // Without next(5): the receiver has given clear-to-send, or the sender says that the exchange has begun.
        if (receiver_only)
            CHECK(mpix::next_epoch(t.self, t.requests[2]) == MPI_SUCCESS);
        else
            t.words[halo::device_exchange::begun_at + 1] = halo::detail::number_of(t.x, 7);
        CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 6) == MPI_SUCCESS);
        CHECK(t.mine.sent_[0].claimed == 6);
        CHECK(mpix::detail::partition_states(t.pairs[1]->sending())[0] == state);
    }
}

TEST_CASE("who counts last in the last exchanges of an activation says that all partitions are ready") {
    std::mt19937_64 random(Catch::rngSeed());
    played_tile t(small, random);
    t.x.steps_ = 8;
    t.exchange(0, 7, random);
    for (const std::size_t set : {0, 1}) {
        CHECK(t.mine.sent_[0].claimed == 7);
        CHECK(t.pairs[set]->sending()->told_epoch == 2 * (t.mine.sent_[0].sets[set].epoch + 3));
    }
}

TEST_CASE("tiles that can't be kept") {
    std::mt19937_64 random(Catch::rngSeed());
    tile_that_sends_to_itself t(small, random);
    const auto waits = [&] {
        halo::prepared_tile mine;
        halo::prepare(mpix::thread_group{}, t.x, 0, mine);
        CHECK(mine.sends_ == (t.x.sets_ == 2 ? 1 : -1));
        return mine.waits_;
    };
    CHECK(waits() == 1);
    t.copies[1].claim = 0;  // another tile reads it, too
    CHECK(waits() == -1);
    t.copies[1].claim = -1;
    // Own cells: two boxes of them are kept.
    t.copies[1].message = -1;
    CHECK(waits() == 1);
    t.copies.insert(t.copies.end(), 2, t.copies[1]);
    t.x.copies_ = t.copies.data();
    t.tile.ghosts.end += 1;
    CHECK(waits() == 1);
    t.tile.ghosts.end += 1;
    CHECK(waits() == -1);
    t.tile.ghosts.end -= 2;
    t.copies[1].message = 0;
    t.requests[0] = inline_capable_receive(t.pairs[0]->receiving(), false, 1);  // another group waits, too
    CHECK(waits() == -1);
    t.requests[0] = t.pairs[0]->receive();
    for (const int other : {3, 5}) {
        t.x.sets_ = other;
        CHECK(waits() == -1);
    }
    t.x.sets_ = 2;
    t.copies[1].cells[1] = t.copies[1].cells[0];  // one allocation
    CHECK(waits() == -1);
}
