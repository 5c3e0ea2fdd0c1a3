// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels of MPIX_*_enqueue do, on the ways of GPU threads, gone by host threads (MPIX_FAKE_GPU): activations of
// several epochs, each of them with a start and a wait; and waits after one that has timed out.
#include "device/enqueue/stream_epochs.cuh"

#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace {

using namespace fake;

struct signals {
    std::atomic<std::uint64_t> checked{0};  // the last epoch whose bytes the receiver has seen
    std::atomic<std::uint64_t> filled{0};   // the last epoch whose bytes the receiver may compare with
    std::atomic<const char *> failure{nullptr};

    void require(bool good, const char *what) {
        const char *none = nullptr;
        if (!good) failure.compare_exchange_strong(none, what);
    }
};

// One kernel: what `body(group)` returns.
template <class Body>
int by_block(int threads, const Body &body) {
    std::atomic<int> code{MPI_SUCCESS};
    mpix::host_launch(1, threads, [&](const mpix::host_group &group) {
        if (const int mine = body(group); mine != MPI_SUCCESS) code.store(mine);
    });
    return code.load();
}
int start(int threads, MPIX_Prequest request) {
    const MPIX_Prequest list[] = {request};
    return by_block(threads, [&](const auto &group) { return mpix::gpu::start_all_in_order(group, 1, list); });
}
int wait(int threads, MPIX_Prequest request) {
    const MPIX_Prequest list[] = {MPIX_PREQUEST_NULL, request};
    return by_block(threads, [&](const auto &group) { return mpix::gpu::wait_for_all_in_order(group, 2, list); });
}
int ready(int threads, MPIX_Prequest send, int partitions) {
    return by_block(threads, [&](const auto &group) { return mpix::pready_range(group, 0, partitions - 1, send); });
}

// Epochs first to last, of which the host has started the first one.
void sends(const pair_shape &s, fake_pair &pair, signals &t, int threads, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t epoch = first; epoch <= last && t.failure.load() == nullptr; ++epoch) {
        t.require(start(threads, pair.send()) == MPI_SUCCESS, "the send has not started");
        for (backoff pause; t.checked.load() + 1 < epoch && t.failure.load() == nullptr;) pause.pause();
        std::mt19937_64 data(epoch);
        pair.fill_out(data);
        t.filled.store(epoch);
        t.require(ready(threads, pair.send(), s.senders) == MPI_SUCCESS, "a partition could not be marked ready");
        t.require(wait(threads, pair.send()) == MPI_SUCCESS, "the wait for the send has failed");
    }
}
void receives(const pair_shape &s, fake_pair &pair, signals &t, int threads, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t epoch = first; epoch <= last && t.failure.load() == nullptr; ++epoch) {
        t.require(start(threads, pair.receive()) == MPI_SUCCESS, "the receive has not started");
        t.require(wait(threads, pair.receive()) == MPI_SUCCESS, "the wait for the receive has failed");
        for (backoff pause; t.filled.load() < epoch;) pause.pause();
        t.require(pair.right(0, s.receivers), "what has arrived is not what was sent");
        pair.poison_in();
        t.checked.store(epoch);
    }
}

const char *play(const pair_shape &s, int threads, std::mt19937_64 &random) {
    fake_pair pair(s);
    signals t;
    std::uint64_t last = 0;
    pair.poison_in();
    for (int activations = 0; activations < 3 && t.failure.load() == nullptr; ++activations) {
        const std::uint64_t first = last + 1;
        last = first + random() % 5;
        pair.start_receive(first);
        pair.clear_to_send(first);
        pair.start_send(first);
        std::atomic<int> ended{0};
        std::thread sender([&] { sends(s, pair, t, threads, first, last), ended.fetch_add(1); });
        std::thread receiver([&] { receives(s, pair, t, threads, first, last), ended.fetch_add(1); });
        for (backoff pause; ended.load() != 2; pause.pause()) pair.progress_of_kernels(first);
        sender.join();
        receiver.join();
        t.require(first == last || (pair.epoch_of_sending_kernel() == last && pair.epoch_of_receiving_kernel() == last),
                  "the hosts are not told the last epoch");
        t.require(pair.taken_error() == 0 && !pair.receiver_erred(), "an error was kept");
        pair.end_of_kernels(last);
        t.require(start(threads, pair.send()) == MPI_ERR_REQUEST, "an inactive send was started");
        t.require(pair.taken_error() >> 48 == with_cause(MPIX_CALL_START, MPIX_CAUSE_INACTIVE),
                  "no such error is kept");
    }
    return t.failure.load();
}

}  // namespace

TEST_CASE("epochs in the order of a stream, as threads of a GPU run them") {
    std::mt19937_64 random(Catch::rngSeed());
    for (int round = 0; round < 12; ++round) {
        pair_shape s{};
        s.receivers = 1 + static_cast<int>(random() % 3);
        s.inline_buffer = round % 2 == 0;
        s.senders = s.receivers * (s.inline_buffer ? 1 : 1 + static_cast<int>(random() % 3));
        constexpr std::uint64_t sizes[] = {8, 16, 48, 5, 100};
        s.bytes = sizes[random() % std::size(sizes)];
        s.inline_from = 1;
        const int threads = 1 + static_cast<int>(random() % 3);
        CAPTURE(round, s.senders, s.receivers, s.bytes, s.inline_buffer, threads);
        const char *const failure = play(s, threads, random);
        INFO(std::string(failure == nullptr ? "" : failure));
        REQUIRE(failure == nullptr);
    }
}

TEST_CASE("a stream's first start after the host's does nothing, and later ones need a wait") {
    pair_shape s{};
    s.senders = s.receivers = 2;
    s.bytes = 16;
    fake_pair pair(s);
    std::mt19937_64 random(Catch::rngSeed());
    pair.fill(random);
    REQUIRE(start(2, pair.send()) == MPI_ERR_REQUEST);  // no host has started it
    pair.taken_error();
    pair.start_receive(1);
    pair.clear_to_send(1);
    pair.start_send(1);
    for (const MPIX_Prequest request : {pair.send(), pair.receive()}) REQUIRE(start(2, request) == MPI_SUCCESS);
    CHECK(pair.sending()->started_epoch == 0);
    CHECK(pair.receiving()->kernel_clear_to_send[0] == 0);
    REQUIRE(ready(2, pair.send(), s.senders) == MPI_SUCCESS);
    for (const MPIX_Prequest request : {pair.send(), pair.receive()}) {
        REQUIRE(wait(2, request) == MPI_SUCCESS);
        REQUIRE(start(2, request) == MPI_SUCCESS);
        REQUIRE(start(2, request) == MPI_ERR_REQUEST);
    }
    CHECK(pair.sending()->started_epoch == 2);
    CHECK(pair.receiving()->kernel_clear_to_send[0] >> 1 == 2);
    const std::uint64_t active = with_cause(MPIX_CALL_START, MPIX_CAUSE_ACTIVE);
    CHECK(pair.taken_error() >> 48 == active);
    REQUIRE(start(2, MPIX_PREQUEST_NULL) == MPI_ERR_REQUEST);
    REQUIRE(wait(2, MPIX_PREQUEST_NULL) == MPI_SUCCESS);
}

TEST_CASE("after a wait in a stream has timed out, others for the same epoch do not wait") {
    pair_shape s{};
    s.senders = s.receivers = 1;
    s.bytes = 16;
    fake_pair pair(s);
    std::mt19937_64 random(Catch::rngSeed());
    pair.fill(random);
    pair.start_receive(1);
    pair.clear_to_send(1);
    pair.start_send(1);
    // An error of another kind does not count.
    REQUIRE(mpix::wait_arrived(mpix::this_thread(), pair.receive(), 5) == MPI_ERR_ARG);
    CHECK_FALSE(mpix::gpu::has_timed_out(pair.receiving()));
    pair.sending()->stall_ns = 1'000'000;
    REQUIRE(wait(2, pair.send()) == MPI_ERR_PENDING);
    CHECK(mpix::gpu::has_timed_out(pair.sending()));
    pair.sending()->stall_ns = 0;  // for ever
    REQUIRE(wait(2, pair.send()) == MPI_ERR_PENDING);
    REQUIRE(start(2, pair.send()) == MPI_SUCCESS);  // of the epoch that the host has started
    // What comes late is not lost.
    REQUIRE(ready(2, pair.send(), 1) == MPI_SUCCESS);
    REQUIRE(wait(2, pair.send()) == MPI_SUCCESS);
    REQUIRE(wait(2, pair.receive()) == MPI_SUCCESS);
    CHECK(pair.right(0, 1));
    REQUIRE(start(2, pair.send()) == MPI_SUCCESS);
    CHECK_FALSE(mpix::gpu::has_timed_out(pair.sending()));
}
