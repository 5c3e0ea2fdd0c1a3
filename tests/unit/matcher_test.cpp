// SPDX-License-Identifier: BSD-3-Clause
//
// The matching order: what follows from it for programs, and random histories against two plain lists.
#include "host/wireup/matcher.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using mpix::match_key;
using mpix::matcher;

namespace {

constexpr match_key key_a{1, 0, 7};
constexpr auto send = matcher::send, receive = matcher::receive;

// Who is whose partner now, and for good, as a caller of the matcher learns it.
struct pairs {
    std::map<std::uint64_t, std::uint64_t> of_receive, final;

    void learn(const matcher::change &c) {
        for (const auto &list : {c.final, c.places})
            for (const matcher::pair &p : list) {
                std::erase_if(of_receive, [&](const auto &known) { return p.send != 0 && known.second == p.send; });
                of_receive.erase(p.receive);
            }
        for (const auto &list : {c.final, c.places})
            for (const matcher::pair &p : list)
                if (p.send != 0 && p.receive != 0) of_receive[p.receive] = p.send;
        for (const matcher::pair &p : c.final) {
            of_receive.erase(p.receive);
            final[p.receive] = p.send;
        }
    }
    void freed(matcher::side which, std::uint64_t number) {
        std::erase_if(of_receive,
                      [&](const auto &known) { return (which == send ? known.second : known.first) == number; });
    }
};

// The same rules on lists that keep everything.
struct reference {
    enum state { waiting, started, freed };
    struct request {
        std::uint64_t number;
        state is;
        bool passed = false;
    };
    std::vector<request> line[2];
    std::map<std::uint64_t, std::uint64_t> final;

    request *find(matcher::side which, std::uint64_t number) {
        for (request &r : line[which])
            if (r.number == number && r.is != freed) return &r;
        return nullptr;
    }
    bool undecided(std::size_t i) const {
        const request &s = line[send][i], &r = line[receive][i];
        return (s.is == freed && r.is == waiting && !r.passed) || (r.is == freed && s.is == waiting && !s.passed);
    }
    std::size_t places() const { return std::min(line[send].size(), line[receive].size()); }
    bool in_doubt() const {
        bool doubt = false;
        for (std::size_t i = 0; i < places(); ++i) {
            const state a = line[send][i].is, b = line[receive][i].is;
            if (doubt && (a == started || b == started) && a != waiting && b != waiting) return true;
            doubt |= undecided(i);
        }
        return false;
    }
    void end_doubt() {
        for (std::size_t i = 0; i < places(); ++i)
            if (undecided(i)) (line[send][i].is == waiting ? line[send] : line[receive])[i].passed = true;
    }
    // From the front, as far as nothing is undecided.
    void settle() {
        for (std::size_t i = 0; i < places() && !undecided(i);) {
            const request s = line[send][i], r = line[receive][i];
            const auto at = static_cast<std::ptrdiff_t>(i);
            const bool over = s.is == r.is && s.is != waiting;
            const bool no_send = s.is == freed && r.is == started, no_receive = r.is == freed && s.is == started;
            if (over && s.is == started) final[r.number] = s.number;
            if (over || no_send) line[send].erase(line[send].begin() + at);
            if (over || no_receive) line[receive].erase(line[receive].begin() + at);
            if (!over && !no_send && !no_receive) ++i;
        }
    }
    // In front of what is undecided.
    std::map<std::uint64_t, std::uint64_t> of_receive() const {
        std::map<std::uint64_t, std::uint64_t> out;
        for (std::size_t i = 0; i < places() && !undecided(i); ++i)
            if (line[send][i].is != freed && line[receive][i].is != freed)
                out[line[receive][i].number] = line[send][i].number;
        return out;
    }
};

// One side's calls: 'i'nit, 's'tart, 'f'ree, each with the number of the request.
struct call {
    char what;
    std::uint64_t number;
};

// Every way in which the calls of both sides can come between each other must lead to `wanted` (receive to send).
void check_all_interleavings(const std::vector<call> &sends, const std::vector<call> &receives,
                             const std::map<std::uint64_t, std::uint64_t> &wanted, bool in_doubt = false) {
    const std::size_t n = sends.size() + receives.size();
    std::vector<bool> sender_next(n);
    std::fill(sender_next.begin() + static_cast<std::ptrdiff_t>(receives.size()), sender_next.end(), true);
    do {
        matcher m;
        pairs p;
        std::size_t at[2] = {0, 0};
        for (std::size_t step = 0; step < n; ++step) {
            const matcher::side which = sender_next[step] ? send : receive;
            const call c = (which == send ? sends : receives)[at[which]++];
            p.learn(c.what == 'i'   ? m.add(key_a, which, c.number)
                    : c.what == 's' ? m.start(key_a, which, c.number)
                                    : m.free(key_a, which, c.number));
        }
        CAPTURE(sender_next);
        // Some may be in doubt still, but only where one stays that has lost its partner.
        REQUIRE(m.in_doubt(key_a) == in_doubt);
        p.learn(m.end_doubt(key_a));
        REQUIRE(p.final == wanted);
    } while (std::next_permutation(sender_next.begin(), sender_next.end()));
}

}  // namespace

TEST_CASE("requests meet in the order of the init calls, whatever the order of their starts") {
    check_all_interleavings({{'i', 1}, {'i', 2}, {'s', 2}, {'s', 1}}, {{'i', 11}, {'s', 11}, {'i', 12}, {'s', 12}},
                            {{11, 1}, {12, 2}});
}

TEST_CASE("those freed on both sides are gone, at whatever time and whatever is started meanwhile") {
    check_all_interleavings({{'i', 1}, {'f', 1}, {'i', 2}, {'i', 3}, {'s', 3}, {'s', 2}},
                            {{'i', 11}, {'i', 12}, {'s', 12}, {'i', 13}, {'f', 11}, {'s', 13}}, {{12, 2}, {13, 3}});
    check_all_interleavings({{'i', 1}, {'i', 2}, {'s', 2}, {'f', 1}, {'i', 3}, {'f', 3}},
                            {{'i', 11}, {'i', 12}, {'i', 13}, {'f', 13}, {'s', 12}, {'f', 11}}, {{12, 2}});
}

TEST_CASE("what is freed on one side only has never been for the others") {
    check_all_interleavings({{'i', 1}, {'f', 1}, {'i', 2}, {'s', 2}, {'i', 3}, {'s', 3}},
                            {{'i', 12}, {'i', 13}, {'s', 12}, {'s', 13}}, {{12, 2}, {13, 3}});
    check_all_interleavings({{'i', 1}, {'i', 2}, {'s', 1}, {'s', 2}},
                            {{'i', 10}, {'i', 11}, {'f', 10}, {'s', 11}, {'i', 12}, {'s', 12}}, {{11, 1}, {12, 2}});
    // Those that are left may be started in any order.
    check_all_interleavings({{'i', 1}, {'f', 1}, {'i', 2}, {'s', 2}, {'i', 3}, {'s', 3}},
                            {{'i', 12}, {'i', 13}, {'s', 13}, {'s', 12}}, {{12, 2}, {13, 3}});
    check_all_interleavings({{'i', 1}, {'i', 2}, {'s', 2}, {'s', 1}},
                            {{'i', 10}, {'i', 11}, {'f', 10}, {'i', 12}, {'s', 12}, {'s', 11}}, {{11, 1}, {12, 2}});
    // On each side another one.
    check_all_interleavings({{'i', 1}, {'f', 1}, {'i', 2}, {'i', 3}, {'s', 2}, {'s', 3}},
                            {{'i', 12}, {'i', 13}, {'f', 13}, {'i', 14}, {'s', 12}, {'s', 14}}, {{12, 2}, {14, 3}});
}

TEST_CASE("one whose partner was freed can be left alone: others meet") {
    check_all_interleavings({{'i', 1}, {'f', 1}, {'i', 2}, {'s', 2}}, {{'i', 11}, {'i', 12}, {'s', 12}}, {{12, 2}},
                            true);
    check_all_interleavings({{'i', 1}, {'i', 2}, {'s', 2}}, {{'i', 11}, {'f', 11}, {'i', 12}, {'s', 12}}, {{12, 2}},
                            true);
}

TEST_CASE("communicator, source and tag each keep operations apart") {
    const match_key other_communicator{2, 0, 7}, other_source{1, 1, 7}, other_tag{1, 0, 8};
    matcher m;
    m.add(key_a, send, 1);
    for (const match_key &other : {other_communicator, other_source, other_tag}) {
        const auto c = m.add(other, receive, 2);
        CHECK(c.places == decltype(matcher::change::places){{0, 2}});
        CHECK(m.first(key_a) == matcher::pair{1, 0});
        CHECK(m.first(other) == matcher::pair{0, 2});
        CHECK(m.remove(other, {0, 2}).places.empty());
    }
    m.add({1, 3, 7}, send, 5);
    m.remove_source(0);
    CHECK_FALSE(m.empty());
    m.remove_source(3);
    CHECK(m.empty());
}

TEST_CASE("what is not there changes nothing") {
    matcher m;
    for (const auto which : {send, receive}) {
        CHECK(m.start(key_a, which, 1).places.empty());
        CHECK(m.free(key_a, which, 1).places.empty());
        m.remove(key_a, {1, 1});
    }
    m.add(key_a, send, 3);
    CHECK(m.free(key_a, send, 4).places.empty());
    CHECK(m.start(key_a, receive, 3).places.empty());
    CHECK(m.add(key_a, receive, 9).places == decltype(matcher::change::places){{3, 9}});
}

TEST_CASE("freed ones that stood joined behind the end of the other line are single when that grows") {
    matcher m;
    for (const std::uint64_t s : {1, 2, 3, 4}) {
        m.add(key_a, send, s);
        if (s == 1) m.free(key_a, send, s);
    }
    m.add(key_a, receive, 11);
    m.add(key_a, receive, 12);
    m.free(key_a, send, 3);
    m.free(key_a, send, 4);
    m.start(key_a, receive, 11);
    m.start(key_a, send, 2);
    m.free(key_a, receive, 12);
    m.add(key_a, receive, 13);
    m.add(key_a, send, 5);
    m.add(key_a, receive, 14);
    m.start(key_a, send, 5);
    CHECK(m.start(key_a, receive, 14).final.empty());
    CHECK(m.in_doubt(key_a));  // for 13 has lost its partner, 4
    CHECK(m.end_doubt(key_a).final == decltype(matcher::change::places){{5, 14}});
}

TEST_CASE("who is removed goes with the partner it had, wherever that stands") {
    matcher m;
    m.add(key_a, receive, 11);
    m.add(key_a, receive, 12);
    m.free(key_a, receive, 11);
    m.add(key_a, send, 1);
    m.add(key_a, send, 2);  // it is in doubt, and set up with 12
    m.start(key_a, receive, 12);
    m.remove(key_a, {2, 12});
    CHECK(m.start(key_a, send, 2).places.empty());
    m.add(key_a, receive, 13);
    m.start(key_a, receive, 13);
    CHECK(m.start(key_a, send, 1).final == decltype(matcher::change::places){{1, 13}});
    CHECK(m.empty());
}

TEST_CASE("a request whose number does not grow is not entered") {
    matcher m;
    m.add(key_a, send, 5);
    CHECK(m.add(key_a, send, 5).places.empty());
    CHECK(m.add(key_a, send, 3).places.empty());
    m.start(key_a, send, 3);
    m.free(key_a, send, 3);
    CHECK(m.add(key_a, receive, 11).places == decltype(matcher::change::places){{5, 11}});
    CHECK(m.add(key_a, receive, 12).places == decltype(matcher::change::places){{0, 12}});
}

TEST_CASE("random histories agree with the reference") {
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int history = 0; history < 8000; ++history) {
        matcher m;
        reference r;
        pairs p;
        std::uint64_t number = 0;
        for (std::size_t step = 0, steps = below(60); step < steps; ++step) {
            const auto which = static_cast<matcher::side>(below(2));
            const std::size_t what = below(5);
            if (what == 4) {
                if (below(3) == 0) {
                    r.end_doubt();
                    p.learn(m.end_doubt(key_a));
                }
            } else if (what < 2) {
                ++number;
                r.line[which].push_back({number, reference::waiting});
                p.learn(m.add(key_a, which, number));
            } else if (number != 0) {
                const std::uint64_t one = 1 + below(number);
                reference::request *const found = r.find(which, one);
                if (found != nullptr && found->is == reference::started) continue;  // started already, cannot be freed
                if (found != nullptr) found->is = what == 2 ? reference::started : reference::freed;
                if (what == 3 && found != nullptr) p.freed(which, one);
                p.learn(what == 2 ? m.start(key_a, which, one) : m.free(key_a, which, one));
            }
            r.settle();
            REQUIRE(p.final == r.final);
            const auto certain = r.of_receive();
            REQUIRE(std::includes(p.of_receive.begin(), p.of_receive.end(), certain.begin(), certain.end()));
            REQUIRE(m.in_doubt(key_a) == r.in_doubt());
            const bool none =
                std::all_of(std::begin(r.line), std::end(r.line), [](const auto &l) { return l.empty(); });
            REQUIRE(m.empty() == none);
            if (none) continue;
            const auto front = [&](matcher::side s) {
                return r.line[s].empty() || r.line[s][0].is == reference::freed ? 0 : r.line[s][0].number;
            };
            REQUIRE(m.first(key_a) == matcher::pair{front(send), front(receive)});
        }
    }
}
