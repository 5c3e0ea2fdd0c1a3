// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cuda_ipc/posted_words.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using mpix::failure;
using mpix::status;
using mpix::transport::posted_words;

namespace {

// A stream that copies as late as it may: when somebody waits for it.
struct late_stream {
    struct begun {
        std::uint64_t *to;
        const std::uint64_t *from;
        std::uint64_t n;
    };
    std::vector<begun> copies;
    int drains = 0;

    auto copy() {
        return [this](std::uint64_t *to, const std::uint64_t *from, std::uint64_t n) {
            copies.push_back({to, from, n});
            return status{};
        };
    }
    auto drain() {
        return [this] {
            for (const begun &c : copies) std::copy_n(c.from, c.n, c.to);
            copies.clear();
            ++drains;
            return status{};
        };
    }
};

}  // namespace

TEST_CASE("each word gets its own value, however late its copy", "[posted_words]") {
    std::mt19937_64 random(Catch::rngSeed());
    std::vector<std::uint64_t> room(posted_words::room), memory(3 * posted_words::room + 7, 0), expected = memory;
    posted_words words;
    CHECK(!words.has_memory());
    words.use(room.data());
    CHECK(words.has_memory());
    late_stream stream;
    std::size_t at = 0;
    std::uint64_t posted = 0;
    while (at < memory.size()) {
        const std::uint64_t left = memory.size() - at, most = at == 0 ? posted_words::room - 1 : left,
                            count = std::uniform_int_distribution<std::uint64_t>(0, std::min(most, left))(random),
                            value = random() | 1;
        REQUIRE(words.post(&memory[at], value, count, stream.copy(), stream.drain()).ok());
        std::fill_n(&expected[at], count, value);
        at += count;
        posted += count;
    }
    CHECK(stream.drains == static_cast<int>((posted - 1) / posted_words::room));  // not before the room is full
    REQUIRE(stream.drain()().ok());
    CHECK(std::equal(memory.begin(), memory.end(), expected.begin()));
}

TEST_CASE("exactly as many words as there is room need no wait", "[posted_words]") {
    std::vector<std::uint64_t> room(posted_words::room), memory(posted_words::room + 1);
    posted_words words;
    words.use(room.data());
    late_stream stream;
    REQUIRE(words.post(memory.data(), 5, posted_words::room, stream.copy(), stream.drain()).ok());
    CHECK(stream.drains == 0);
    REQUIRE(words.post(&memory[posted_words::room], 6, 1, stream.copy(), stream.drain()).ok());
    CHECK(stream.drains == 1);
    REQUIRE(stream.drain()().ok());
    CHECK(memory.front() == 5);
    CHECK(memory[posted_words::room - 1] == 5);
    CHECK(memory.back() == 6);
}

TEST_CASE("what a copy or a wait returns is returned, and nothing more is begun", "[posted_words]") {
    std::vector<std::uint64_t> room(posted_words::room), memory(2 * posted_words::room);
    posted_words words;
    words.use(room.data());
    late_stream stream;
    const auto fails = [] { return failure("broken"); };
    CHECK(words.post(memory.data(), 1, 2 * posted_words::room, stream.copy(), fails).message() == "broken");
    CHECK(stream.copies.size() == 1);
    int begun = 0;
    posted_words others;
    others.use(room.data());
    const auto copy_fails = [&](std::uint64_t *, const std::uint64_t *, std::uint64_t) {
        ++begun;
        return failure("no copy");
    };
    CHECK(others.post(memory.data(), 1, 2 * posted_words::room, copy_fails, stream.drain()).message() == "no copy");
    CHECK(begun == 1);
}
