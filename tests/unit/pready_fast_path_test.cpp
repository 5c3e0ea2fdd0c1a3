// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of MPI_Pready: what it moves, and what it leaves to the full path.
#include "host/transfer/pready_fast_path.h"

#include <cstdint>
#include <vector>

#include "tests/catch.hpp"

namespace {

constexpr int partitions = 5;
constexpr std::uint64_t epoch = 7;

// A request in the epoch, of which the full path has moved partition 0.
struct request {
    explicit request(std::uint64_t partition_bytes, bool with_one_thread = true)
        : one_thread(with_one_thread), bytes(partition_bytes), from(partitions * bytes), to(2 * from.size(), '.') {
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>('a' + i % 23);
        home.partitions = partitions;
        home.partition_bytes = bytes;
        home.words = &words;
        home.flags = flags.data();
        home.peer_complete = &peers.complete;
        home.ready_count = (epoch - 1) * partitions + 1;
        states[0] = flags[0] = epoch;
    }
    void open() { fast_path.open(&home, epoch, {from.data(), slot(), flags.data(), states.data(), bytes}, one_thread); }
    char *slot() { return to.data() + from.size(); }
    bool has_come(int p) {
        const std::vector<char> sent(from.data() + p * bytes, from.data() + (p + 1) * bytes),
            come(slot() + p * bytes, slot() + (p + 1) * bytes);
        return flags[static_cast<std::size_t>(p)] == epoch && states[static_cast<std::size_t>(p)] == epoch &&
               sent == come;
    }
    std::uint64_t readied() const { return home.ready_count - (epoch - 1) * partitions; }

    const bool one_thread;
    const std::uint64_t bytes;
    mpix_words words{}, peers{};
    std::vector<char> from, to;
    std::vector<std::uint64_t> flags = std::vector<std::uint64_t>(partitions + 1, epoch - 1),
                               states = std::vector<std::uint64_t>(partitions, epoch - 1);
    mpix_prequest home{};
    mpix::pready_fast_path fast_path;
};

}  // namespace

TEST_CASE("a fast path that is closed moves nothing") {
    request r(8);
    CHECK_FALSE(r.fast_path.ready(1));
    CHECK_FALSE(r.fast_path.is_open());
    CHECK(r.fast_path.may_open());
    r.open();
    CHECK(r.fast_path.is_open());
    CHECK_FALSE(r.fast_path.may_open());
    r.fast_path.close();
    CHECK(r.fast_path.may_open());
    CHECK_FALSE(r.fast_path.ready(1));
    CHECK(r.readied() == 1);
    CHECK(r.flags[1] == epoch - 1);
    CHECK(r.slot()[8] == '.');
}

TEST_CASE("an open one moves partitions into the epoch's slot") {
    for (const std::uint64_t bytes : {8u, 1u, 24u, 100u}) {
        request r(bytes);
        r.open();
        CHECK(r.fast_path.ready(3));
        CHECK(r.has_come(3));
        CHECK(r.readied() == 2);
        CHECK(r.slot()[2 * bytes] == '.');
        CHECK(r.fast_path.ready(1));
        CHECK(r.has_come(1));
        CHECK(r.to[0] == '.');
        CHECK(r.flags[partitions] == epoch - 1);
    }
}

TEST_CASE("an empty message has no bytes to move") {
    request r(0);
    r.fast_path.open(&r.home, epoch, {nullptr, r.to.data(), r.flags.data(), r.states.data(), 0}, true);
    CHECK(r.fast_path.ready(2));
    CHECK(r.flags[2] == epoch);
}

TEST_CASE("what it cannot do is left to the full path") {
    request r(8);
    r.open();
    SECTION("no such partition") {
        CHECK_FALSE(r.fast_path.ready(-1));
        CHECK_FALSE(r.fast_path.ready(partitions));
    }
    SECTION("ready already") { CHECK_FALSE(r.fast_path.ready(0)); }
    CHECK(r.readied() == 1);
    CHECK(r.states[1] == epoch - 1);
}

TEST_CASE("in a process of one thread, the last partition of an epoch tells that all are ready") {
    for (const std::uint64_t bytes : {8u, 24u}) {
        request r(bytes);
        r.open();
        for (const int p : {4, 2, 1}) CHECK(r.fast_path.ready(p));
        CHECK(r.words.all_ready == 0);
        SECTION("all have come") {
            CHECK(r.fast_path.ready(3));
            CHECK(r.has_come(3));
            CHECK(r.readied() == partitions);
            CHECK(r.words.all_ready == epoch);
            CHECK(r.peers.complete == epoch);
            CHECK(r.flags[partitions] == epoch);
            CHECK_FALSE(r.fast_path.ready(3));
        }
        SECTION("some were left to the engine: not by the fast path") {
            r.home.defer_epoch = epoch;
            CHECK_FALSE(r.fast_path.ready(3));
            CHECK(r.flags[3] == epoch - 1);
            CHECK(r.readied() == partitions - 1);
        }
    }
}

TEST_CASE("where several threads call, nothing is counted, and nobody told") {
    request r(8, false);
    r.open();
    for (const int p : {4, 2, 1, 3}) CHECK(r.fast_path.ready(p));
    for (int p = 1; p < partitions; ++p) CHECK(r.has_come(p));
    CHECK_FALSE(r.fast_path.ready(3));
    CHECK(r.readied() == 1);
    CHECK(r.words.all_ready == 0);
    CHECK(r.peers.complete == 0);
}

TEST_CASE("what is on the full path yet has not been moved") {
    request r(8, false);
    CHECK_FALSE(r.fast_path.all_moved());
    r.fast_path.begin_in_full();
    r.fast_path.begin_in_full();
    r.open();
    CHECK_FALSE(r.fast_path.all_moved());
    r.states[1] = epoch;  // claimed, beside partition 0, which has been moved
    for (const int p : {4, 2}) CHECK(r.fast_path.ready(p));
    CHECK_FALSE(r.fast_path.all_moved());
    CHECK(r.fast_path.ready(3));
    CHECK_FALSE(r.fast_path.all_moved());
    SECTION("it is counted when it has been") {
        ++r.home.ready_count;
        CHECK(r.fast_path.all_moved());
    }
    SECTION("a call that is refused moves nothing") {
        const std::uint64_t begun = r.fast_path.begin_in_full();
        ++r.home.ready_count;
        CHECK_FALSE(r.fast_path.all_moved());
        r.fast_path.refused_in_full(begun);
        CHECK(r.fast_path.all_moved());
        // Nor does one whose epoch is over.
        r.fast_path.close();
        r.fast_path.refused_in_full(begun);
        CHECK(r.fast_path.begin_in_full() != begun);
    }
}
