// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions that a lone thread offers and a group of the receiver's reads, by host threads that play GPU threads: what
// is offered when, who reads it, and what becomes of an offer that nobody takes.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/rget_bench.hpp"

using namespace rget_bench;

TEST_CASE("what a group waits for is offered to it, and it reads it: any counts, sizes and numbers of groups") {
    std::mt19937_64 random(Catch::rngSeed());
    for (int round = 0; round < 24; ++round) {
        const way by{round % 2 != 0, round / 2 % 2 != 0};
        const int receivers = 1 + static_cast<int>(random() % 3), threads = 2 + static_cast<int>(random() % 3),
                  groups = 1 + static_cast<int>(random() % 3);
        // Two of the sender's for three of ours, and the like.
        const int senders = 1 + static_cast<int>(random() % 4);
        const std::uint64_t bytes = 8 * static_cast<unsigned>(receivers) * (4 + random() % 12);
        bench b(of(senders, receivers, bytes, 1), by);
        CAPTURE(receivers, senders, threads, groups, bytes, by.prepares, by.maybe_inline);
        b.first_epoch();
        for (int e = 0; e < 4; ++e) {
            b.start();
            std::thread receiver = b.waiting(groups, threads, patience, MPI_SUCCESS, e % 2 == 0);
            // The first one is waited for at least: the others may come before they are.
            const overlap first = sender_partitions(b.pair.receiving(), e % 2 == 0 ? receivers - 1 : 0,
                                                    static_cast<std::uint64_t>(senders));
            b.until([&] { return b.pair.wanted(static_cast<int>(first.first)) == b.epoch; });
            const std::uint64_t read_before = b.pair.read();
            REQUIRE(b.ready(static_cast<int>(first.first)) == MPI_SUCCESS);
            // Again, which is an error, and may store it too: that tells nobody, so that who has asked reads it all the
            // same.
            const bool twice = !thread_sanitizer && senders > 1 && random() % 2 == 0;
            if (twice) CHECK(b.ready(static_cast<int>(first.first)) == MPI_ERR_ARG);
            for (int p = 0; p < senders; ++p)
                if (p != static_cast<int>(first.first)) REQUIRE(b.ready(p) == MPI_SUCCESS);
            b.finish(twice);
            receiver.join();
            CHECK(b.pair.read() > read_before);
        }
        CHECK(b.pair.refused() == 0);
        CHECK((b.prepared_members != 0) == by.prepares);
    }
}

TEST_CASE("what nobody waits for is stored, or left to the engine, by its size") {
    for (const std::uint64_t copy_engine_bytes : {0, 100, 300}) {
        pair_shape s = of(2, 2, 200, 72);
        s.copy_engine_bytes = copy_engine_bytes;
        bench b(s);
        for (int e = 0; e < 3; ++e) {
            b.start();
            for (int p = 0; p < 2; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
            CHECK(b.pair.sending()->defer_count == (copy_engine_bytes == 100 ? 2 * b.epoch : 0));
            b.finish();
        }
        CHECK(b.pair.read() + b.pair.refused() == 0);
    }
}

TEST_CASE("a sender that would not offer is not asked; one that would is, and for some epochs after") {
    bench b(of(1, 1, 192, 96), ways());
    // Pairs of threads have less than that for each; nothing is offered, and nobody asks, whoever waits for how long.
    const auto stored_by_two = [&](bool asked) {
        b.start();
        std::atomic<int> waiting{0};
        std::thread receiver([&] {
            mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
                const auto wait = b.waits(group);
                ++waiting;
                if (wait(group, 0, patience) != MPI_SUCCESS) b.failed = true;
            });
        });
        b.until([&] { return waiting == 2 && (!asked || b.all_wanted()); });
        for (int look = 0; !asked && look < 10; ++look) {
            b.failed = b.failed || b.pair.wanted(0) == b.epoch;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        mpix::host_launch(1, 3, [&](const mpix::host_group &group) {
            if (mpix::pready(group, 0, b.pair.send()) != MPI_SUCCESS) b.failed = true;
        });
        b.finish();
        receiver.join();
    };
    for (int e = 0; e < 3; ++e) stored_by_two(false);
    // A lone thread that stores it would have offered it, had somebody asked.
    b.start();
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    const std::uint64_t said = b.epoch;
    std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    b.finish();
    receiver.join();
    CHECK(b.pair.read() == 0);
    while (b.epoch < said + 8) stored_by_two(true);
    for (int e = 0; e < 3; ++e) stored_by_two(false);
    CHECK(b.pair.read() + b.pair.refused() + b.pair.deferred() == 0);
}

// A question that nobody reads or answers would leave the sender's epoch without an end.
TEST_CASE("a call that waits for nothing leaves no question: a handle of an older epoch, a send's") {
    const bool stale = GENERATE(true, false);
    bench b(of(1, 1, 192, 72), {stale, false});
    b.first_epoch();
    b.start();
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    b.finish();
    b.start();
    if (stale) {
        b.wait_by_old_handle();
    } else {
        store_relaxed(&b.pair.sending()->peer_partitions, 1);  // as an export has it
        ask_of_send(b.pair.sending());
        mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
            if (mpix::wait_arrived(group, inline_capable_send(b.pair.sending(), 1), 0, patience) != MPI_ERR_REQUEST)
                b.failed = true;
        });
    }
    CHECK(b.pair.wanted(0) != b.epoch);
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    b.until([&] { return b.pair.progress(b.epoch); });
    CHECK_FALSE(b.failed);
}

TEST_CASE("groups of more than 32 threads offer nothing; the copy engine may still move their partitions") {
    mpix_prequest r{};
    r.offload_bytes = r.rget_bytes = 100;
    for (const std::uint32_t copy_engine : {0u, 100u, 400u}) {
        r.copy_engine_bytes = copy_engine;
        for (const std::uint64_t threads : {std::uint64_t{1}, most_offering_threads})
            CHECK(offload_from(&r, threads) == r.offload_bytes);
        CHECK(offload_from(&r, most_offering_threads + 1) == copy_engine);
        // Of 100 bytes for each thread, which somebody has asked for.
        std::uint64_t wanted = 2;
        r.wanted = &wanted;
        for (const std::uint64_t threads : {std::uint64_t{1}, most_offering_threads, most_offering_threads + 1}) {
            r.partition_bytes = 100 * threads;
            const admission large = copy_engine == 100 ? admission::later : admission::now;
            CHECK(left_to(&r, 0, 2, threads) == (threads > most_offering_threads ? large : admission::rts));
        }
    }
}

TEST_CASE("what few threads have enough to do with is stored, though a group waits for it") {
    // A group of two has 96 bytes each.
    bench b(of(1, 1, 192, 100));
    b.first_epoch();
    b.start();
    std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    b.until([&] { return b.all_wanted(); });
    mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
        if (mpix::pready(group, 0, b.pair.send()) != MPI_SUCCESS) b.failed = true;
    });
    b.finish();
    receiver.join();
    CHECK(b.pair.sending()->defer_count == 0);
    CHECK(b.pair.wanted(0) == b.epoch);
    // One alone has more.
    b.start();
    receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    b.until([&] { return b.all_wanted(); });
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    b.finish();
    receiver.join();
    CHECK(b.pair.read() == 1);
}

TEST_CASE("who asked in the last epoch is waited for a while") {
    // As many looks as it takes to store all of the bytes, or for as long as a question takes.
    constexpr std::uint64_t least = 3, few = 5;
    for (const std::uint64_t most : {few, std::uint64_t{most_looks_for_question}}) {
        const std::uint64_t bytes = most == few ? few * least : 1000;
        for (const std::uint64_t epoch : {2, 7})
            for (const std::uint64_t before : {epoch, epoch - 1, std::uint64_t{0}})
                for (const std::uint64_t after : {std::uint64_t{0}, std::uint64_t{1}, most, most + 1}) {
                    std::uint64_t looks = 0;
                    const bool asked =
                        is_asked_for(epoch, bytes, least, [&] { return ++looks > after ? epoch : before; });
                    const bool at_once = before == epoch || after == 0, waited_for = before + 1 == epoch;
                    CAPTURE(most, epoch, before, after);
                    CHECK(asked == (at_once || (waited_for && after <= most)));
                    CHECK(looks == (at_once || !waited_for ? 1 : std::min(after, most) + 1));
                }
    }
    std::uint64_t looks = 0;
    CHECK_FALSE(is_asked_for(1, 1000, least, [&] { return looks++; }));  // 0, if anybody looked
    CHECK(looks == 0);
}

TEST_CASE("who does not read does not ask") {
    const way by = ways();
    std::uint64_t limit = patience, bytes = 192;
    int threads = 2, senders = 1;
    SECTION("a thread alone") { threads = 1; }
    SECTION("a group that waits for a moment") { limit = least_reading_ns / 2; }
    SECTION("a group with too much for each thread") { bytes = most_read_per_thread * 2 + 8; }
    SECTION("a group that waits for many of the sender's") { senders = most_read_partitions + 1, bytes = 80; }
    bench b(of(senders, 1, bytes), by);
    b.first_epoch();
    for (int e = 0; e < 2; ++e) {
        b.start();
        std::atomic<bool> over{false};
        std::thread receiver([&] {
            mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                const auto wait = b.waits(group);
                for (int code = MPI_ERR_PENDING; code == MPI_ERR_PENDING;) {
                    code = wait(group, 0, limit);
                    if (code != MPI_SUCCESS && (code != MPI_ERR_PENDING || limit == patience)) b.failed = true;
                }
            });
            over = true;
        });
        // It is in the call by then, or has been: what is looked at is that nothing is wanted whenever one looks.
        for (int look = 0; look < 20; ++look) {
            for (int p = 0; p < senders; ++p)
                if (b.pair.wanted(p) != 0) b.failed = true;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        for (int p = 0; p < senders; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
        b.until([&] { return over.load(); });
        receiver.join();
        b.finish();
    }
    CHECK(b.pair.sending()->defer_count == 0);
    CHECK(b.pair.answer(0) == 0);
}

TEST_CASE("who may come to read waits in that way, and who never does in another") {
    mpix_prequest r{};
    for (int mine = 1; mine <= 6; ++mine) {
        for (std::uint64_t senders = 1; senders <= 30; ++senders) {
            for (std::uint64_t bytes = 8; bytes <= 16 * most_read_per_thread; bytes *= 2) {
                // Of one of ours.
                r.partitions = mine;
                r.partition_bytes = senders * bytes;
                const std::uint64_t of_sender = static_cast<std::uint64_t>(mine) * bytes;
                for (const unsigned threads : {1u, 2u, 5u}) {
                    bool asks = false;
                    for (int j = 0; j < mine; ++j) {
                        const overlap range = sender_partitions(&r, j, senders);
                        const std::uint64_t count = range.last - range.first + 1;
                        asks = asks || (threads >= least_reading_threads && count <= most_read_partitions &&
                                        count * of_sender <= most_read_per_thread * threads);
                    }
                    CAPTURE(mine, senders, bytes, threads);
                    const bool may =
                        may_read(static_cast<std::uint64_t>(r.partitions), r.partition_bytes, senders, threads);
                    CHECK((may || !asks));
                    CHECK((!may || may_read(static_cast<std::uint64_t>(r.partitions), r.partition_bytes, 0, threads)));
                    // Where all of ours are of whole ones of the sender's, or all of these of ours, exactly.
                    if (senders % static_cast<std::uint64_t>(mine) == 0 ||
                        static_cast<std::uint64_t>(mine) % senders == 0)
                        CHECK(may == asks);
                }
            }
        }
    }
}

TEST_CASE("what comes inline is taken out by too few threads to do that at once, whoever else waits") {
    pair_shape s = of(2, 2, 72, 0);
    s.inline_buffer = true;
    s.sole = GENERATE(false, true);
    bench b(s, {GENERATE(false, true), false});
    for (int e = 0; e < 4; ++e) {
        b.start();
        std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
        mpix::host_launch(1, 4, [&](const mpix::host_group &group) {
            for (int p = 0; p < 2; ++p)
                if (mpix::pready(group, p, b.pair.send()) != MPI_SUCCESS) b.failed = true;
        });
        receiver.join();  // that the host hears of it behind the bytes is an order of time, see tell_taken
        b.finish();
    }
    CHECK(b.pair.sending()->defer_count == 0);
}

TEST_CASE("who ends its wait at the deadline answers for what it has asked for: the engine moves it") {
    std::mt19937_64 random(Catch::rngSeed());
    bench b(of(2, 1, 96), ways());
    b.first_epoch();
    for (int e = 0; e < 3; ++e) {
        b.start();
        // Who comes to it so late that little is left of its time does not ask.
        std::thread receiver;
        const auto answered = [&](int p) { return b.pair.answer(p) == 2 * b.epoch + 1; };
        for (std::uint64_t limit = 2 * least_reading_ns; !answered(0) || !answered(1); limit *= 4) {
            REQUIRE(limit < patience);
            receiver = b.waiting(1, 2, limit, MPI_ERR_PENDING);
            receiver.join();
        }
        for (int p = 0; p < 2; ++p) CHECK(b.pair.wanted(p) == 0);
        // Another group asks, and is offered it, but who has answered has answered.
        receiver = b.waiting(1, 3, patience, MPI_SUCCESS);
        b.until([&] { return b.all_wanted(); });
        for (int p = 0; p < 2; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
        b.finish();
        receiver.join();
        CHECK(b.pair.read() == 0);
        CHECK(b.pair.refused() == 2 * static_cast<unsigned>(e + 1));
    }
    // And in the next epoch it reads again.
    b.start();
    std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    b.until([&] { return b.all_wanted(); });
    for (int p = 0; p < 2; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
    b.finish();
    receiver.join();
    CHECK(b.pair.read() == 2);
}

TEST_CASE("an offer that meets the deadline is read or refused, never both and never neither") {
    std::mt19937_64 random(Catch::rngSeed());
    bench b(of(1, 1, 96), ways());
    b.first_epoch();
    const auto answers = [&] { return b.pair.read() + b.pair.refused(); };
    // Until it has met some: with more and more time, for beside others that want the cores threads are slow to begin.
    for (unsigned e = 0; e < 60 || (answers() == 0 && e < 600); ++e) {
        b.start();
        // Every other time there is somebody else who has asked, and stays.
        std::thread other;
        if (e % 2 == 0) {
            other = b.waiting(1, 2, patience, MPI_SUCCESS);
            b.until([&] { return b.pair.wanted(0) == b.epoch; });
        }
        const std::uint64_t limit = 4 * least_reading_ns + random() % (2'000'000 * (1 + e / 20));
        std::atomic<int> answered{-1};
        std::thread receiver([&] {
            mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
                const int code = b.waits(group)(group, 0, limit);
                if (group.thread_rank() == 0) answered = code;
            });
        });
        b.until([&] { return b.pair.wanted(0) == b.epoch || answered != -1; });
        const std::uint64_t end = now_ns() + random() % (limit + 1'000'000);
        while (now_ns() < end) give_way();
        REQUIRE(b.ready(0) == MPI_SUCCESS);
        b.finish();
        receiver.join();
        if (other.joinable()) other.join();
        CHECK((answered == MPI_SUCCESS || answered == MPI_ERR_PENDING));
    }
    CHECK(answers() != 0);
    CHECK((b.prepared_members != 0) == b.prepares);
}

TEST_CASE("what an earlier epoch has left is not taken for this one's") {
    bench b(of(2, 2, 96));
    b.first_epoch();
    b.start();
    std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
    b.until([&] { return b.pair.wanted(0) == b.epoch; });
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    b.until([&] { return b.pair.wanted(1) == b.epoch; });
    REQUIRE(b.ready(1) == MPI_SUCCESS);
    b.finish();
    receiver.join();
    CHECK(b.pair.read() == 2);
    // Nobody waits, though somebody did.
    b.start();
    for (int p = 0; p < 2; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
    CHECK(b.pair.flag(0) == b.epoch);
    CHECK(b.pair.sending()->defer_count == 2);
    b.finish();
    // Who waits reads nothing of what was offered before.
    b.start();
    receiver = b.waiting(1, 2, 2 * least_reading_ns, MPI_ERR_PENDING);
    receiver.join();
    for (int p = 0; p < 2; ++p) REQUIRE(b.ready(p) == MPI_SUCCESS);
    b.finish();
    CHECK(b.pair.read() == 2);
}

TEST_CASE("of two callers of a partition only who has claimed it flags it") {
    bench b(of(2, 1, 48, 40));  // one thread leaves it to others, two do not
    b.first_epoch();
    b.start();
    store_relaxed(b.pair.sending()->wanted, b.epoch);  // as a group that asks
    REQUIRE(b.ready(0) == MPI_SUCCESS);
    REQUIRE(b.pair.sending()->defer_count == 1);
    // These know that the epoch is open, and store at once.
    mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
        if (mpix::pready(group, 0, b.pair.send()) != MPI_ERR_ARG) b.failed = true;
    });
    CHECK_FALSE(b.failed);
    CHECK(b.pair.flag(0) < b.epoch);
    REQUIRE(b.ready(1) == MPI_SUCCESS);
    store_release(b.pair.receiving()->answers, 2 * b.epoch + 1);
    b.finish(true);
    CHECK(b.pair.refused() == 1);
}

TEST_CASE("of several partitions those are read that were offered in this epoch") {
    bench b(of(2, 1, 96), ways());
    b.first_epoch();
    for (int e = 0; e < 3; ++e) {
        b.start();
        std::thread receiver = b.waiting(1, 2, patience, MPI_SUCCESS);
        b.until([&] { return b.all_wanted(); });
        for (const int p : {1, 0}) {
            REQUIRE(b.ready(p) == MPI_SUCCESS);
            b.until([&] { return b.pair.answer(p) == 2 * b.epoch; });
            if (p == 1) CHECK(b.pair.flag(0) < b.epoch);
        }
        b.finish();
        receiver.join();
        CHECK(b.pair.read() == 2 * static_cast<unsigned>(e + 1));
    }
}

TEST_CASE("what is written just before the offer is read, and the buffer is free when the engine has its answer") {
    bench b(of(1, 1, 192));
    b.first_epoch();
    for (int e = 0; e < 20; ++e) {
        // Nothing but the offer orders the sender's bytes before their reading, and nothing but the answer orders that
        // before the next ones: ThreadSanitizer looks on.
        b.pair.poison_in();
        b.pair.start_receive(++b.epoch);
        b.pair.clear_to_send(b.epoch);
        std::vector<char> received(192);
        std::thread receiver([&] {
            mpix::host_launch(1, 3, [&](const mpix::host_group &group) {
                if (mpix::wait_arrived(group, b.pair.receive(), 0, patience) != MPI_SUCCESS) b.failed = true;
                if (group.thread_rank() == 2) std::memcpy(received.data(), b.pair.receiving()->buffer, received.size());
            });
        });
        b.until([&] { return b.all_wanted(); });
        b.pair.start_send(b.epoch);
        b.pair.fill_out(b.random);
        const std::vector<char> sent(b.pair.sending()->buffer, b.pair.sending()->buffer + 192);
        REQUIRE(b.ready(0) == MPI_SUCCESS);
        b.until([&] { return b.pair.progress(b.epoch); });
        b.pair.fill_out(b.random);
        receiver.join();
        CHECK_FALSE(b.failed);
        CHECK(received == sent);
        b.pair.end(b.epoch);
    }
    CHECK(b.pair.read() == 20);
}
