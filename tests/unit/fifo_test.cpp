// SPDX-License-Identifier: BSD-3-Clause
//
// Control messages within a node: none is lost, doubled or overtaken by a later one of its sender, and what another
// process writes into an inbox does no harm.
#include "host/control/fifo.h"

#include <mpix/detail/give_way.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix;

namespace {

struct shared_inbox {
    explicit shared_inbox(std::size_t count) : senders(count) {
        const std::size_t bytes = inbox_bytes(senders);
        memory.reset(new (std::align_val_t{64}) char[bytes]());
        inbox.open(memory.get(), senders);
    }
    struct aligned_delete {
        void operator()(char *p) const { ::operator delete[](p, std::align_val_t{64}); }
    };
    std::size_t senders;
    std::unique_ptr<char[], aligned_delete> memory;
    control_inbox inbox;
    control_outbox outbox(std::size_t sender) { return {memory.get(), senders, sender}; }
};

// The bytes of the message that a sender puts as its nth, all of them.
control_packet message(std::size_t sender, std::uint64_t n) {
    control_packet m;
    std::mt19937_64 random(sender * 1000003 + n);
    const std::size_t end = random() % (sizeof m + 1);  // zeros behind it
    std::memset(static_cast<void *>(&m), 0, sizeof m);
    for (std::size_t i = 0; i < end; ++i) m.bytes[i] = static_cast<std::byte>(random());
    return m;
}

bool same(const control_packet &a, const control_packet &b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST_CASE("messages come as they were put, each sender's in its order") {
    // More senders than bits in a word; the last word is not full.
    const std::size_t senders = GENERATE(1, 2, 64, 65, 130);
    shared_inbox s(senders);
    std::size_t from = 99;
    control_packet got;
    CHECK_FALSE(s.inbox.receive(from, got));
    std::vector<control_outbox> outboxes;
    for (std::size_t i = 0; i < senders; ++i) outboxes.push_back(s.outbox(i));
    for (std::uint64_t n = 0; n < 3 * fifo_slots(senders); n += 4) {
        for (std::uint64_t k = n; k < n + 4; ++k)
            for (std::size_t i = 0; i < senders; ++i) REQUIRE(outboxes[i].put(message(i, k)));
        std::vector<std::uint64_t> next(senders, n);
        for (std::size_t count = 0; count < 4 * senders; ++count) {
            std::memset(static_cast<void *>(&got), 0x5a, sizeof got);
            REQUIRE(s.inbox.receive(from, got));
            REQUIRE(from < senders);
            REQUIRE(same(got, message(from, next[from]++)));
        }
        CHECK_FALSE(s.inbox.receive(from, got));
    }
}

TEST_CASE("a full FIFO takes no more until a message has been received, and overwrites none") {
    const std::size_t senders = GENERATE(3, 200);
    const std::uint64_t slots = fifo_slots(senders);
    shared_inbox s(senders);
    control_outbox one = s.outbox(1), two = s.outbox(2);
    for (std::uint64_t n = 0; n < slots; ++n) REQUIRE(one.put(message(1, n)));
    CHECK_FALSE(one.put(message(1, slots)));
    CHECK(two.put(message(2, 0)));  // another's is not
    std::size_t from;
    control_packet got;
    REQUIRE(s.inbox.receive(from, got));
    CHECK(from == 1);
    CHECK(same(got, message(1, 0)));
    CHECK(one.put(message(1, slots)));
    CHECK_FALSE(one.put(message(1, slots + 1)));
    for (std::uint64_t n = 1; n <= slots; ++n) {
        REQUIRE(s.inbox.receive(from, got));
        CHECK(from == 1);
        CHECK(same(got, message(1, n)));
    }
    REQUIRE(s.inbox.receive(from, got));
    CHECK(from == 2);
    CHECK_FALSE(s.inbox.receive(from, got));
}

TEST_CASE("a FIFO of few processes has room for many messages, and the inbox of many processes is small") {
    for (const std::size_t senders : {1, 2, 8}) CHECK(fifo_slots(senders) == 128);
    for (std::size_t senders = 1; senders <= 2000; ++senders) {
        CHECK(fifo_slots(senders) >= 8);
        CHECK((fifo_slots(senders) == 8 || inbox_bytes(senders) <= (1u << 20) + 192 * senders));
    }
}

TEST_CASE("whatever another process has written to an inbox, receiving stays within it and ends") {
    const std::size_t senders = 70;
    shared_inbox s(senders);
    std::mt19937_64 random(20261126);
    for (int round = 0; round < 200; ++round) {
        const std::size_t bytes = inbox_bytes(senders);
        for (int k = 0; k < 64; ++k) s.memory[random() % bytes] = static_cast<char>(random());
        for (std::size_t i = 0; i < 16; ++i) s.memory[i] = static_cast<char>(random());  // bits beyond the senders, too
        std::size_t from, times = 0;
        control_packet got;
        while (s.inbox.receive(from, got)) {
            REQUIRE(from < senders);
            REQUIRE(++times <= senders * fifo_slots(senders));
        }
    }
}

TEST_CASE("senders put while the receiver takes") {
    constexpr std::size_t senders = 3;
    constexpr std::uint64_t count = 2000;
    shared_inbox s(senders);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < senders; ++i)
        threads.emplace_back([&s, i] {
            control_outbox outbox = s.outbox(i);
            for (std::uint64_t n = 0; n < count; ++n)
                while (!outbox.put(message(i, n))) mpix::detail::give_way();
        });
    std::vector<std::uint64_t> next(senders, 0);
    std::uint64_t wrong = 0;
    for (std::uint64_t received = 0; received < senders * count;) {
        std::size_t from;
        control_packet got;
        if (!s.inbox.receive(from, got)) {
            mpix::detail::give_way();
            continue;
        }
        wrong += !same(got, message(from, next[from]++));
        ++received;
    }
    for (std::thread &t : threads) t.join();
    CHECK(wrong == 0);
    CHECK(next == std::vector<std::uint64_t>(senders, count));
}
