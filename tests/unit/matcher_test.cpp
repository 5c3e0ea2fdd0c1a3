// SPDX-License-Identifier: BSD-3-Clause
//
// The matching order, against a reference that looks through plain lists.
#include "host/request/matcher.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

using mpix::match_key;
using mpix::matcher;

namespace {

constexpr match_key key_a{1, 0, 7};

struct reference {
    std::vector<std::pair<match_key, std::uint64_t>> sends, receives;

    static std::uint64_t earliest(const std::vector<std::pair<match_key, std::uint64_t>> &side, const match_key &key) {
        std::uint64_t best = 0;
        for (const auto &[k, number] : side)
            if (k == key && (best == 0 || number < best)) best = number;
        return best;
    }
    static void drop(std::vector<std::pair<match_key, std::uint64_t>> &side, const match_key &key,
                     std::uint64_t number) {
        side.erase(std::remove(side.begin(), side.end(), std::pair{key, number}), side.end());
    }
};

}  // namespace

TEST_CASE("the first send meets the first receive") {
    matcher m;
    m.add_receive(key_a, 10);
    m.add_receive(key_a, 11);
    CHECK_FALSE(m.next(key_a));
    m.add_send(key_a, 5);
    m.add_send(key_a, 6);
    CHECK(m.next(key_a) == std::pair<std::uint64_t, std::uint64_t>{5, 10});
    CHECK(m.next(key_a) == std::pair<std::uint64_t, std::uint64_t>{6, 11});
    CHECK_FALSE(m.next(key_a));
    CHECK(m.empty());
}

TEST_CASE("communicator, source and tag each keep operations apart") {
    const match_key other_communicator{2, 0, 7}, other_source{1, 1, 7}, other_tag{1, 0, 8};
    matcher m;
    m.add_send(key_a, 1);
    for (const match_key &other : {other_communicator, other_source, other_tag}) {
        m.add_receive(other, 2);
        CHECK_FALSE(m.next(key_a));
        CHECK_FALSE(m.next(other));
        m.drop_receive(other, 2);
    }
    m.drop_send(key_a, 1);
    CHECK(m.empty());
}

TEST_CASE("an operation that comes back takes its old place") {
    matcher m;
    m.add_send(key_a, 1);
    m.add_receive(key_a, 20);
    REQUIRE(m.next(key_a));
    m.add_send(key_a, 2);
    m.add_send(key_a, 1);  // its receive was freed
    m.add_receive(key_a, 21);
    CHECK(m.next(key_a) == std::pair<std::uint64_t, std::uint64_t>{1, 21});
}

TEST_CASE("dropping what is not there changes nothing") {
    matcher m;
    m.drop_send(key_a, 1);
    m.drop_receive(key_a, 1);
    m.add_send(key_a, 3);
    m.drop_send(key_a, 4);
    m.drop_receive(key_a, 3);
    m.add_receive(key_a, 9);
    CHECK(m.next(key_a) == std::pair<std::uint64_t, std::uint64_t>{3, 9});
}

TEST_CASE("random histories agree with the reference") {
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (int history = 0; history < 200; ++history) {
        matcher m;
        reference r;
        std::uint64_t next_number = 1;
        for (int step = 0; step < 200; ++step) {
            const match_key key{below(2), static_cast<int>(below(2)), static_cast<int>(below(2))};
            auto &side = below(2) != 0 ? r.sends : r.receives;
            const bool is_send = &side == &r.sends;
            switch (below(4)) {
                case 0:
                case 1:
                    side.emplace_back(key, next_number);
                    is_send ? m.add_send(key, next_number) : m.add_receive(key, next_number);
                    ++next_number;
                    break;
                case 2:
                    if (!side.empty()) {
                        const auto [k, number] = side[below(static_cast<unsigned>(side.size()))];
                        reference::drop(side, k, number);
                        is_send ? m.drop_send(k, number) : m.drop_receive(k, number);
                    }
                    break;
                default: {
                    const std::uint64_t send = reference::earliest(r.sends, key);
                    const std::uint64_t receive = reference::earliest(r.receives, key);
                    const auto pair = m.next(key);
                    REQUIRE(pair.has_value() == (send != 0 && receive != 0));
                    if (!pair) break;
                    REQUIRE(*pair == std::pair{send, receive});
                    reference::drop(r.sends, key, send);
                    reference::drop(r.receives, key, receive);
                }
            }
            REQUIRE(m.empty() == (r.sends.empty() && r.receives.empty()));
        }
    }
}
