// SPDX-License-Identifier: BSD-3-Clause
//
// Control messages are what they were when they are decoded; and what is refused of one before anybody acts on it.
#include "host/control/message.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix;

namespace {

transport::wire_region region(unsigned char filled_with) {
    transport::wire_region r;
    std::memset(&r, filled_with, sizeof r);
    return r;
}

control_text text(const char *sentence) {
    control_text t;
    t.assign(sentence);
    return t;
}

// A good one, every field of which has another value.
template <class Body>
control_message good();
template <>
control_message good<offer_body>() {
    return {.from = 11,
            .body = offer_body{.communicator = 5,
                               .tag = 3,
                               .partitions = 6,
                               .bytes = 240,
                               .flags = {63},
                               .words = region(1),
                               .send_buffer = region(2),
                               .kernel_words = region(3),
                               .no_network = text("no network")}};
}
template <>
control_message good<accept_body>() {
    return {.from = 11,
            .to = 12,
            .body = accept_body{.refusal = refused_not,
                                .partitions = 6,
                                .bytes = 240,
                                .slots = 2,
                                .flags = {static_cast<std::uint32_t>(accept_flag::in_chunks)},
                                .words = region(1),
                                .landing = region(2),
                                .arrival = region(3),
                                .landing_supplement = region(4),
                                .reason = text("none")}};
}
template <>
control_message good<connect_body>() {
    return {.from = 11, .to = 12, .body = connect_body{.refusal = refused_path, .reason = text("no path")}};
}
template <>
control_message good<started_body>() {
    return {.from = 11, .body = started_body{}};
}
template <>
control_message good<withdraw_body>() {
    return {.from = 11, .to = 12, .body = withdraw_body{.by = pair_side::receive}};
}
template <>
control_message good<detach_body>() {
    return {.from = 11, .to = 12, .body = detach_body{}};
}
template <>
control_message good<introduce_body>() {
    introduce_body body{
        .network = transport::id_ucx, .offset = 2 * introduction_piece, .address_bytes = 2 * introduction_piece + 5};
    std::memset(body.piece, 7, body.piece_bytes());
    return {.body = body};
}
template <>
control_message good<inquire_body>() {
    return {.from = 11, .body = inquire_body{.communicator = 5, .by = pair_side::receive}};
}
template <>
control_message good<answer_body>() {
    return {.to = 12, .body = answer_body{.state = text("started")}};
}

const std::vector<control_message> one_of_each_kind = {
    good<offer_body>(),  good<accept_body>(),    good<connect_body>(), good<started_body>(), good<withdraw_body>(),
    good<detach_body>(), good<introduce_body>(), good<inquire_body>(), good<answer_body>()};

std::string check(const control_packet &packet) {
    control_message out;
    return check_control(&packet, sizeof packet, out).message();
}
std::string check(const control_message &m) { return check(encode_control(m)); }

bool same(const control_packet &a, const control_packet &b) { return std::memcmp(&a, &b, sizeof a) == 0; }

constexpr std::size_t magic_at = offsetof(control_header, magic), kind_at = offsetof(control_header, kind),
                      body_at = sizeof(control_header);

// Good messages of that kind, with something in the body changed.
template <class Body>
struct change {
    const char *name;
    std::function<void(Body &)> apply;
};
template <class Body>
void are_refused(const std::vector<change<Body>> &changes) {
    for (const change<Body> &c : changes) {
        control_message m = good<Body>();
        REQUIRE(check(m) == "");
        c.apply(std::get<Body>(m.body));
        CAPTURE(c.name);
        CHECK(check(m) != "");
    }
}

void endless(control_text &t) { std::memset(t.characters, 'x', sizeof t.characters); }

}  // namespace

TEST_CASE("a good message of each kind comes out as it was") {
    REQUIRE(one_of_each_kind.size() == std::variant_size_v<control_body>);
    for (std::size_t i = 0; i < one_of_each_kind.size(); ++i) {
        const control_message &m = one_of_each_kind[i];
        CAPTURE(i);
        REQUIRE(m.body.index() == i);
        const control_packet packet = encode_control(m);
        control_message out{.from = 99, .to = 99};
        CHECK(check_control(&packet, sizeof packet, out).ok());
        CHECK(out.body.index() == i);
        CHECK((out.from == m.from && out.to == m.to));
        CHECK(same(encode_control(out), packet));
    }
}

TEST_CASE("what is refused leaves nothing behind") {
    control_message bad = good<offer_body>();
    std::get<offer_body>(bad.body).partitions = 0;
    const control_packet packet = encode_control(bad);
    control_message out{.from = 98, .to = 99, .body = detach_body{}};
    CHECK(!check_control(&packet, sizeof packet, out).ok());
    CHECK((out.from == 98 && out.to == 99 && std::holds_alternative<detach_body>(out.body)));
}

TEST_CASE("a body at rest is as long as what it says, and comes out as it was") {
    const control_message m = good<offer_body>();
    const body_at_rest kept(std::get<offer_body>(m.body));
    const control_message out{.from = m.from, .to = m.to, .body = kept.get<offer_body>()};
    CHECK(same(encode_control(out), encode_control(m)));
    std::uint64_t words[100] = {1};
    for (std::size_t last : {std::size_t{0}, std::size_t{6}, std::size_t{7}, std::size_t{8}, std::size_t{99}}) {
        words[last] = 1;
        CHECK(filled_bytes(words, sizeof words) == (last + 1) * sizeof *words);
    }
    words[0] = 0;
    CHECK(filled_bytes(words, sizeof *words) == 0);
    CHECK(body_at_rest().get<offer_body>().partitions == 0);
}

TEST_CASE("any other length is refused") {
    const control_packet packet = encode_control(good<offer_body>());
    std::vector<char> longer(sizeof packet + 8);
    std::memcpy(longer.data(), &packet, sizeof packet);
    control_message out;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, sizeof packet - 1, sizeof packet + 8})
        CHECK(!check_control(longer.data(), bytes, out).ok());
}

TEST_CASE("another magic, an unknown kind, or bytes behind the body are refused of every kind") {
    for (const control_message &m : one_of_each_kind) {
        const control_packet packet = encode_control(m);
        const auto with = [&packet](std::size_t at, std::uint32_t value) {
            control_packet altered = packet;
            std::memcpy(altered.bytes + at, &value, sizeof value);
            return check(altered);
        };
        CAPTURE(m.body.index());
        CHECK(with(magic_at, control_magic ^ 1) != "");
        CHECK(with(magic_at, 0) != "");
        for (const std::uint32_t kind : {0u, 10u, 0xffffffffu}) CHECK(with(kind_at, kind) != "");
        const std::size_t bytes =
            std::visit([]<class Body>(const Body &) { return std::is_empty_v<Body> ? 0 : sizeof(Body); }, m.body);
        for (const std::size_t at : {body_at + bytes, sizeof packet - 1}) {
            control_packet altered = packet;
            altered.bytes[at] = std::byte{1};
            CHECK(check(altered) != "");
        }
    }
}

TEST_CASE("each kind names the requests that it must name, and no others") {
    struct numbers {
        control_message m;
        bool without_from, without_to, with_from, with_to;  // whether it is still good
    };
    const control_message withdrawn_send{.from = 11, .body = withdraw_body{.by = pair_side::send}};
    for (const auto &[m, without_from, without_to, with_from, with_to] :
         {numbers{good<offer_body>(), false, true, true, false}, numbers{good<accept_body>(), false, false, true, true},
          numbers{good<connect_body>(), false, false, true, true},
          numbers{good<started_body>(), false, true, true, false},
          numbers{good<withdraw_body>(), false, false, true, true}, numbers{withdrawn_send, false, true, true, true},
          numbers{good<detach_body>(), true, false, true, true},
          numbers{good<introduce_body>(), true, true, false, false},
          numbers{good<inquire_body>(), false, true, true, true},
          numbers{good<answer_body>(), true, false, false, true}}) {
        CAPTURE(m.body.index());
        CHECK((check({.from = 0, .to = m.to, .body = m.body}) == "") == without_from);
        CHECK((check({.from = m.from, .to = 0, .body = m.body}) == "") == without_to);
        CHECK((check({.from = 3, .to = m.to, .body = m.body}) == "") == with_from);
        CHECK((check({.from = m.from, .to = 3, .body = m.body}) == "") == with_to);
    }
}

TEST_CASE("each field that can be wrong by itself is refused") {
    are_refused<offer_body>({
        {"no partitions", [](offer_body &b) { b.partitions = 0; }},
        {"negative partitions", [](offer_body &b) { b.partitions = -6; }},
        {"negative partitions of an empty message",
         [](offer_body &b) {
             b.partitions = -6;
             b.bytes = 0;
         }},
        {"bytes do not divide", [](offer_body &b) { b.bytes += 1; }},
        {"too many bytes", [](offer_body &b) { b.bytes = std::uint64_t{6} << 60; }},
        {"an unknown flag", [](offer_body &b) { b.flags = {64}; }},
        {"an unknown flag in the other half", [](offer_body &b) { b.flags = {std::uint64_t{1} << 32}; }},
        {"an endless reason", [](offer_body &b) { endless(b.no_network); }},
    });
    using enum accept_flag;
    const auto flags = [](std::initializer_list<accept_flag> all) {
        flag_set<accept_flag> set;
        for (const accept_flag f : all) set.set(f);
        return set;
    };
    are_refused<accept_body>({
        {"an unknown refusal", [](accept_body &b) { b.refusal = static_cast<refusal_reason>(4); }},
        {"no partitions", [](accept_body &b) { b.partitions = 0; }},
        {"negative partitions", [](accept_body &b) { b.partitions = -6; }},
        {"negative partitions of an empty message",
         [](accept_body &b) {
             b.partitions = -6;
             b.bytes = 0;
         }},
        {"bytes do not divide", [](accept_body &b) { b.bytes += 1; }},
        {"too many bytes", [](accept_body &b) { b.bytes = std::uint64_t{6} << 60; }},
        {"no slots", [](accept_body &b) { b.slots = 0; }},
        {"three slots", [](accept_body &b) { b.slots = 3; }},
        {"an inline buffer, and two slots", [&](accept_body &b) { b.flags = flags({inline_buffer}); }},
        {"an inline buffer, and chunks",
         [&](accept_body &b) {
             b.slots = 1;
             b.flags = flags({in_chunks, inline_buffer});
         }},
        {"a receive buffer, and two slots", [&](accept_body &b) { b.flags = flags({in_place}); }},
        {"a receive buffer, and an inline buffer",
         [&](accept_body &b) {
             b.slots = 1;
             b.flags = flags({in_place, inline_buffer});
         }},
        {"an rget, and two slots", [&](accept_body &b) { b.flags = flags({rget}); }},
        {"an rget, an inline buffer, and two slots",
         [&](accept_body &b) {
             b.flags = flags({rget, inline_buffer});
         }},
        {"an rget, and a single copy",
         [&](accept_body &b) {
             b.slots = 1;
             b.flags = flags({rget, in_place});
         }},
        {"an rget, an inline buffer, and chunks",
         [&](accept_body &b) {
             b.slots = 1;
             b.flags = flags({rget, inline_buffer, in_chunks});
         }},
        {"an unknown flag", [](accept_body &b) { b.flags = {16}; }},
        {"an endless reason", [](accept_body &b) { endless(b.reason); }},
    });
    are_refused<connect_body>({
        {"an unknown refusal", [](connect_body &b) { b.refusal = static_cast<refusal_reason>(4); }},
        {"an endless reason", [](connect_body &b) { endless(b.reason); }},
    });
    are_refused<withdraw_body>({
        {"of neither side", [](withdraw_body &b) { b.by = pair_side{}; }},
        {"of an unknown side", [](withdraw_body &b) { b.by = static_cast<pair_side>(3); }},
    });
    are_refused<introduce_body>({
        {"no network", [](introduce_body &b) { b.network = transport::id_none; }},
        {"a transport within a node", [](introduce_body &b) { b.network = transport::id_shm; }},
        {"an empty address", [](introduce_body &b) { b.address_bytes = 0; }},
        {"a very long address", [](introduce_body &b) { b.address_bytes = introduction_limit + 1; }},
        {"a piece behind the end", [](introduce_body &b) { b.offset += introduction_piece; }},
        {"a piece between two", [](introduce_body &b) { b.offset -= 1; }},
    });
    are_refused<inquire_body>({
        {"of neither side", [](inquire_body &b) { b.by = pair_side{}; }},
        {"of an unknown side", [](inquire_body &b) { b.by = static_cast<pair_side>(3); }},
    });
    are_refused<answer_body>({{"an endless state", [](answer_body &b) { endless(b.state); }}});
}

TEST_CASE("a message may come in chunks, to an inline buffer, into the receive buffer, or be read by the receiver") {
    using enum accept_flag;
    for (const accept_flag flag : {in_chunks, inline_buffer, in_place, rget}) {
        control_message m = good<accept_body>();
        auto &b = std::get<accept_body>(m.body);
        b.slots = 1;
        b.flags = {static_cast<std::uint32_t>(flag)};
        CHECK(check(m) == "");
        if (flag == rget) {  // as well as to an inline buffer
            b.flags.set(inline_buffer);
            CHECK(check(m) == "");
        }
    }
}

TEST_CASE("an accept that refuses describes nothing") {
    const control_message m{.from = 11, .to = 12, .body = accept_body{.refusal = refused_size}};
    CHECK(check(m) == "");
}

TEST_CASE("a long sentence is cut off, and ends") {
    control_text t;
    t.assign(std::string(1000, 'x'));
    CHECK(t.terminated());
    CHECK(std::strlen(t.c_str()) == sizeof t.characters - 1);
    t.assign("short");
    CHECK(t.c_str() == std::string("short"));
    CHECK(std::count(std::begin(t.characters), std::end(t.characters), '\0') == sizeof t.characters - 5);
}
