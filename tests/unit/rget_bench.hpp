// SPDX-License-Identifier: BSD-3-Clause
//
// A pair of requests of which a lone thread, the test's, sends, and groups of the receiver's wait beside it.
#ifndef MPIX_TESTS_UNIT_RGET_BENCH_HPP
#define MPIX_TESTS_UNIT_RGET_BENCH_HPP

#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace rget_bench {

using namespace fake;

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif
constexpr mpix::thread_group self;
inline constexpr std::uint64_t patience = patience_ns;

inline pair_shape of(int senders, int receivers, std::uint64_t bytes, std::uint32_t rget_bytes = 72) {
    pair_shape s{};
    s.senders = senders;
    s.receivers = receivers;
    s.bytes = bytes;
    s.rget_bytes = rget_bytes;
    return s;
}

// How the receiver's groups wait: by what they have prepared, or by the request, which may have had an inline buffer.
struct way {
    bool prepares, maybe_inline;
};
inline auto ways() { return GENERATE(way{false, false}, way{true, false}, way{false, true}, way{true, true}); }

// The sender is this thread; groups of the receiver's wait beside it.
struct bench {
    fake_pair pair;
    const pair_shape s;
    std::uint64_t epoch = 0;
    std::mt19937_64 random{Catch::rngSeed()};

    const bool prepares;

    explicit bench(const pair_shape &shape, const way &w = {false, false})
        : pair(in_that_way(shape, w)), s(shape), prepares(w.prepares) {}
    static pair_shape in_that_way(pair_shape shape, const way &w) {
        shape.maybe_inline = w.maybe_inline;
        return shape;
    }
    void start() {
        pair.fill(random);
        pair.start_receive(++epoch);
        pair.clear_to_send(epoch);
        pair.start_send(epoch);
    }
    int ready(int p) { return mpix::pready(self, p, pair.send()); }
    void until(const std::function<bool()> &so) {
        const std::uint64_t end = now_ns() + patience;
        for (backoff wait; !so(); wait.pause())
            if (now_ns() > end) FAIL("it does not come to that");
    }
    bool all_wanted() const {
        for (int p = 0; p < s.senders; ++p)
            if (pair.wanted(p) != epoch) return false;
        return true;
    }
    // One epoch in which nothing is offered: in the first one nobody asks, and who waits in the second knows that it
    // runs.
    void first_epoch() {
        start();
        std::thread receiver = waiting(1, 2, patience, MPI_SUCCESS);
        for (int look = 0; look < 10; ++look) {
            for (int p = 0; p < s.senders; ++p) failed = failed || pair.wanted(p) != 0;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        for (int p = 0; p < s.senders; ++p) REQUIRE(ready(p) == MPI_SUCCESS);
        finish();
        receiver.join();
        REQUIRE(pair.read() + pair.refused() + pair.deferred() == 0);
    }
    // wait(group, j, limit) by a group's way to wait, with which it may begin.
    auto waits(const mpix::host_group &group) {
        const mpix::prepared_receive prepared =
            prepares ? mpix::prepare_receive(group, pair.receive()) : mpix::prepared_receive{};
        // Whoever comes to it when the epoch is over finds nothing.
        if (prepared.state.epoch != 0 && prepared.state.epoch != epoch) failed = true;
        if (prepared.state.epoch != 0) ++prepared_members;
        return [this, prepared](const mpix::host_group &members, int j, std::uint64_t limit) {
            return prepares ? mpix::wait_arrived(members, prepared, j, limit)
                            : mpix::wait_arrived(members, pair.receive(), j, limit);
        };
    }
    // So many groups wait for everything, one partition after the other, and are to have that answer.
    std::thread waiting(int groups, int threads, std::uint64_t limit, int answer, bool backwards = false) {
        return std::thread([=, this] {
            mpix::host_launch(groups, threads, [&](const mpix::host_group &group) {
                const auto wait = waits(group);
                for (int n = 0; n < s.receivers; ++n) {
                    const int j = backwards ? s.receivers - 1 - n : n;
                    const int code = wait(group, j, limit);
                    if (code != answer || (code == MPI_SUCCESS && !pair.right(j, 1))) failed = true;
                    // And for each member by itself.
                    if (code == MPI_SUCCESS && !mpix::parrived(self, pair.receive(), j)) failed = true;
                }
            });
        });
    }
    // A group waits by a handle of the epoch that runs now, in the next one.
    void wait_by_old_handle() {
        std::atomic<int> step{0};
        std::thread receiver([&] {
            mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
                const mpix::prepared_receive old = mpix::prepare_receive(group, pair.receive());
                group.sync();
                if (group.thread_rank() == 0) step = 1;
                while (step != 2) std::this_thread::yield();
                if (mpix::wait_arrived(group, old, 0, patience) != MPI_SUCCESS) failed = true;
            });
        });
        until([&] { return step == 1; });
        REQUIRE(ready(0) == MPI_SUCCESS);
        finish();
        start();
        CHECK_FALSE(mpix::parrived(self, pair.receive(), 0));  // somebody learns of the epoch
        step = 2;
        receiver.join();
    }
    void finish(bool erred = false) {
        until([&] { return pair.progress(epoch); });
        CHECK_FALSE(failed);
        CHECK(pair.right(0, s.receivers));
        CHECK(pair.untouched_around());
        CHECK((pair.taken_error() != 0) == erred);
        CHECK_FALSE(pair.answered_early());
        pair.end(epoch);
    }
    std::atomic<bool> failed{false};
    std::atomic<int> prepared_members{0};  // who know the epoch
};

}  // namespace rget_bench

#endif  // MPIX_TESTS_UNIT_RGET_BENCH_HPP
