// SPDX-License-Identifier: BSD-3-Clause
//
// Shares of a partition, contributed by groups of host threads that play GPU threads: which bytes move when, who tells
// the receiver, what becomes of shares that come too early, too often, or are none.
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

constexpr mpix::thread_group self;

// One thread on both sides, epoch by epoch.
struct bench {
    fake_pair pair;
    const std::uint64_t bytes;
    std::uint64_t epoch = 0, finished = 0;
    std::mt19937_64 random{Catch::rngSeed()};

    explicit bench(const pair_shape &s) : pair(s), bytes(s.bytes) {}
    void start(bool open = true) {
        pair.fill(random);
        pair.start_receive(++epoch);
        if (open) pair.clear_to_send(epoch);
        pair.start_send(epoch);
    }
    int share(int p, std::uint64_t begin, std::uint64_t count) {
        return mpix::pready_contribute(self, p, pair.send(), begin, count);
    }
    // Which bytes of partition p are at the receiver: [begin, begin + count) and no other of it.
    bool only(int p, std::uint64_t begin, std::uint64_t count) const {
        const std::uint64_t first = static_cast<std::uint64_t>(p) * bytes;
        const char *const from = pair.sending()->buffer + first, *const to = pair.receiving()->buffer + first;
        for (std::uint64_t i = 0; i < bytes; ++i)
            if (to[i] != (i >= begin && i - begin < count ? from[i] : 0x5a)) return false;
        return true;
    }
    void open() { pair.clear_to_send(epoch); }
    // Ends the epoch, of which so many partitions were the engine's to move.
    void finish(std::uint64_t deferred) {
        REQUIRE(pair.all_are_ready(epoch));
        REQUIRE(pair.progress(epoch));
        CHECK(pair.right(0, pair.receiving()->partitions));
        CHECK(pair.untouched_around());
        CHECK(pair.taken_error() == 0);
        pair.end(epoch);
        CHECK(pair.deferred() - finished == deferred);
        finished = pair.deferred();
    }
};

pair_shape of(int senders, std::uint64_t bytes, bool inline_buffer = false) {
    pair_shape s{};
    s.senders = s.receivers = senders;
    s.bytes = bytes;
    s.inline_buffer = inline_buffer;
    s.inline_from = 1;
    return s;
}

}  // namespace

TEST_CASE("a share is at the receiver when its call returns, and the last one tells of all") {
    bench b(of(2, 100, GENERATE(false, true)));
    for (int e = 0; e < 4; ++e) {
        b.start();
        CHECK(b.share(1, 60, 33) == MPI_SUCCESS);
        CHECK(b.only(1, 60, 33));
        CHECK(b.share(1, 0, 0) == MPI_SUCCESS);
        CHECK(b.share(1, 100, 0) == MPI_SUCCESS);
        CHECK(b.share(1, 0, 60) == MPI_SUCCESS);
        CHECK(b.only(1, 0, 93));
        CHECK(b.pair.flag(1) == b.epoch - 1);
        CHECK(b.share(1, 93, 7) == MPI_SUCCESS);
        CHECK(b.only(1, 0, 100));
        CHECK(b.only(0, 0, 0));
        CHECK(b.pair.flag(1) == b.epoch);
        CHECK(b.pair.flag(0) == b.epoch - 1);
        CHECK_FALSE(b.pair.all_are_ready(b.epoch));
        CHECK(b.share(0, 0, 100) == MPI_SUCCESS);
        b.finish(0);
        // The others may have ended the epoch.
        CHECK(b.share(1, 50, 0) == MPI_SUCCESS);
    }
    CHECK(b.pair.taken_error() == 0);
}

TEST_CASE("with one late share the whole partition is the engine's, whichever of them is late") {
    bench b(of(2, 64));
    for (int e = 0; e < 12; ++e) {
        // Of three shares so many come before the receiver has started.
        const int early = e % 4;
        b.start(false);
        for (int n = 0; n < 3; ++n) {
            if (n == early) b.open();
            CHECK(b.share(0, 20 * static_cast<std::uint64_t>(n), n == 2 ? 24 : 20) == MPI_SUCCESS);
            if (n >= early && n == 1) CHECK(b.only(0, early == 1 ? 20 : 0, early == 1 ? 20 : 40));
        }
        CHECK((b.pair.flag(0) == b.epoch) == (early == 0));
        CHECK(b.pair.sending()->defer_count == b.finished + (early != 0));
        if (early == 3) b.open();
        // The other one is not late for that.
        CHECK(b.share(1, 0, 64) == MPI_SUCCESS);
        CHECK(b.pair.flag(1) == b.epoch);
        b.finish(early != 0);
    }
}

TEST_CASE("what the kernels cannot store is the engine's") {
    pair_shape s = of(1, 40);
    s.gaps = true;
    bench b(s);
    for (int e = 0; e < 3; ++e) {
        b.start();
        CHECK(b.share(0, 0, 8) == MPI_SUCCESS);
        CHECK(b.only(0, 0, 0));
        CHECK(b.share(0, 8, 32) == MPI_SUCCESS);
        CHECK(b.only(0, 0, 0));
        b.finish(1);
    }
}

TEST_CASE("to nobody, shares are counted and not moved") {
    bench b(of(1, 40));
    b.pair.sending()->head |= MPIX_HEAD_NULL_PEER;
    for (int e = 0; e < 3; ++e) {
        b.start();
        CHECK(b.share(0, 10, 30) == MPI_SUCCESS);
        CHECK_FALSE(b.pair.all_are_ready(b.epoch));
        CHECK(b.share(0, 0, 10) == MPI_SUCCESS);
        CHECK(b.pair.all_are_ready(b.epoch));
        CHECK(b.only(0, 0, 0));
        CHECK(b.pair.sending()->defer_count == 0);
        b.pair.end(b.epoch);
    }
}

TEST_CASE("epochs in which a partition goes another way, wholly or in part, leave nothing to the next") {
    bench b(of(2, 30));
    for (int e = 0; e < 20; ++e) {
        b.start();
        CHECK(b.share(1, 0, 30) == MPI_SUCCESS);
        switch (e % 4) {
            case 0:
                CHECK(mpix::pready(self, 0, b.pair.send()) == MPI_SUCCESS);
                break;
            case 1:
                CHECK(b.share(0, 5, 20) == MPI_SUCCESS);
                CHECK(mpix::pready(self, 0, b.pair.send()) == MPI_SUCCESS);
                break;
            default:
                CHECK(b.share(0, 5, 25) == MPI_SUCCESS);
                CHECK(b.pair.flag(0) == b.epoch - 1);
                CHECK(b.share(0, 0, 5) == MPI_SUCCESS);
        }
        b.finish(0);
    }
}

TEST_CASE("a partition without bytes is ready with the first share") {
    bench b(of(2, 0));
    for (int e = 0; e < 4; ++e) {
        const bool plain = e % 2 == 1;
        b.start();
        if (plain) CHECK(mpix::pready(self, 1, b.pair.send()) == MPI_SUCCESS);
        for (int n = 0; n < 3; ++n) CHECK(b.share(1, 0, 0) == MPI_SUCCESS);
        CHECK_FALSE(b.pair.all_are_ready(b.epoch));
        CHECK(b.share(0, 0, 0) == MPI_SUCCESS);
        b.finish(plain ? 1 : 2);
        CHECK(b.share(0, 0, 0) == MPI_SUCCESS);
    }
    CHECK(b.pair.taken_error() == 0);
    b.start();
    CHECK(b.share(0, 0, 1) == MPI_ERR_ARG);
    CHECK(b.share(0, 1, 0) == MPI_ERR_ARG);
    CHECK(b.pair.has_failed(MPI_ERR_ARG, 0));
    CHECK(b.pair.sending()->ready_count == 8);
}

TEST_CASE("shares that there are not are refused, and nothing is moved") {
    bench b(of(2, 48));
    const std::uint64_t none = ~std::uint64_t{0};
    struct {
        int p;
        std::uint64_t begin, bytes;
    } const bad[] = {{0, 0, 49},   {0, 48, 1},   {0, 49, 0},      {0, none, 2},       {0, 2, none},
                     {0, none, 0}, {0, 1, none}, {-1, 0, 8},      {2, 0, 8},          {-1, 0, 0},
                     {2, 0, 0},    {0, 24, 25},  {0, none, none}, {0, 100, none - 90}};
    for (int e = 0; e < 3; ++e)
        for (const auto &one : bad) {
            CAPTURE(e, one.p, one.begin, one.bytes);
            b.start(e != 1);
            CHECK(b.share(0, 8, 40) == MPI_SUCCESS);
            CHECK(b.share(one.p, one.begin, one.bytes) == MPI_ERR_ARG);
            CHECK(b.pair.has_failed(MPI_ERR_ARG, one.p));
            CHECK(b.only(0, 8, e != 1 ? 40 : 0));
            CHECK(b.pair.untouched_around());
            CHECK(b.share(0, 0, 8) == MPI_SUCCESS);
            CHECK(b.share(1, 0, 48) == MPI_SUCCESS);
            if (e == 1) b.open();
            b.finish(e != 1 ? 0 : 2);
        }
    CHECK(b.share(0, 0, 8) == MPI_ERR_REQUEST);  // not started
    CHECK(b.pair.has_failed(MPI_ERR_REQUEST, 0));
    CHECK(mpix::pready_contribute(self, 0, b.pair.receive(), 0, 8) == MPI_ERR_REQUEST);
    CHECK(mpix::pready_contribute(self, 0, b.pair.receive(), 0, 0) == MPI_ERR_REQUEST);
    CHECK(b.pair.receiver_erred());
    CHECK(mpix::pready_contribute(self, 0, MPIX_PREQUEST_NULL, 0, 8) == MPI_ERR_REQUEST);
    CHECK(mpix::pready_contribute(self, 0, MPIX_PREQUEST_NULL, 0, 0) == MPI_ERR_REQUEST);
}

TEST_CASE("more bytes than there are: an error, a partition that is ready, and a next epoch without either") {
    bench b(of(2, 100));
    for (int e = 0; e < 12; ++e) {
        const bool open = e % 2 == 0;
        CAPTURE(e);
        b.start(open);
        CHECK(b.share(0, 0, 60) == MPI_SUCCESS);
        if (e % 3 == 0) {  // exactly as many, and then more
            CHECK(b.share(0, 60, 40) == MPI_SUCCESS);
            CHECK(b.share(0, 0, 60) == MPI_ERR_ARG);
        } else if (e % 3 == 1) {  // more at once
            CHECK(b.share(0, 30, 70) == MPI_ERR_ARG);
        } else {  // after a pready
            if (e % 4 < 2) CHECK(b.share(0, 60, 39) == MPI_SUCCESS);
            CHECK(mpix::pready(self, 0, b.pair.send()) == MPI_SUCCESS);
            CHECK(b.share(0, 99, 1) == MPI_ERR_ARG);
        }
        CHECK((b.pair.flag(0) == b.epoch) == open);
        // Who counts at the same time is not to find room again.
        if (e % 3 != 2) CHECK(*partition_contributed(b.pair.sending()) == b.epoch * 100);
        CHECK(b.share(0, 99, 1) == MPI_ERR_ARG);
        CHECK(mpix::pready(self, 0, b.pair.send()) == MPI_ERR_ARG);
        CHECK(b.pair.has_failed(MPI_ERR_ARG, 0));
        CHECK_FALSE(b.pair.all_are_ready(b.epoch));
        if (!open) b.open();
        CHECK(b.share(1, 0, 100) == MPI_SUCCESS);
        b.finish(open ? 0 : 1);
    }
}

// ---- several groups at once ----------------------------------------------------------------------------------------

namespace {

struct crowd : pair_shape {
    int sending_groups, sending_threads, receiving_groups, receiving_threads;
};

struct share {
    int partition;
    std::uint64_t begin, bytes;
    bool plain;  // the whole, by pready
};

// The shares of a group in an epoch, in its order. All groups draw the same cuts.
std::vector<share> shares_of(const crowd &s, int group, std::uint64_t epoch, std::uint64_t seed) {
    std::mt19937_64 random(seed + epoch);
    std::vector<share> mine;
    const auto give = [&](const share &one) {
        if (static_cast<int>(random() % static_cast<unsigned>(s.sending_groups)) == group) mine.push_back(one);
    };
    for (int p = 0; p < s.senders; ++p) {
        if (random() % 6 == 0) {
            give({p, 0, s.bytes, true});
            continue;
        }
        std::vector<std::uint64_t> cuts{0, s.bytes};
        for (std::uint64_t n = random() % 8; n != 0; --n) cuts.push_back(random() % (s.bytes + 1));
        std::sort(cuts.begin(), cuts.end());
        for (std::size_t n = 0; n + 1 < cuts.size(); ++n) give({p, cuts[n], cuts[n + 1] - cuts[n], false});
    }
    std::shuffle(mine.begin(), mine.end(), std::mt19937_64(seed + 7 * epoch + static_cast<unsigned>(group)));
    return mine;
}

void contribute(const mpix::host_group &group, const crowd &s, fake_pair &pair, turns &t, std::uint64_t last,
                std::uint64_t seed, const std::vector<char> &message, std::atomic<std::uint64_t> &shares) {
    std::mt19937_64 random(seed + static_cast<unsigned>(group.group_rank()));
    const auto rank = static_cast<std::uint64_t>(group.thread_rank()),
               threads = static_cast<std::uint64_t>(group.num_threads());
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        // All members write, or one does, who alone knows of the host's Start: the others wait for it in the call.
        const bool together = random() % 2 == 0;
        const auto knows = random() % threads;
        if (together && !t.wait_for(group, t.sender, epoch)) return;
        if (!together && rank == knows) t.wait_alone(t.sender, epoch);
        for (const share &one : shares_of(s, group.group_rank(), epoch, seed)) {
            const std::uint64_t first = static_cast<std::uint64_t>(one.partition) * s.bytes + one.begin;
            if (together)
                for (std::uint64_t i = first + rank; i < first + one.bytes; i += threads)
                    pair.sending()->buffer[i] = message[i];
            else if (rank == knows)
                std::copy_n(message.data() + first, one.bytes, pair.sending()->buffer + first);
            const int code = one.plain
                                 ? mpix::pready(group, one.partition, pair.send())
                                 : mpix::pready_contribute(group, one.partition, pair.send(), one.begin, one.bytes);
            if (code != MPI_SUCCESS) t.fail("a share was refused");
            if (group.thread_rank() == 0) shares.fetch_add(1, std::memory_order_relaxed);
        }
        if (broadcast_bool(group, t.failure.load() != nullptr)) return;
        if (group.thread_rank() == 0) t.sent.fetch_add(1, std::memory_order_release);
    }
}

void receive(const mpix::host_group &group, const crowd &s, fake_pair &pair, turns &t, std::uint64_t last,
             const std::vector<char> &message) {
    const std::uint64_t bytes = pair.receiving()->partition_bytes;
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        if (!t.wait_for(group, t.receiver, epoch)) return;
        for (int j = 0; j < s.receivers; ++j) {
            if (mpix::wait_arrived(group, pair.receive(), j) != MPI_SUCCESS) t.fail("it does not arrive");
            const std::uint64_t at = static_cast<std::uint64_t>(j) * bytes;
            if (!std::equal(message.data() + at, message.data() + at + bytes, pair.receiving()->buffer + at))
                t.fail("what has arrived is not what was sent");
        }
        group.sync();
        if (group.thread_rank() == 0) t.received.fetch_add(1, std::memory_order_release);
    }
}

const char *play(const crowd &s, std::uint64_t last, std::uint64_t seed, std::uint64_t (&seen)[3]) {
    std::mt19937_64 random(seed);
    fake_pair pair(s);
    turns t;
    std::vector<char> message(static_cast<std::size_t>(s.senders) * s.bytes);
    std::atomic<std::uint64_t> shares{0};  // of this epoch that have been contributed
    std::thread sender([&] {
        mpix::host_launch(s.sending_groups, s.sending_threads,
                          [&](const mpix::host_group &g) { contribute(g, s, pair, t, last, seed, message, shares); });
    });
    std::thread receiver([&] {
        mpix::host_launch(s.receiving_groups, s.receiving_threads,
                          [&](const mpix::host_group &g) { receive(g, s, pair, t, last, message); });
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
        for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<char>(random());
        std::uint64_t all = 0;
        for (int g = 0; g < s.sending_groups; ++g) all += shares_of(s, g, epoch, seed).size();
        shares = 0;
        t.sent = 0;
        t.received = 0;
        // The receiver starts before the shares come, behind them all, or while they come.
        const unsigned when = static_cast<unsigned>(random() % 3);
        const auto open = [&] {
            pair.start_receive(epoch);
            t.receiver.store(epoch, std::memory_order_release);
            pair.clear_to_send(epoch);
        };
        if (when == 0) open();
        pair.start_send(epoch);
        t.sender.store(epoch, std::memory_order_release);
        const auto all_sent = [&] { return t.sent.load(std::memory_order_acquire) == s.sending_groups; };
        if (when == 1) until(all_sent);
        if (when == 2)
            until([&, some = random() % (all + 1)] { return shares.load(std::memory_order_relaxed) >= some; });
        if (when != 0) open();
        bool complete = false;
        const std::uint64_t before = pair.deferred();
        if (!until([&] {
                complete = complete || pair.progress(epoch);
                return complete && all_sent() && t.received.load(std::memory_order_acquire) == s.receiving_groups;
            }))
            break;
        if (!pair.right(0, s.receivers) || !pair.untouched_around()) t.fail("the message is not what was sent");
        if (pair.taken_error() != 0 || pair.receiver_erred()) t.fail("an error of a share");
        pair.end(epoch);
        const std::uint64_t deferred = pair.deferred() - before;
        if (when == 0 && !s.gaps && s.bytes != 0 && deferred != 0)
            t.fail("a partition was left to the engine for nothing");
        if ((when == 1 || s.gaps) && deferred != static_cast<std::uint64_t>(s.senders))
            t.fail("a partition was not left to the engine");
        if (when == 2 && !s.gaps && s.bytes != 0) {
            seen[0] += deferred == 0;
            seen[1] += deferred != 0 && deferred < static_cast<std::uint64_t>(s.senders);
            seen[2] += deferred == static_cast<std::uint64_t>(s.senders);
        }
    }
    sender.join();
    receiver.join();
    return t.failure.load();
}

}  // namespace

TEST_CASE("groups contribute uneven shares in any order, before and behind the receiver's Start") {
    std::mt19937_64 random(Catch::rngSeed());
    std::uint64_t seen[3] = {};
    for (int round = 0; round < 80; ++round) {
        crowd s{};
        s.receivers = 1 + static_cast<int>(random() % 3);
        const bool empty = round % 8 == 0;
        s.inline_buffer = !empty && round % 2 == 0;
        s.senders = s.receivers * (s.inline_buffer ? 1 : 1 + static_cast<int>(random() % 3));
        constexpr std::uint64_t sizes[] = {1, 7, 16, 48, 100, 256, 1000, 4096};
        s.bytes = empty ? 0 : sizes[random() % std::size(sizes)];
        s.skew = random() % 3 == 0 ? static_cast<unsigned>(random() % 16) : 0;
        s.inline_from = 1 + random() % 3;
        s.gaps = !s.inline_buffer && random() % 4 == 0;  // what has gaps has no inline buffer
        s.sending_groups = 1 + static_cast<int>(random() % 4);
        s.sending_threads = 1 + static_cast<int>(random() % 3);
        s.receiving_groups = 1 + static_cast<int>(random() % 2);
        s.receiving_threads = 1 + static_cast<int>(random() % 2);
        CAPTURE(round, s.senders, s.receivers, s.bytes, s.skew, s.inline_buffer, s.gaps, s.sending_groups,
                s.sending_threads);
        const char *const failure = play(s, 12, random(), seen);
        INFO(std::string(failure == nullptr ? "" : failure));
        REQUIRE(failure == nullptr);
    }
    INFO("open while they come: " << seen[0] << " epochs stored, " << seen[1] << " mixed, " << seen[2] << " deferred");
    CHECK(seen[0] + seen[1] + seen[2] != 0);
}
