// SPDX-License-Identifier: BSD-3-Clause
//
// The table from handles to requests: against std::map, and with readers that never stop.
#include "host/request/handle_table.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"

using table = mpix::handle_table<int>;

// An object whose pointer runs something just before it is next read: what another thread might do at that moment.
struct watched {
    static inline std::function<void()> before_read;
};
template <>
struct std::atomic<watched *> {
    std::atomic<void *> value;
    atomic(watched *initial) : value(initial) {}
    watched *load(std::memory_order order) const {
        if (const auto act = std::exchange(watched::before_read, nullptr)) act();
        return static_cast<watched *>(value.load(order));
    }
    void store(watched *to, std::memory_order order) { value.store(to, order); }
    watched *exchange(watched *to, std::memory_order order) {
        return static_cast<watched *>(value.exchange(to, order));
    }
};

TEST_CASE("an empty table finds nothing") {
    table t;
    CHECK(t.size() == 0);
    CHECK(t.find(0) == nullptr);
    CHECK(t.find(42) == nullptr);
    t.remove(42);
    CHECK(t.size() == 0);
}

TEST_CASE("a key that is inserted again finds its new object") {
    table t;
    int first = 1, second = 2;
    t.insert(0, &first);  // zero is a key like any other
    CHECK(t.find(0) == &first);
    t.remove(0);
    CHECK(t.find(0) == nullptr);
    t.insert(0, &second);
    CHECK(t.find(0) == &second);
    CHECK(t.size() == 1);
}

TEST_CASE("random inserts and removes agree with std::map") {
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<int> objects(64);
    // Handles as MPI libraries make them: aligned pointers, small ints, ints with the sign bit; few enough of
    // them that keys come back, and long enough that the table is rebuilt many times over.
    for (const std::uint64_t step :
         {std::uint64_t{1}, std::uint64_t{16}, std::uint64_t{0x98000000}, std::uint64_t{1} << 40}) {
        table t;
        std::map<std::uint64_t, int *> expected;
        for (int n = 0; n < 60000; ++n) {
            const std::uint64_t key = (random() % (n < 30000 ? 2000 : 20)) * step;
            if (random() % 2 != 0) {
                if (expected.count(key) != 0) continue;  // the library never hands a live handle out again
                expected[key] = &objects[random() % objects.size()];
                t.insert(key, expected[key]);
            } else {
                expected.erase(key);
                t.remove(key);
            }
            const std::uint64_t probe = (random() % 2000) * step;
            const auto it = expected.find(probe);
            REQUIRE(t.find(probe) == (it == expected.end() ? nullptr : it->second));
            REQUIRE(t.size() == expected.size());
        }
        for (const auto &[key, object] : expected) REQUIRE(t.find(key) == object);
    }
}

TEST_CASE("readers find their keys while others come and go") {
    // Keys below 100 stay; the writer makes and removes others around them, through many rebuilds.
    table t;
    std::vector<int> stays(100);
    for (std::size_t i = 0; i < stays.size(); ++i) t.insert(i * 8, &stays[i]);
    std::vector<int> passing(4000);
    std::atomic<bool> stop{false}, wrong{false};
    std::atomic<int> reading{0};
    std::vector<std::thread> readers;
    for (unsigned id = 0; id < 3; ++id)
        readers.emplace_back([&, id] {
            reading.fetch_add(1);
            for (std::size_t n = id; !stop.load(std::memory_order_relaxed); n += 7) {
                const std::size_t i = n % stays.size();
                if (t.find(i * 8) != &stays[i]) wrong = true;
                // A key that comes and goes gives its own object or nothing.
                const std::size_t k = n % passing.size();
                int *const found = t.find((1000 + k) * 8);
                if (found != nullptr && found != &passing[k]) wrong = true;
            }
        });
    for (backoff wait; reading.load() < 3;) wait.pause();
    for (int round = 0; round < 30; ++round) {
        const std::size_t n = passing.size() >> (round % 8);
        for (std::size_t k = 0; k < n; ++k) t.insert((1000 + k) * 8, &passing[k]);
        for (std::size_t k = 0; k < n; ++k) t.remove((1000 + (round % 2 != 0 ? k : n - 1 - k)) * 8);
    }
    stop = true;
    for (std::thread &reader : readers) reader.join();
    CHECK_FALSE(wrong);
    CHECK(t.size() == stays.size());
}

TEST_CASE("a slot that another key takes during a look gives that key's object to nobody else") {
    // The handle was a request of ours, and is the library's now, in whose calls it is looked up.
    const std::uint64_t was_ours = 1000;
    int looks_disturbed = 0;
    for (std::uint64_t other = 1; other < 1000; ++other) {
        mpix::handle_table<watched> t;
        watched old_object, new_object;
        t.insert(was_ours, &old_object);
        t.insert(other, &old_object);
        t.remove(was_ours);  // its key stays if the other one's probes have gone past it
        watched::before_read = [&] {
            t.remove(other);
            t.insert(other, &new_object);  // where the key was
            ++looks_disturbed;
        };
        REQUIRE(t.find(was_ours) == nullptr);
        watched::before_read = nullptr;
    }
    CHECK(looks_disturbed > 0);
}
