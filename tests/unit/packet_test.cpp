// SPDX-License-Identifier: BSD-3-Clause
//
// The inline buffer's packets, and who takes them: groups of host threads on both sides, as groups of GPU threads do
// it.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/packet_pair.hpp"

namespace {

// By wait_arrived's clock.
std::uint64_t in(std::uint64_t ns) { return mpix::detail::now_ns() + ns; }

// What a member of a group was told: the leader the epoch, the others only whether something was stored.
bool as_it_should(const mpix::host_group &group, std::uint64_t told, std::uint64_t epoch) {
    return group.thread_rank() == 0 ? told == epoch : (told != 0) == (epoch != 0);
}

}  // namespace

TEST_CASE("groups of any size, partitions of any size and alignment, several groups that want the same") {
    std::mt19937_64 random(Catch::rngSeed());
    for (int round = 0; round < 40; ++round) {
        const int common = 1 + static_cast<int>(random() % 3);
        const int senders = common * (1 + static_cast<int>(random() % 3));
        const std::uint64_t bytes = 1 + random() % (round % 2 == 0 ? 64 : 3000);
        pair_of_requests r(senders, common, bytes, static_cast<unsigned>(random() % 16),
                           static_cast<unsigned>(random() % 16));
        const int threads = 1 + static_cast<int>(random() % 5), takers = 1 + static_cast<int>(random() % 3);
        CAPTURE(senders, common, bytes, threads, takers);
        for (std::uint64_t epoch = 2; epoch < 6; ++epoch) {
            // The tag is the epoch's low half.
            const std::uint64_t e = epoch + (round % 3 == 0 ? 0xfffffff0u : 0);
            r.begin(e, random);
            const bool once = random() % 2 == 0, looked = random() % 2 == 0;
            using mpix::detail::waiters;
            const waiters waiting = takers == 1 && random() % 2 == 0 ? waiters::sole : waiters::any;
            const bool at_once = random() % 2 == 0;
            std::atomic<bool> good{true};
            std::thread receiver([&] {
                mpix::host_launch(takers, threads, [&](const mpix::host_group &group) {
                    for (int j = 0; j < common; ++j) {
                        mpix::detail::claimed_question question{};
                        bool there =
                            at_once &&
                            mpix::detail::wait_inline_fast<false>(
                                group, mpix::detail::inline_capable_receive(r.receive, waiting == waiters::sole, 1), j,
                                {}, mpix::default_timeout, question) == MPI_SUCCESS;
                        while (!there) {
                            there =
                                mpix::detail::await_together(group, r.receive, j, waiting, looked, in(20'000'000'000u),
                                                             once) == mpix::detail::waited::there;
                            if (!there && !once) {
                                good = false;
                                break;
                            }
                        }
                    }
                });
            });
            mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                for (int p = 0; p < senders; ++p) {
                    const bool fits = mpix::detail::in_words(r.send->buffer, bytes) &&
                                      mpix::detail::least_inline_threads(bytes) <= static_cast<std::uint64_t>(threads);
                    const mpix::detail::stored sent = mpix::detail::store_small<false>(group, r.send, p, {});
                    if (!as_it_should(group, sent.epoch, fits ? e : 0) || sent.sent_inline != fits) good = false;
                    if (sent.epoch == 0)
                        mpix::detail::store_packets<false>(r.send, p, static_cast<unsigned>(group.thread_rank()),
                                                           static_cast<unsigned>(threads));
                }
            });
            receiver.join();
            REQUIRE(good);
            REQUIRE(r.right());
            for (int p = 0; p < senders; ++p) {
                REQUIRE(r.receive->flags[p] == e);
                REQUIRE(r.told[static_cast<std::size_t>(p)] == e);
            }
        }
    }
}

TEST_CASE("at once only in a running epoch of which the host has been asked, and for a partition that there is") {
    std::mt19937_64 random(Catch::rngSeed());
    pair_of_requests r(2, 2, 16, 0, 0);
    // The vector's memory may not be aligned to words of eight.
    REQUIRE(mpix::detail::in_words(r.send->buffer, 16));
    const mpix::thread_group self;
    const auto sent = [&](int p) {
        const mpix::detail::stored s = mpix::detail::store_small<false>(self, r.send, p, {});
        CHECK(s.sent_inline == (s.epoch != 0));
        return s.epoch;
    };
    r.begin(5, random);
    CHECK(sent(0) == 5);
    CHECK(sent(-1) == 0);
    CHECK(sent(2) == 0);
    r.send->ready_count = 10;  // all of epoch 5
    CHECK(sent(0) == 0);
    r.begin(1, random);
    CHECK(sent(0) == 0);
    r.begin(7, random);
    char *const inline_buffer = r.send->inline_buffer;
    r.send->inline_buffer = nullptr;
    CHECK(sent(1) == 0);
    r.send->inline_buffer = inline_buffer;
    CHECK(sent(1) == 7);
}

TEST_CASE("at once to the receive buffer, where there is no inline buffer, or it is not used") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const std::uint64_t bytes : {8, 16, 32, 48, 64, 128, 256, 1008}) {
        for (const unsigned skew : {0u, 8u, 4u}) {
            for (const int threads : {1, 2, 5}) {
                pair_of_requests r(3, 3, bytes, skew, skew);
                r.send->landing = r.receive->buffer;
                r.send->flags = r.receive->flags;
                const auto odd = reinterpret_cast<std::uint64_t>(r.send->buffer) |
                                 reinterpret_cast<std::uint64_t>(r.receive->buffer) | bytes;
                const bool words = odd % 8 == 0 && bytes <= 32u * static_cast<unsigned>(threads), pairs = odd % 16 == 0;
                CAPTURE(bytes, skew, threads, words, pairs);
                for (const bool by_words : {true, false}) {
                    const std::uint64_t e = by_words ? 4 : 5;
                    const bool fits = by_words ? words : pairs;
                    const auto store = [&](const mpix::host_group &group, int p) {
                        const mpix::detail::stored s = by_words ? mpix::detail::store_small<false>(group, r.send, p, {})
                                                                : mpix::detail::store_direct(group, r.send, p);
                        return s.sent_inline ? ~std::uint64_t{0} : s.epoch;
                    };
                    std::atomic<bool> good{true};
                    const auto all = [&](std::uint64_t expected) {
                        mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                            for (int p = -1; p < 4; ++p)
                                if (!as_it_should(group, store(group, p), p < 0 || p > 2 ? 0 : expected)) good = false;
                        });
                    };
                    r.begin(e, random);
                    r.send->open_word = 2 * e;
                    r.send->ready_count = 3 * e;  // all are ready
                    all(0);
                    CHECK_FALSE(r.right());
                    r.send->ready_count = 3 * e - 1;
                    r.send->open_word = 2;  // the first epoch
                    all(0);
                    r.send->open_word = 2 * e;
                    const auto bare = reinterpret_cast<std::uint64_t>(r.receive->flags);
                    r.send->flags = reinterpret_cast<std::uint64_t *>(bare | MPIX_FLAGS_WITH_LAYOUTS);
                    all(0);
                    r.send->flags = r.receive->flags;
                    if (!by_words) {  // others move as much, but not more than there is
                        const auto each = static_cast<std::uint32_t>(bytes / static_cast<unsigned>(threads));
                        r.send->offload_bytes = r.send->copy_engine_bytes = each;
                        all(0);
                        r.send->offload_bytes = r.send->copy_engine_bytes = each + 1;
                    }
                    CHECK_FALSE(r.right());
                    all(fits ? e : 0);
                    CHECK(good);
                    CHECK(r.right() == fits);
                }
            }
        }
    }
}

TEST_CASE("all threads of a large group go the same way, by a handle too, with an inline buffer or without") {
    std::mt19937_64 random(Catch::rngSeed());
    constexpr int threads = 40;  // more than a warp: most have no packet
    // Clear-to-send as it was known before; or given by a kernel for this epoch, with packets or without; or not yet.
    enum class clear { known, for_packets, given, missing };
    for (const bool has_inline_buffer : {true, false}) {
        for (const auto &[known_epoch, how] : std::vector<std::pair<std::uint64_t, clear>>{{0, clear::known},
                                                                                           {3, clear::known},
                                                                                           {3, clear::for_packets},
                                                                                           {3, clear::given},
                                                                                           {3, clear::missing}}) {
            const std::uint64_t clear_to_send = how == clear::for_packets ? 7 : how == clear::given ? 6 : 5;
            pair_of_requests r(3, 3, 64, 0, 0);
            r.send->landing = r.receive->buffer;
            r.send->flags = r.receive->flags;
            r.begin(3, random);
            const mpix::detail::send_state known{known_epoch,
                                                 r.send->buffer,
                                                 has_inline_buffer ? r.send->inline_buffer : nullptr,
                                                 r.send->landing,
                                                 r.send->flags,
                                                 &clear_to_send,
                                                 64,
                                                 0,
                                                 3,
                                                 mpix::detail::in_words(r.send->buffer, 64),
                                                 how == clear::known};
            const bool stores = known_epoch != 0 && how != clear::missing,
                       packets = stores && has_inline_buffer && how != clear::given;
            CAPTURE(has_inline_buffer, known_epoch, clear_to_send);
            REQUIRE(known.in_words);
            std::atomic<int> inline_members{0}, members{0};
            mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
                for (int p = 0; p < 4; ++p) {
                    const mpix::detail::stored s = mpix::detail::store_small<true>(group, r.send, p, known);
                    if (s.epoch == 0) continue;
                    ++members;
                    inline_members += s.sent_inline ? 1 : 0;
                }
            });
            CHECK(members == (stores ? 3 * threads : 0));
            CHECK(inline_members == (packets ? members.load() : 0));
            CHECK(r.right() == (stores && !packets));
        }
    }
}

TEST_CASE("what came another way, what never comes, and what does not come in time") {
    std::mt19937_64 random(Catch::rngSeed());
    pair_of_requests r(1, 1, 24, 0, 0);
    const auto take = [&](std::uint64_t limit_ns, bool once) {
        return mpix::detail::await_together(mpix::thread_group{}, r.receive, 0, mpix::detail::waiters::any, true,
                                            limit_ns == 0 ? ~std::uint64_t{0} : in(limit_ns),
                                            once) == mpix::detail::waited::there;
    };
    r.begin(2, random);
    CHECK(!take(0, true));
    CHECK(!take(1'000'000, false));
    CHECK(r.receive->taken[0] < 3);  // another may
    SECTION("two lines of three are not enough") {
        mpix::detail::store_packet(r.receive->inline_buffer, 0, 2, 1);
        mpix::detail::store_packet(r.receive->inline_buffer, 2, 2, 3);
        CHECK(!take(0, true));
        CHECK(r.receive->flags[0] == 0);
        mpix::detail::store_packet(r.receive->inline_buffer, 1, 2, 2);
        CHECK(take(0, true));
        const std::uint64_t expected[] = {1, 2, 3};
        CHECK(std::memcmp(r.receive->buffer, expected, sizeof expected) == 0);
    }
    SECTION("the flag alone") {
        std::thread engine([&] { mpix::detail::store_release(&r.receive->flags[0], 2); });
        CHECK(take(20'000'000'000u, false));
        engine.join();
        CHECK(r.receive->buffer[0] == 0x5a);  // nothing was copied
        CHECK(take(0, true));
    }
    SECTION("an epoch long gone") {
        mpix::detail::store_packet(r.receive->inline_buffer, 0, 1, 1);
        mpix::detail::store_packet(r.receive->inline_buffer, 1, 1, 1);
        mpix::detail::store_packet(r.receive->inline_buffer, 2, 1, 1);
        CHECK(!take(0, true));
    }
    SECTION("the peer has ended") {
        r.receive->flags[1] = MPIX_NEVER;
        CHECK(!take(0, false));  // without a limit
    }
    SECTION("the match is undone") {
        std::uint64_t others[2] = {0, 0};
        mpix::detail::awaited w{};
        w.senders = 1;
        w.flags = r.receive->flags;
        w.deadline = ~std::uint64_t{0};
        CHECK(!w.over(r.receive));
        r.receive->flags = others;
        CHECK(w.over(r.receive));
        r.receive->flags = nullptr;
        CHECK(!take(0, false));
    }
    SECTION("the match is undone, and all of the route with it, while a group has set about the inline partition") {
        const std::uint64_t *const taken = r.receive->taken;
        std::thread host([&] {
            for (backoff wait; mpix::detail::load_relaxed(taken) != 3;) wait.pause();
            mpix::detail::store_pointer(&r.receive->taken, static_cast<std::uint64_t *>(nullptr));
            mpix::detail::store_pointer(&r.receive->told, static_cast<std::uint64_t *>(nullptr));
            mpix::detail::store_pointer(&r.receive->inline_buffer, static_cast<char *>(nullptr));
            mpix::detail::store_pointer(&r.receive->flags, static_cast<std::uint64_t *>(nullptr));
        });
        CHECK(!take(0, false));  // without a limit
        host.join();
        CHECK(*taken == 2);
    }
    SECTION("who gives up takes no later claim back") {
        std::thread others([&] {
            for (backoff wait; mpix::detail::load_relaxed(r.receive->taken) != 3;) wait.pause();
            mpix::detail::fetch_max_relaxed_gpu(r.receive->taken, 5);
            mpix::detail::store_release(&r.receive->flags[1], MPIX_NEVER);
        });
        CHECK(!take(0, false));
        others.join();
        CHECK(r.receive->taken[0] == 5);
    }
    SECTION("an epoch that the tag cannot say goes by the flag") {
        const std::uint64_t e = (std::uint64_t{1} << 32) + 2;
        r.begin(e, random);
        for (std::uint64_t packet = 0; packet < 3; ++packet)
            mpix::detail::store_packet(r.receive->inline_buffer, packet, e, 1);
        CHECK(!take(0, true));
        mpix::detail::store_release(&r.receive->flags[0], e);
        CHECK(take(0, true));
    }
    SECTION("it is taken once: what its taker wrote there stays") {
        mpix::detail::store_packets<false>(r.send, 0, 0, 1);
        CHECK(take(0, true));
        r.receive->buffer[0] = static_cast<char>(~r.send->buffer[0]);
        CHECK(take(0, true));
        CHECK(r.receive->buffer[0] == static_cast<char>(~r.send->buffer[0]));
    }
}
