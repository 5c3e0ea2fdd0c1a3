// SPDX-License-Identifier: BSD-3-Clause
//
// What is refused of a control message before anybody acts on it.
#include "host/control/message.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix;

namespace {

control_message good(control kind) {
    control_message m{};
    m.magic = control_magic;
    m.kind = static_cast<std::uint32_t>(kind);
    m.from = 11;
    m.to = kind == control::offer || kind == control::introduce || kind == control::inquire ? 0 : 12;
    if (kind == control::introduce) {
        m.bytes = 2 * introduction_piece + 5;
        m.flags = 2 * introduction_piece;
    }
    if (kind == control::offer || kind == control::accept) {
        m.partitions = 6;
        m.bytes = 6 * 40;
    }
    if (kind == control::accept) m.flags = 2;
    return m;
}

std::string check(const control_message &m, std::size_t bytes = sizeof(control_message)) {
    control_message out;
    return check_control(&m, bytes, out);
}

constexpr control all_kinds[] = {control::offer,  control::accept,    control::connect, control::withdraw,
                                 control::detach, control::introduce, control::inquire, control::answer};

struct corruption {
    const char *name;
    std::function<void(control_message &)> apply;
    std::vector<control> kinds;  // those that it makes invalid
};

}  // namespace

TEST_CASE("good messages pass unchanged") {
    for (const control kind : all_kinds) {
        const control_message m = good(kind);
        control_message out;
        std::memset(&out, 0x5a, sizeof out);
        CAPTURE(m.kind);
        CHECK(check_control(&m, sizeof m, out) == "");
        CHECK(std::memcmp(&m, &out, sizeof m) == 0);
    }
}

TEST_CASE("any other length is refused") {
    const control_message m = good(control::offer);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, sizeof m - 1}) CHECK(check(m, bytes) != "");
    std::vector<char> longer(sizeof m + 8);
    std::memcpy(longer.data(), &m, sizeof m);
    control_message out;
    CHECK(check_control(longer.data(), longer.size(), out) != "");
}

TEST_CASE("each field that can be wrong by itself is refused") {
    const std::vector<control> every(std::begin(all_kinds), std::end(all_kinds));
    const std::vector<corruption> corruptions = {
        {"magic", [](control_message &m) { m.magic ^= 1; }, every},
        {"magic 0", [](control_message &m) { m.magic = 0; }, every},
        {"kind 0", [](control_message &m) { m.kind = 0; }, every},
        {"kind 10", [](control_message &m) { m.kind = 10; }, every},
        {"kind negative", [](control_message &m) { m.kind = 0xffffffffu; }, every},
        {"no from",
         [](control_message &m) { m.from = 0; },
         {control::offer, control::accept, control::connect, control::withdraw, control::inquire}},
        {"no to",
         [](control_message &m) { m.to = 0; },
         {control::accept, control::connect, control::detach, control::answer}},
        {"to of an offer", [](control_message &m) { m.to = 3; }, {control::offer}},
        {"refusal", [](control_message &m) { m.refusal = 4; }, every},
        {"no partitions", [](control_message &m) { m.partitions = 0; }, {control::offer, control::accept}},
        {"negative partitions", [](control_message &m) { m.partitions = -6; }, {control::offer, control::accept}},
        {"bytes do not divide", [](control_message &m) { m.bytes += 1; }, {control::offer, control::accept}},
        {"too many bytes",
         [](control_message &m) { m.bytes = std::uint64_t{6} << 60; },
         {control::offer, control::accept}},
        {"no slots", [](control_message &m) { m.flags = 0; }, {control::accept}},
        {"an empty introduction", [](control_message &m) { m.bytes = 0; }, {control::introduce}},
        {"a very long introduction",
         [](control_message &m) { m.bytes = introduction_limit + 1; },
         {control::introduce}},
        {"a piece behind the end", [](control_message &m) { m.flags += introduction_piece; }, {control::introduce}},
        {"a piece between two", [](control_message &m) { m.flags -= 1; }, {control::introduce}},
        {"three slots", [](control_message &m) { m.flags = 3; }, {control::accept}},
        {"chunks, and no slots", [](control_message &m) { m.flags = accept_in_chunks; }, {control::accept}},
        {"an inline buffer, and two slots", [](control_message &m) { m.flags = 2 | accept_inline; }, {control::accept}},
        {"an inline buffer, and chunks",
         [](control_message &m) { m.flags = 1 | accept_in_chunks | accept_inline; },
         {control::accept}},
        {"a receive buffer, and two slots",
         [](control_message &m) { m.flags = 2 | accept_in_place; },
         {control::accept}},
        {"a receive buffer, and an inline buffer",
         [](control_message &m) { m.flags = 1 | accept_in_place | accept_inline; },
         {control::accept}},
        {"offers, and two slots", [](control_message &m) { m.flags = 2 | accept_pull; }, {control::accept}},
        {"offers, and an inline buffer",
         [](control_message &m) { m.flags = 1 | accept_inline | accept_pull; },
         {control::accept}},
        {"a flag that there is not", [](control_message &m) { m.flags = 65; }, {control::accept}},
    };
    for (const corruption &c : corruptions)
        for (const control kind : c.kinds) {
            control_message m = good(kind);
            c.apply(m);
            CAPTURE(c.name, static_cast<int>(kind));
            CHECK(check(m) != "");
        }
}

TEST_CASE("a message may come in chunks, to an inline buffer, into the receive buffer, or be offered") {
    control_message m = good(control::accept);
    m.flags = 1 | accept_in_chunks;
    CHECK(check(m) == "");
    m.flags = 1 | accept_inline;
    CHECK(check(m) == "");
    m.flags = 1 | accept_in_place;
    CHECK(check(m) == "");
    m.flags = 1 | accept_pull;
    CHECK(check(m) == "");
}

TEST_CASE("an accept that refuses describes nothing") {
    control_message m = good(control::accept);
    m.refusal = refused_size;
    m.flags = 0;
    m.partitions = 0;
    m.bytes = 0;
    CHECK(check(m) == "");
}

TEST_CASE("a reason is always terminated") {
    control_message m = good(control::connect);
    m.refusal = refused_unreachable;
    std::memset(m.reason, 'x', sizeof m.reason);
    control_message out;
    REQUIRE(check_control(&m, sizeof m, out) == "");
    CHECK(std::strlen(out.reason) == sizeof m.reason - 1);
}
