// SPDX-License-Identifier: BSD-3-Clause
//
// Small puts and words as messages: every byte is where it was put, words are behind what was put before them whatever
// order the messages come in, and nothing is stored that is malformed or not exposed.
#include "transport/ucx/eager.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "transport/ucx/lanes.h"

using namespace mpix::transport;
using mpix::status;
using ucx::eager_head;
using ucx::eager_inbox;
using ucx::eager_kind;
using ucx::eager_outbox;
using ucx::eager_record;

namespace {

using message = std::vector<std::uint8_t>;

constexpr std::size_t room = 4096;
constexpr std::uint8_t poison = 0xa5;

// Memory of ours of which the middle is exposed.
struct memory {
    std::vector<std::uint64_t> words = std::vector<std::uint64_t>(3 * room / 8, 0xa5a5a5a5a5a5a5a5u);
    std::uint8_t *all() { return reinterpret_cast<std::uint8_t *>(words.data()); }
    std::uint8_t *exposed() { return all() + room; }
    std::uint64_t at(std::size_t offset) { return reinterpret_cast<std::uint64_t>(exposed() + offset); }
    eager_inbox::exposed covers = [this](std::uint64_t address, std::uint64_t bytes) {
        const std::uint64_t offset = address - at(0);
        return offset <= room && bytes <= room - offset;
    };
    bool others_untouched() {
        const auto poisoned = [](std::uint8_t b) { return b == poison; };
        return std::all_of(all(), all() + room, poisoned) && std::all_of(all() + 2 * room, all() + 3 * room, poisoned);
    }
    bool untouched() {
        return others_untouched() &&
               std::all_of(exposed(), exposed() + room, [](std::uint8_t b) { return b == poison; });
    }
};

// As it arrives.
message joined(const ucx::eager_parts &parts) {
    message m = parts.before;
    const auto *const body = static_cast<const std::uint8_t *>(parts.body);
    m.insert(m.end(), body, body + parts.body_bytes);
    m.insert(m.end(), parts.behind.begin(), parts.behind.end());
    return m;
}

status deliver(eager_inbox &in, const message &m, memory &to) { return in.arrive(m.data(), m.size(), to.covers); }

// A message of one record, however wrong.
message of(std::uint64_t number, eager_record record, std::size_t bytes) {
    message m(sizeof(eager_head) + sizeof record + bytes, 0x11);
    const eager_head head{7, number};
    std::memcpy(m.data(), &head, sizeof head);
    std::memcpy(m.data() + sizeof head, &record, sizeof record);
    return m;
}
constexpr auto kind = [](eager_kind k) { return static_cast<std::uint32_t>(k); };

}  // namespace

TEST_CASE("what is put is stored, byte for byte, and nothing beside it") {
    std::mt19937_64 random{std::random_device{}()};
    for (int round = 0; round < 200; ++round) {
        memory m;
        eager_outbox out;
        eager_inbox in;
        std::vector<std::uint8_t> expected(room, poison);
        CHECK(out.empty());
        const auto puts = random() % 8 + 1;
        for (std::uint64_t i = 0; i < puts; ++i) {
            const std::size_t bytes = random() % 300, offset = random() % (room - bytes + 1);
            std::vector<std::uint8_t> data(bytes);
            for (auto &b : data) b = static_cast<std::uint8_t>(random());
            REQUIRE(out.has_room(bytes));
            out.put(m.at(offset), data.data(), bytes);
            std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
        }
        CHECK_FALSE(out.empty());
        CHECK(m.untouched());
        const message sent = joined(out.take(3));
        CHECK(out.empty());
        eager_head head;
        std::memcpy(&head, sent.data(), sizeof head);
        CHECK((head.sender == 3 && head.number == 0 && out.storing() == 1));
        REQUIRE(deliver(in, sent, m).ok());
        CHECK(std::equal(expected.begin(), expected.end(), m.exposed()));
        CHECK(m.others_untouched());
    }
}

TEST_CASE("a message has as much room as it says") {
    eager_outbox out;
    CHECK(out.has_room(eager_outbox::message_bytes - sizeof(eager_record)));
    CHECK_FALSE(out.has_room(eager_outbox::message_bytes));
    const std::vector<std::uint8_t> large(3 * eager_outbox::message_bytes);
    out.set_message_bytes(eager_outbox::message_bytes_over_tcp);
    CHECK(out.has_room(eager_outbox::message_bytes_over_tcp - sizeof(eager_record)));
    CHECK_FALSE(out.has_room(eager_outbox::message_bytes_over_tcp));
    out.put(0x1000, large.data(), large.size());
    CHECK(out.has_room(eager_outbox::message_bytes));
    out.set_message_bytes(eager_outbox::message_bytes);
    CHECK_FALSE(out.has_room(0));
    CHECK(joined(out.take(0)).size() == sizeof(eager_head) + sizeof(eager_record) + large.size());
}

TEST_CASE("a body stays where it is until the message is taken, and what is put behind it comes behind it") {
    std::mt19937_64 random{std::random_device{}()};
    for (int round = 0; round < 200; ++round) {
        memory m;
        eager_outbox out;
        eager_inbox in;
        const std::size_t bytes = random() % 2000 + 1, at = 64 + random() % 100;
        std::vector<std::uint8_t> body(bytes);
        const std::uint64_t word = random();
        if (random() % 2 == 0) out.put_word(m.at(0), word);
        CHECK_FALSE(out.has_body());
        out.put_in_place(m.at(at), body.data(), bytes);
        CHECK((out.has_body() && !out.empty()));
        if (random() % 2 == 0) out.put_word(m.at(8), word + 1);
        for (auto &b : body) b = static_cast<std::uint8_t>(random());  // after it was put
        const message sent = joined(out.take(0));
        CHECK((out.empty() && !out.has_body() && out.storing() == 1));
        REQUIRE(deliver(in, sent, m).ok());
        CHECK(std::equal(body.begin(), body.end(), m.exposed() + at));
        CHECK((m.exposed()[at - 1] == poison && m.exposed()[at + bytes] == poison));
        CHECK(m.others_untouched());
        // The next one has none.
        out.put_word(m.at(16), word);
        REQUIRE(deliver(in, joined(out.take(0)), m).ok());
        CHECK(std::memcmp(m.exposed() + 16, &word, sizeof word) == 0);
    }
}

TEST_CASE("what goes over TCP only is known from UCX's description") {
    const std::string head = "#\n# UCP endpoint \n#\n#               peer: <no debug data>\n";
    const std::string tcp =
        "#                 lane[0]:  1:tcp/eth0.0 md[1]  -> md[1]/tcp/sysdev[255] am am_bw#0 wireup\n";
    const std::string second = "#                 lane[1]: 12:tcp/eth1.0 md[1]  -> md[1]/tcp/sysdev[255] am_bw#1\n";
    const std::string rc =
        "#                 lane[1]:  5:rc_mlx5/mlx5_0:1.0 md[4] -> addr[0].md[4]/ib/sysdev[2] rma_bw#0\n";
    CHECK(ucx::lanes_are_tcp(head + tcp));
    CHECK(ucx::lanes_are_tcp(head + tcp + second));
    CHECK_FALSE(ucx::lanes_are_tcp(head + tcp + rc));
    CHECK_FALSE(ucx::lanes_are_tcp(head + rc + tcp));
    CHECK_FALSE(ucx::lanes_are_tcp(head));
    CHECK_FALSE(ucx::lanes_are_tcp(""));
    CHECK_FALSE(ucx::lanes_are_tcp("lane["));
    CHECK_FALSE(ucx::lanes_are_tcp("lane[0]: 1:"));
}

TEST_CASE("messages are applied in their order, whatever order they come in") {
    std::mt19937_64 random{std::random_device{}()};
    for (int round = 0; round < 300; ++round) {
        memory m;
        eager_outbox out;
        eager_inbox in;
        // Message i has byte i, and behind it the word: so many have been put. And once, a question.
        constexpr std::size_t count = 24;
        std::vector<message> messages;
        for (std::size_t i = 0; i < count; ++i) {
            const auto byte = static_cast<std::uint8_t>(i);
            out.put(m.at(8 + i), &byte, 1);
            out.put_word(m.at(0), i + 1);
            if (i == 9) out.ask(9);
            messages.push_back(joined(out.take(0)));
        }
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        std::vector<bool> here(count, false);
        std::memset(m.exposed(), 0, 8);
        bool asked = false;
        for (const std::size_t i : order) {
            REQUIRE(deliver(in, messages[i], m).ok());
            here[i] = true;
            const auto first_missing =
                static_cast<std::size_t>(std::find(here.begin(), here.end(), false) - here.begin());
            std::uint64_t word;
            std::memcpy(&word, m.exposed(), sizeof word);
            CHECK(word == first_missing);
            for (std::size_t j = 0; j < count; ++j)
                CHECK(m.exposed()[8 + j] == (j < first_missing ? static_cast<std::uint8_t>(j) : poison));
            const std::uint64_t question = in.take_question();
            CHECK(question == (first_missing >= 10 && !asked ? 9u : 0u));
            asked |= question != 0;
            CHECK_FALSE(in.asks());
            // Each of them once, early or not.
            CHECK(deliver(in, messages[i], m).message() == "a message that has been there before");
        }
    }
}

TEST_CASE("an answer is known where the question was asked; an older one changes nothing") {
    memory m;
    eager_outbox out;
    eager_inbox in;
    CHECK(in.answered() == 0);
    out.answer(5);
    REQUIRE(deliver(in, joined(out.take(0)), m).ok());
    CHECK(in.answered() == 5);
    out.answer(4);
    REQUIRE(deliver(in, joined(out.take(0)), m).ok());
    CHECK(in.answered() == 5);
    // None of that has to be confirmed itself.
    CHECK(out.storing() == 0);
    out.ask(2);
    out.put_word(m.at(0), 1);
    CHECK(out.storing() == 0);
    static_cast<void>(out.take(0));
    CHECK(out.storing() == 3);
    out.ask(3);
    static_cast<void>(out.take(0));
    CHECK(out.storing() == 3);
    CHECK(m.untouched());
}

TEST_CASE("what is malformed or not exposed is refused, and not stored") {
    memory m;
    const auto refused = [&m](const message &what) {
        eager_inbox in;
        const status bad = deliver(in, what, m);
        CHECK(m.untouched());
        return bad.message();
    };
    const char *const elsewhere = "a message for memory that is not exposed to it";
    CHECK(refused(of(0, {m.at(0) - 1, 8, kind(eager_kind::bytes)}, 8)) == elsewhere);
    CHECK(refused(of(0, {m.at(room - 7), 8, kind(eager_kind::bytes)}, 8)) == elsewhere);
    CHECK(refused(of(0, {m.at(0) - 8, 8, kind(eager_kind::word)}, 8)) == elsewhere);
    CHECK(refused(of(0, {m.at(room), 8, kind(eager_kind::word)}, 8)) == elsewhere);
    CHECK(refused(of(0, {m.at(4), 8, kind(eager_kind::word)}, 8)) == "a word that is none");
    CHECK(refused(of(0, {m.at(0), 16, kind(eager_kind::word)}, 16)) == "a word that is none");
    CHECK(refused(of(0, {m.at(0), 0, kind(eager_kind::word)}, 0)) == "a word that is none");
    CHECK(refused(of(0, {m.at(0), 8, 0}, 8)) == "a record of an unknown kind");
    CHECK(refused(of(0, {m.at(0), 8, 99}, 8)) == "a record of an unknown kind");
    CHECK(refused(of(0, {m.at(0), 0xffffffffu, kind(eager_kind::bytes)}, 64)) == "a message that ends in a record");

    // Cut off anywhere: the first record is there or it is not, the second never is.
    eager_outbox out;
    const std::uint64_t data[2] = {0x0123456789abcdef, 0xfedcba9876543210};
    out.put(m.at(64), data, 16);
    out.put_word(m.at(0), 1);
    const message whole = joined(out.take(0));
    const std::size_t first_end = sizeof(eager_head) + sizeof(eager_record) + 16;
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        INFO("cut off behind " << bytes << " bytes");
        memory to;
        // The same message for this memory.
        message cut = whole;
        const std::uint64_t moved[2] = {to.at(64), to.at(0)};
        std::memcpy(cut.data() + sizeof(eager_head), &moved[0], 8);
        std::memcpy(cut.data() + first_end, &moved[1], 8);
        cut.resize(bytes);
        eager_inbox in;
        const bool good = deliver(in, cut, to).ok();
        CHECK(good == (bytes == sizeof(eager_head) || bytes == first_end));
        CHECK((std::memcmp(to.exposed() + 64, data, 16) == 0) == (bytes >= first_end));
        CHECK(std::all_of(to.exposed(), to.exposed() + 64, [](std::uint8_t b) { return b == poison; }));
        CHECK(to.others_untouched());
    }
}
