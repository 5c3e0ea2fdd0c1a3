// SPDX-License-Identifier: BSD-3-Clause
//
// Who has a message to himself: step by step, and two threads that meet.
#include "host/transfer/unpack_claim.h"

#include <atomic>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"

TEST_CASE("the first has it, the other has not") {
    mpix::unpack_claim t;
    t.start();
    SECTION("who waits") {
        CHECK(t.all());
        CHECK_FALSE(t.some());
        CHECK_FALSE(t.some());
    }
    SECTION("who asks") {
        CHECK(t.some());
        CHECK_FALSE(t.all());
        CHECK(t.some());  // and again, when the other has seen it
        CHECK_FALSE(t.all());
    }
    t.start();
    CHECK(t.all());
}

TEST_CASE("two that meet do not both have it") {
    constexpr unsigned rounds = 60000;
    mpix::unpack_claim t;
    // A round begins when both have come to it; the one that waits has started it.
    std::atomic<unsigned> begun{0}, asked{0};
    std::atomic<bool> some{false};
    std::thread asker([&] {
        for (unsigned r = 1; r <= rounds; ++r) {
            backoff wait;
            for (unsigned k = 1; begun.load() < r; ++k)
                if (k % 1024 == 0) wait.pause();
            some.store(t.some());
            asked.store(r);
        }
    });
    unsigned both = 0;
    for (unsigned r = 1; r <= rounds; ++r) {
        t.start();
        begun.store(r);
        for (unsigned k = r % 128; k != 0; --k) begun.load();  // until the other is about to ask, now and then
        const bool all = t.all();
        backoff wait;
        for (unsigned k = 1; asked.load() < r; ++k)
            if (k % 1024 == 0) wait.pause();
        both += all && some.load();
    }
    asker.join();
    CHECK(both == 0);
}
