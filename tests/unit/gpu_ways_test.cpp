// SPDX-License-Identifier: BSD-3-Clause
//
// The ways that GPU threads go in Pready and Parrived, gone by host threads (MPIX_FAKE_GPU): groups of a sender and of
// a receiver over many epochs, while this test plays both hosts.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace {

using namespace fake;

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
constexpr bool thread_sanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool thread_sanitizer = false;
#endif

struct scenario : pair_shape {
    int sending_groups, receiving_groups, sending_threads, receiving_threads;
    bool watched;  // by one more thread of the receiver's, which looks all the time, between the epochs as well
};

void sends(const mpix::host_group &group, const scenario &s, fake_pair &pair, turns &t, std::uint64_t last,
           std::uint64_t seed) {
    const bool leader = group.thread_rank() == 0;
    std::mt19937_64 random(seed + static_cast<unsigned>(group.group_rank()));  // the same for all members
    std::vector<int> mine;
    for (int p = group.group_rank(); p < s.senders; p += s.sending_groups) mine.push_back(p);
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        // One member knows of the host's Start; the others, who write nothing, wait for it in Pready.
        const int knows = static_cast<int>(random() % static_cast<unsigned>(group.num_threads()));
        // Now and then by a handle, which may be made before Start if no other group can still be in the last epoch.
        const bool prepares = random() % 2 == 0, early = prepares && s.sending_groups == 1 && random() % 2 == 0;
        mpix::prepared_send prepared{};
        if (early) prepared = mpix::prepare_send(group, pair.send());
        if (group.thread_rank() == knows) t.wait_alone(t.sender, epoch);
        std::shuffle(mine.begin(), mine.end(), random);
        if (prepares && !early) prepared = mpix::prepare_send(group, pair.send());
        const auto pready = [&](int p) {
            return prepares ? mpix::pready(group, p, prepared) : mpix::pready(group, p, pair.send());
        };
        for (std::size_t k = 0; k < mine.size(); ++k) {
            const int p = mine[k];
            // Only what is waited for is offered; who is asked for something else meanwhile goes on.
            backoff wait;
            for (int look = 0; group.thread_rank() == knows && s.rget_bytes != 0 && look < 32; ++look) {
                if (pair.wanted(p) == epoch) break;
                wait.pause();
            }
            if (group.thread_rank() == knows) pair.begin(p, epoch);
            if (const int code = pready(p); code != MPI_SUCCESS)
                t.fail("a partition that was not ready could not be marked ready");
            // Again, while the epoch cannot end. An error, of which both calls may store, so ThreadSanitizer is spared
            // it.
            if (!thread_sanitizer && k + 1 < mine.size() && random() % 8 == 0 && pready(p) != MPI_ERR_ARG)
                t.fail("a partition was marked ready twice");
        }
        if (leader && prepared.state.epoch != 0) t.prepared_sends.fetch_add(1, std::memory_order_relaxed);
        if (broadcast_bool(group, t.failure.load() != nullptr)) return;
        if (leader) t.sent.fetch_add(1, std::memory_order_release);
    }
}

void receives(const mpix::host_group &group, const scenario &s, fake_pair &pair, turns &t, std::uint64_t last,
              std::uint64_t seed) {
    std::mt19937_64 random(seed + 100 + static_cast<unsigned>(group.group_rank()));
    std::vector<int> all;
    for (int j = 0; j < s.receivers; ++j) all.push_back(j);
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        if (!t.wait_for(group, t.receiver, epoch)) return;
        std::shuffle(all.begin(), all.end(), random);
        const bool prepares = random() % 2 == 0;
        mpix::prepared_receive prepared{};
        if (prepares) prepared = mpix::prepare_receive(group, pair.receive());
        if (group.thread_rank() == 0 && prepared.state.epoch != 0)
            t.prepared_receives.fetch_add(1, std::memory_order_relaxed);
        const auto wait = [&](int j, std::uint64_t limit) {
            return prepares ? mpix::wait_arrived(group, prepared, j, limit)
                            : mpix::wait_arrived(group, pair.receive(), j, limit);
        };
        const auto look = [&](int j) {
            return prepares ? mpix::parrived(group, prepared, j) : mpix::parrived(group, pair.receive(), j);
        };
        for (const int j : all) {
            bool there = false;
            switch (s.rget_bytes != 0 && random() % 4 != 0 ? 0 : random() % 3) {
                case 0:
                    // The longest limit is more than the clock can say.
                    there = wait(j, random() % 2 == 0 ? mpix::default_timeout : ~std::uint64_t{0} - 1) == MPI_SUCCESS;
                    break;
                case 1:
                    do {
                        there = look(j);
                    } while (!there && !broadcast_bool(group, t.failure.load() != nullptr));
                    break;
                default:
                    // Less than those wait that read what is offered, or more: then it may be refused.
                    for (int code = MPI_ERR_PENDING; code == MPI_ERR_PENDING; there = code == MPI_SUCCESS)
                        code = wait(j, j % 2 == 0 ? 200'000 : 1'500'000);
            }
            if (!there || !pair.right(j, 1)) t.fail("what has arrived is not what was sent");
            if (!mpix::parrived(mpix::this_thread(), pair.receive(), j))
                t.fail("what has arrived for the group is not there for one of its members");
            if (wait(j, 0) != MPI_SUCCESS || !look(j)) t.fail("what has arrived is not there any more");
        }
        group.sync();
        if (group.thread_rank() == 0) t.received.fetch_add(1, std::memory_order_release);
    }
}

// Looks whenever it likes; what it is told of an epoch that ran before and after is looked at.
void watches(const scenario &s, fake_pair &pair, turns &t, const std::atomic<std::uint64_t> &ended, std::uint64_t last,
             std::uint64_t seed) {
    std::mt19937_64 random(seed + 1000);
    while (ended.load(std::memory_order_acquire) < last && t.failure.load() == nullptr) {
        const int j = static_cast<int>(random() % static_cast<unsigned>(s.receivers));
        const std::uint64_t before = t.receiver.load(std::memory_order_acquire);
        int flag = 0;
        if (random() % 2 == 0)
            flag = mpix::parrived(mpix::this_thread(), pair.receive(), j) ? 1 : 0;
        else
            MPI_Parrived(pair.receive(), j, &flag);
        if (flag != 0 && before > ended.load(std::memory_order_acquire) && !pair.has_begun(j, before))
            t.fail("a partition is said to be there that was not sent");
        give_way();
    }
}

// The first failure, or null.
struct tally {
    std::uint64_t deferred, sent_inline, read, refused, prepared_sends, prepared_receives;
};
const char *play(const scenario &s, std::uint64_t last, std::uint64_t seed, tally &sum) {
    std::mt19937_64 random(seed);
    fake_pair pair(s);
    turns t;
    std::atomic<std::uint64_t> ended{0};
    std::thread sender([&] {
        mpix::host_launch(s.sending_groups, s.sending_threads,
                          [&](const mpix::host_group &g) { sends(g, s, pair, t, last, seed); });
    });
    std::thread receiver([&] {
        mpix::host_launch(s.receiving_groups, s.receiving_threads,
                          [&](const mpix::host_group &g) { receives(g, s, pair, t, last, seed); });
    });
    std::thread watcher([&] {
        if (s.watched) watches(s, pair, t, ended, last, seed);
    });
    const auto start = std::chrono::steady_clock::now();
    const auto until = [&](auto &&done) {
        for (backoff wait; !done(); wait.pause()) {
            if (t.failure.load() != nullptr) return false;
            if (std::chrono::steady_clock::now() - start > std::chrono::nanoseconds(patience_ns)) {
                t.fail("it does not end");
                return false;
            }
        }
        return true;
    };
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        pair.fill(random);
        t.sent = 0;
        t.received = 0;
        // The sender may be early: what it readies before the clear-to-send is left to the engine.
        const bool early = random() % 4 == 0, unmatched = s.matched_late && epoch == 1;
        const auto open = [&] {
            if (unmatched && random() % 2 == 0) pair.match();
            pair.start_receive(epoch);
            t.receiver.store(epoch, std::memory_order_release);
            if (unmatched) pair.match();
            pair.clear_to_send(epoch);
        };
        if (!early) open();
        pair.start_send(epoch);
        t.sender.store(epoch, std::memory_order_release);
        if (early) {
            if (random() % 2 == 0) until([&] { return t.sent.load(std::memory_order_acquire) == s.sending_groups; });
            open();
        }
        bool complete = false;
        if (!until([&] {
                complete = complete || pair.progress(epoch);
                return complete && t.sent.load(std::memory_order_acquire) == s.sending_groups &&
                       t.received.load(std::memory_order_acquire) == s.receiving_groups;
            }))
            break;
        const bool by_inline =
            s.inline_buffer && is_inline_capable(pair.send(), static_cast<unsigned>(s.sending_threads));
        if (by_inline && !early && s.piece_out == 0 && s.copy_engine_bytes == 0 && epoch >= s.inline_from &&
            pair.has_deferred())
            t.fail("what can go inline was left to the engine");
        if (!s.inline_buffer && s.copy_engine_bytes != 0 && s.piece_out == 0 && s.piece_in == 0 &&
            s.bytes >= s.copy_engine_bytes * static_cast<unsigned>(s.sending_threads) && !pair.has_deferred())
            t.fail("what the engine was to have was stored");
        if (!pair.right(0, s.receivers) || !pair.untouched_around()) t.fail("the message is not what was sent");
        pair.taken_error();
        if (pair.receiver_erred() && t.failure.load() == nullptr) t.fail("an error at the receiver");
        pair.end(epoch);
        ended.store(epoch, std::memory_order_release);
        if (t.failure.load() != nullptr) break;  // nobody is to wait for an epoch that has no sender
    }
    sender.join();
    receiver.join();
    watcher.join();
    if (pair.answered_early()) t.fail("a partition was said to be read before its flag was there");
    sum.deferred += pair.deferred();
    sum.sent_inline += pair.sent_inline();
    sum.read += pair.read();
    sum.refused += pair.refused();
    sum.prepared_sends += t.prepared_sends.load();
    sum.prepared_receives += t.prepared_receives.load();
    return t.failure.load();
}

}  // namespace

TEST_CASE("groups that ready, wait and watch over many epochs, as threads of a GPU do") {
    std::mt19937_64 random(Catch::rngSeed());
    tally done{};
    std::uint64_t inline_with_gaps = 0;
    for (int round = 0; round < 60; ++round) {
        scenario s{};
        s.receivers = 1 + static_cast<int>(random() % 3);
        s.inline_buffer = round % 2 == 0;
        s.senders = s.receivers * (s.inline_buffer ? 1 : 1 + static_cast<int>(random() % 3));
        constexpr std::uint64_t sizes[] = {8, 16, 24, 48, 5, 100, 256, 1024};
        s.bytes = sizes[random() % std::size(sizes)];
        s.skew = random() % 3 == 0 ? static_cast<unsigned>(random() % 16) : 0;
        s.inline_from = 1 + random() % 3;
        s.sending_groups = 1 + static_cast<int>(random() % 2);
        s.receiving_groups = 1 + static_cast<int>(random() % 2);
        s.sending_threads = 1 + static_cast<int>(random() % 3);
        s.receiving_threads = 1 + static_cast<int>(random() % 3);
        s.watched = random() % 2 == 0;
        s.matched_late = random() % 3 == 0;
        s.sending_groups = std::min(s.sending_groups, s.senders);
        const auto piece = [&]() -> std::uint64_t {
            std::uint64_t length = std::uint64_t{1} << random() % 4;
            while (s.bytes % length != 0 || s.senders * s.bytes / static_cast<unsigned>(s.receivers) % length != 0)
                length /= 2;
            return random() % 3 == 0 ? length : 0;
        };
        s.piece_out = piece();
        s.piece_in = piece();
        s.copy_engine_bytes = random() % 3 == 0 ? 1 + random() % 264 : 0;
        if (!s.inline_buffer && random() % 2 == 0) {  // the receiver reads what is in whole words, in one piece
            s.rget_bytes = 1 + static_cast<std::uint32_t>(random() % 100);
            s.maybe_inline = random() % 2 == 0;
            s.bytes = (s.bytes + 7) / 8 * 8 * static_cast<unsigned>(s.receivers);
            s.skew = s.skew / 8 * 8;
            s.piece_out = s.piece_in = 0;
            s.receiving_threads = 2 + static_cast<int>(random() % 2);
        }
        const bool gaps = s.piece_out != 0 || s.piece_in != 0;
        CAPTURE(round, s.senders, s.receivers, s.bytes, s.skew, s.inline_buffer, s.inline_from, s.sending_groups,
                s.receiving_groups, s.sending_threads, s.receiving_threads, s.watched, s.matched_late, s.piece_out,
                s.piece_in, s.copy_engine_bytes, s.rget_bytes);
        const std::uint64_t inline_before = done.sent_inline;
        const char *const failure = play(s, 12, random(), done);
        if (gaps) inline_with_gaps += done.sent_inline - inline_before;
        INFO(std::string(failure == nullptr ? "" : failure));
        REQUIRE(failure == nullptr);
    }
    CHECK(done.deferred != 0);
    CHECK(done.sent_inline != 0);
    CHECK(inline_with_gaps != 0);
    CHECK(done.read != 0);
    CHECK(done.prepared_sends != 0);  // from the second epoch on
    CHECK(done.prepared_receives != 0);
}
