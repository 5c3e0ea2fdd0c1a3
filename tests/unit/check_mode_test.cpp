// SPDX-License-Identifier: BSD-3-Clause
//
// What only kernels compiled with MPIX_CHECK find, on the ways of GPU threads (MPIX_FAKE_GPU), and that the epoch goes
// on: epoch handles of another epoch, waits for requests that are not active, contributions too many, and grids that
// are too large.
#define MPIX_CHECK
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <cstdint>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace {

using namespace fake;

constexpr mpix::thread_group self;

// One thread on both sides.
struct bench {
    fake_pair pair;
    std::uint64_t epoch = 0;
    std::mt19937_64 random{Catch::rngSeed()};

    explicit bench(bool with_inline_buffer = false)
        : pair([&] {
              pair_shape s{};
              s.senders = s.receivers = 2;
              s.bytes = 16;
              s.inline_buffer = with_inline_buffer;
              s.inline_from = 1;
              return s;
          }()) {}

    void start() {
        pair.fill(random);
        pair.start_receive(++epoch);
        pair.clear_to_send(epoch);
        pair.start_send(epoch);
    }
    void transfer(int first = 0) {
        for (int p = first; p < 2; ++p) CHECK(mpix::pready(self, p, pair.send()) == MPI_SUCCESS);
        for (int j = 0; j < 2; ++j) CHECK(mpix::wait_arrived(self, pair.receive(), j) == MPI_SUCCESS);
        CHECK(pair.right(0, 2));
    }
    void end() {
        pair.end_of_kernels(epoch);
        CHECK(send_cause() == 0);
        CHECK(receive_cause() == 0);
    }
    // The call and the cause that are kept, and forgotten with that, as the host's next call does.
    static std::uint64_t take(mpix_words *words) {
        const std::uint64_t word = load_acquire(&words->error);
        store_release(&words->error, 0);
        return word >> 48;
    }
    std::uint64_t send_cause() { return take(pair.sending()->words); }
    std::uint64_t receive_cause() { return take(pair.receiving()->words); }
    // The receive buffer's bytes.
    bool received_nothing() {
        const char *const in = pair.receiving()->buffer;
        return std::all_of(in, in + 32, [](char c) { return c == 0x5a; });
    }
};

}  // namespace

TEST_CASE("epoch handles of another epoch are refused before anything is stored") {
    for (const bool with_inline_buffer : {false, true})
        for (const bool by_kernel : {false, true}) {
            CAPTURE(with_inline_buffer, by_kernel);
            bench b(with_inline_buffer);
            b.start();
            b.transfer();
            b.end();
            b.start();
            const mpix::prepared_send send = mpix::prepare_send(self, b.pair.send());
            const mpix::prepared_receive receive = mpix::prepare_receive(self, b.pair.receive());
            REQUIRE(send.state.epoch == 2);
            REQUIRE(receive.state.epoch == 2);
            CHECK(mpix::pready(self, 0, send) == MPI_SUCCESS);
            CHECK(mpix::wait_arrived(self, receive, 0) == MPI_SUCCESS);
            CHECK(mpix::parrived(self, receive, 0));
            b.transfer(1);
            if (by_kernel) {
                const MPIX_Prequest both[] = {b.pair.send(), b.pair.receive()};
                CHECK(mpix::next_epoch(self, 2, both) == MPI_SUCCESS);
                ++b.epoch;
                b.pair.fill(b.random);
            } else {
                b.end();
                b.start();
            }
            CHECK(mpix::pready(self, 1, send) == MPI_ERR_ARG);
            CHECK(b.send_cause() == with_cause(MPIX_CALL_PREADY, MPIX_CAUSE_STALE));
            CHECK(mpix::wait_arrived(self, receive, 0) == MPI_ERR_ARG);
            CHECK(b.receive_cause() == with_cause(MPIX_CALL_WAIT_ARRIVED, MPIX_CAUSE_STALE));
            CHECK_FALSE(mpix::parrived(self, receive, 0));
            CHECK(b.received_nothing());
            b.transfer();
            b.end();
        }
}

TEST_CASE("wait of a request that is not active is refused") {
    bench b;
    const MPIX_Prequest both[] = {b.pair.send(), b.pair.receive()};
    // Never started by the host.
    CHECK(mpix::wait(self, both[0]) == MPI_ERR_REQUEST);
    CHECK(b.send_cause() == with_cause(MPIX_CALL_WAIT, MPIX_CAUSE_INACTIVE));
    CHECK(mpix::wait(self, both[1], 0) == MPI_ERR_REQUEST);
    CHECK(b.receive_cause() == with_cause(MPIX_CALL_WAIT, MPIX_CAUSE_INACTIVE));
    CHECK(mpix::next_epoch(self, 2, both) == MPI_ERR_REQUEST);
    CHECK(mpix::start(self, both[0]) == MPI_ERR_REQUEST);
    b.start();
    // Of the running epoch, and again; then of the next one.
    b.transfer();
    CHECK(mpix::start(self, both[0]) == MPI_ERR_REQUEST);
    CHECK(b.send_cause() == with_cause(MPIX_CALL_START, MPIX_CAUSE_ACTIVE));
    for (int i = 0; i < 2; ++i) CHECK(mpix::wait(self, 2, both) == MPI_SUCCESS);
    CHECK(mpix::start(self, 2, both) == MPI_SUCCESS);
    ++b.epoch;
    b.pair.fill(b.random);
    b.transfer();
    CHECK(mpix::wait(self, 2, both) == MPI_SUCCESS);
    b.end();
    // Completed by the host, which was not waited for by a kernel.
    b.start();
    b.transfer();
    b.end();
    CHECK(mpix::wait(self, 2, both) == MPI_ERR_REQUEST);
    CHECK(b.send_cause() == with_cause(MPIX_CALL_WAIT, MPIX_CAUSE_INACTIVE));
}

TEST_CASE("a contribution too many is refused, and does not count in the next epoch") {
    bench b;
    b.pair.sending()->contributors = 2;
    const auto contribute = [&](int p) { return mpix::pready_contribute(self, p, b.pair.send()); };
    CHECK(contribute(0) == MPI_ERR_REQUEST);
    CHECK(b.send_cause() == with_cause(MPIX_CALL_PREADY_CONTRIBUTE, MPIX_CAUSE_INACTIVE));
    for (int round = 0; round < 3; ++round) {
        b.start();
        CHECK(contribute(0) == MPI_SUCCESS);
        CHECK(contribute(0) == MPI_SUCCESS);
        CHECK(contribute(0) == MPI_ERR_ARG);
        CHECK(b.send_cause() == with_cause(MPIX_CALL_PREADY_CONTRIBUTE, MPIX_CAUSE_READY));
        CHECK(contribute(1) == MPI_SUCCESS);
        CHECK_FALSE(mpix::parrived(self, b.pair.receive(), 1));
        CHECK(contribute(1) == MPI_SUCCESS);
        b.transfer(2);
        b.end();
    }
}

TEST_CASE("a grid that is too large does not wait long") {
    mpix_prequest r{};
    for (const std::uint64_t configured : {0ull, 300'000'000'000ull, 5'000'000ull}) {
        r.stall_ns = configured;
        CHECK(default_limit_ns(&r) == configured);
        played_grid = {9, 256, 2, 32};
        CHECK(default_limit_ns(&r) == (configured == 5'000'000 ? configured : 10'000'000'000));
        played_grid = {};
    }
}
