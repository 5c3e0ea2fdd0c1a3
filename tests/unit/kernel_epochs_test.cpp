// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs that kernels start and end, on the ways of GPU threads, gone by host threads (MPIX_FAKE_GPU): clear-to-send
// from the receiver's group to the sender's, what is left to the engine, and the hosts' next activation.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace {

using namespace fake;

struct activation {
    std::uint64_t first, last;  // epochs
    std::uint64_t seed;
};

// What the two sides tell each other outside of mpix, so that the message can be compared before it is replaced.
struct signals {
    std::atomic<std::uint64_t> checked{0};  // the last epoch whose bytes the receiver has seen
    std::atomic<std::uint64_t> filled{0};   // the last epoch whose bytes the receiver may compare with
    std::atomic<const char *> failure{nullptr};

    void fail(const char *what) {
        const char *none = nullptr;
        failure.compare_exchange_strong(none, what);
    }
};

// By one of the ways; the same for all members.
int go_on(const mpix::host_group &group, MPIX_Prequest request, unsigned way, const std::function<void()> &between) {
    const MPIX_Prequest list[] = {request};
    if (way == 0) return mpix::next_epoch(group, request);
    if (way == 1) return mpix::next_epoch(group, 1, list);
    int code = way == 3 ? mpix::wait(group, 1, list) : mpix::wait(group, request);
    if (code != MPI_SUCCESS) return code;
    if (group.thread_rank() == 0) {
        between();
        if (way == 4) code = mpix::start(mpix::this_thread(), request);
    }
    if (way == 4) return broadcast_code(group, code);
    group.sync();
    return way == 2 ? mpix::start(group, request) : mpix::start(group, 1, list);
}

void sends(const mpix::host_group &group, const pair_shape &s, fake_pair &pair, signals &t, const activation &a) {
    std::mt19937_64 random(a.seed);
    mpix::prepared_send prepared{};
    bool by_handle = false;
    for (std::uint64_t epoch = a.first; epoch <= a.last; ++epoch) {
        if (epoch != a.first) {
            const unsigned way = random() % 5;
            const bool follows = by_handle && random() % 2 == 0;  // as if another group had gone on
            const int code =
                by_handle && !follows ? mpix::next_epoch(group, prepared) : go_on(group, pair.send(), way, [] {});
            if (follows) mpix::follow_epoch(prepared);
            if (code != MPI_SUCCESS) t.fail("the sender cannot go on to the next epoch");
            // By each member, as it may hand over to another group that starts a later epoch.
            if (code == MPI_SUCCESS && pair.epoch_of_sending_kernel() != epoch) t.fail("the host is not told an epoch");
        }
        if (group.thread_rank() == 0)
            for (backoff wait; t.checked.load(std::memory_order_acquire) + 1 < epoch && t.failure.load() == nullptr;)
                wait.pause();
        if (broadcast_bool(group, t.failure.load() != nullptr)) return;
        std::mt19937_64 data(a.seed + epoch);
        if (group.thread_rank() == 0) {
            pair.fill_out(data);
            t.filled.store(epoch, std::memory_order_release);
        }
        group.sync();
        if (!by_handle && random() % 3 == 0) {
            prepared = mpix::prepare_send(group, pair.send());
            by_handle = true;
        } else if (random() % 8 == 0) {
            by_handle = false;
        }
        for (int p = 0; p < s.senders; ++p) {
            const int code = by_handle ? mpix::pready(group, p, prepared) : mpix::pready(group, p, pair.send());
            if (code != MPI_SUCCESS) t.fail("a partition could not be marked ready");
        }
    }
}

void receives(const mpix::host_group &group, const pair_shape &s, fake_pair &pair, signals &t, const activation &a) {
    std::mt19937_64 random(a.seed + 1);
    mpix::prepared_receive prepared{};
    bool by_handle = false;
    for (std::uint64_t epoch = a.first; epoch <= a.last; ++epoch) {
        const bool all_at_once = random() % 3 == 0;
        if (!by_handle && random() % 3 == 0) {
            prepared = mpix::prepare_receive(group, pair.receive());
            by_handle = true;
        } else if (random() % 8 == 0) {
            by_handle = false;
        }
        if (all_at_once && mpix::wait(group, pair.receive()) != MPI_SUCCESS) t.fail("wait has failed");
        for (int j = 0; j < s.receivers; ++j)
            if ((by_handle ? mpix::wait_arrived(group, prepared, j) : mpix::wait_arrived(group, pair.receive(), j)) !=
                MPI_SUCCESS)
                t.fail("a partition has not arrived");
        for (backoff wait; t.filled.load(std::memory_order_acquire) < epoch;) wait.pause();
        if (!pair.right(0, s.receivers)) t.fail("what has arrived is not what was sent");
        group.sync();
        if (broadcast_bool(group, t.failure.load() != nullptr)) return;
        // The sender marks its next partitions ready before or after start.
        const bool early = random() % 2 == 0;
        const auto tell = [&] {
            if (group.thread_rank() == 0) t.checked.store(epoch, std::memory_order_release);
        };
        if (early) tell();
        const unsigned way = random() % 5;
        if (epoch != a.last) {
            // Now and then so late that the sender does not wait for it.
            if (early && random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
            const bool follows = by_handle && random() % 2 == 0;
            if ((by_handle && !follows ? mpix::next_epoch(group, prepared)
                                       : go_on(group, pair.receive(), way, [&] { pair.poison_in(); })) != MPI_SUCCESS)
                t.fail("the receiver cannot go on to the next epoch");
            if (follows) mpix::follow_epoch(prepared);
        }
        if (!early) tell();
    }
}

// Partitions that the engine has moved in last epochs, and activations of whose end no host was told.
struct counts {
    std::uint64_t deferred = 0, quiet = 0;
};

const char *play(const pair_shape &s, int threads, std::uint64_t seed, counts &seen) {
    std::mt19937_64 random(seed);
    fake_pair pair(s);
    signals t;
    std::uint64_t last = 0;
    for (int activations = 0; activations < 4 && t.failure.load() == nullptr; ++activations) {
        const activation a{last + 1, last + 1 + random() % 12, random()};
        last = a.last;
        pair.poison_in();
        pair.start_receive(a.first);
        pair.clear_to_send(a.first);
        pair.start_send(a.first);
        std::atomic<int> ended{0};
        std::thread sender([&] {
            mpix::host_launch(1, threads, [&](const mpix::host_group &g) { sends(g, s, pair, t, a); });
            ended.fetch_add(1);
        });
        std::thread receiver([&] {
            mpix::host_launch(1, threads, [&](const mpix::host_group &g) { receives(g, s, pair, t, a); });
            ended.fetch_add(1);
        });
        for (backoff wait; ended.load() != 2; wait.pause()) pair.progress_of_kernels(a.first);
        sender.join();
        receiver.join();
        // The hosts' Wait: the message is complete.
        for (backoff wait; t.failure.load() == nullptr && !pair.progress_of_kernels(a.first); wait.pause()) {
            if (!pair.ended_quietly(a.last)) continue;
            ++seen.quiet;
            break;
        }
        if (a.first != a.last &&
            (pair.epoch_of_sending_kernel() != a.last || pair.epoch_of_receiving_kernel() != a.last))
            t.fail("the hosts are not told the last epoch");
        if (pair.taken_error() != 0 || pair.receiver_erred()) t.fail("an error was kept");
        pair.end_of_kernels(a.last);
        // Inactive now: neither can be started by a kernel.
        if (mpix::start(mpix::this_thread(), pair.send()) != MPI_ERR_REQUEST)
            t.fail("a kernel has started an inactive send");
        pair.taken_error();
    }
    seen.deferred += pair.deferred();
    return t.failure.load();
}

// A group that has both sides of the pair, beside the hosts' progress.
template <class Body>
void by_one_group(fake_pair &pair, int threads, const Body &body) {
    std::atomic<bool> ended{false};
    std::thread group([&] {
        mpix::host_launch(1, threads, body);
        ended.store(true);
    });
    for (backoff wait; !ended.load(); wait.pause()) pair.progress_of_kernels(1);
    group.join();
}

}  // namespace

TEST_CASE("groups that start and end epochs themselves, as threads of a GPU do") {
    std::mt19937_64 random(Catch::rngSeed());
    counts seen;
    for (int round = 0; round < 40; ++round) {
        pair_shape s{};
        s.receivers = 1 + static_cast<int>(random() % 3);
        s.inline_buffer = round % 2 == 0;
        s.senders = s.receivers * (s.inline_buffer ? 1 : 1 + static_cast<int>(random() % 3));
        constexpr std::uint64_t sizes[] = {8, 16, 24, 48, 5, 100, 256};
        s.bytes = sizes[random() % std::size(sizes)];
        s.inline_from = 1;
        s.sole = random() % 2 == 0;
        const int threads = 1 + static_cast<int>(random() % 3);
        CAPTURE(round, s.senders, s.receivers, s.bytes, s.inline_buffer, s.sole, threads);
        const char *const failure = play(s, threads, random(), seen);
        INFO(std::string(failure == nullptr ? "" : failure));
        REQUIRE(failure == nullptr);
    }
    CHECK(seen.deferred != 0);
    CHECK(seen.quiet != 0);
}

TEST_CASE("a handle that was made in the first epoch knows the later ones") {
    std::mt19937_64 data(Catch::rngSeed());
    constexpr std::uint64_t last = 10;
    for (const bool inline_buffer : {true, false}) {
        for (const int threads : {1, 4}) {
            pair_shape s{};
            s.senders = s.receivers = 2;
            s.bytes = 16;
            s.inline_buffer = inline_buffer;
            s.inline_from = 1;
            fake_pair pair(s);
            pair.poison_in();
            pair.start_receive(1);
            pair.clear_to_send(1);
            pair.start_send(1);
            signals t;
            std::atomic<std::uint64_t> known{0}, quick{0};
            // One group has both sides, and starts the receive first: so clear-to-send is there.
            by_one_group(pair, threads, [&](const mpix::host_group &group) {
                mpix::prepared_send handle = mpix::prepare_send(group, pair.send());
                for (std::uint64_t epoch = 1;; ++epoch) {
                    if (group.thread_rank() == 0) pair.fill_out(data);
                    group.sync();
                    for (int p = 0; p < s.senders; ++p)
                        if (mpix::pready(group, p, handle) != MPI_SUCCESS) t.fail("pready");
                    if (mpix::wait(group, pair.receive()) != MPI_SUCCESS) t.fail("wait");
                    if (!pair.right(0, s.receivers)) t.fail("what has arrived is not what was sent");
                    if (epoch == last) break;
                    if (mpix::next_epoch(group, pair.receive()) != MPI_SUCCESS) t.fail("next_epoch of the receive");
                    if (mpix::next_epoch(group, handle) != MPI_SUCCESS) t.fail("next_epoch of the send");
                    if (group.thread_rank() == 0) known += handle.state.epoch == epoch + 1;
                    // Clear-to-send is there; who looks the request up notes it.
                    if (group.thread_rank() == 0)
                        quick += mpix::detail::load_relaxed(&pair.sending()->open_word) >> 1 <= epoch;
                    group.sync();
                }
            });
            CAPTURE(inline_buffer, threads);
            INFO(std::string(t.failure.load() == nullptr ? "" : t.failure.load()));
            CHECK(t.failure.load() == nullptr);
            CHECK(known == last - 1);
            CHECK(quick >= last - 2);  // not yet at the end of the first epoch
        }
    }
}

TEST_CASE("a send and a receive go on together by their handles") {
    std::mt19937_64 data(Catch::rngSeed());
    constexpr std::uint64_t last = 20;
    for (const bool inline_buffer : {true, false}) {
        for (const int threads : {1, 3, 70}) {
            pair_shape s{};
            s.senders = s.receivers = 2;
            s.bytes = 24;
            s.inline_buffer = inline_buffer;
            s.inline_from = 1;
            fake_pair pair(s);
            pair.poison_in();
            pair.start_receive(1);
            pair.clear_to_send(1);
            pair.start_send(1);
            signals t;
            by_one_group(pair, threads, [&](const mpix::host_group &group) {
                mpix::prepared_send send{};
                mpix::prepared_receive receive{};
                for (std::uint64_t epoch = 1; t.failure.load() == nullptr; ++epoch) {
                    if (epoch <= 2) {  // in the first epoch there may be nothing to know
                        send = mpix::prepare_send(group, pair.send());
                        receive = mpix::prepare_receive(group, pair.receive());
                    }
                    if (group.thread_rank() == 0) pair.fill_out(data);
                    group.sync();
                    for (int p = 0; p < s.senders; ++p)
                        if (mpix::pready(group, p, send) != MPI_SUCCESS) t.fail("pready");
                    for (int p = 0; p < s.receivers; ++p)
                        if (mpix::wait_arrived(group, receive, p) != MPI_SUCCESS) t.fail("wait_arrived");
                    if (!pair.right(0, s.receivers)) t.fail("what has arrived is not what was sent");
                    group.sync();
                    if (epoch == last) break;
                    if (mpix::next_epoch(group, send, receive) != MPI_SUCCESS) t.fail("next_epoch");
                    if (epoch >= 2 && (send.state.epoch != epoch + 1 || receive.state.epoch != epoch + 1))
                        t.fail("a handle is not of the new epoch");
                    group.sync();
                    if (broadcast_bool(group, t.failure.load() != nullptr)) break;
                }
            });
            CAPTURE(inline_buffer, threads);
            INFO(std::string(t.failure.load() == nullptr ? "" : t.failure.load()));
            CHECK(t.failure.load() == nullptr);
            CHECK(pair.epoch_of_sending_kernel() == last);
            CHECK(pair.epoch_of_receiving_kernel() == last);
        }
    }
}

namespace {

// Two partitions on each side, which one thread sends and receives.
struct one_thread {
    explicit one_thread(bool inline_buffer = true, bool matched_late = false)
        : pair(shape(inline_buffer, matched_late)) {}

    static pair_shape shape(bool inline_buffer, bool matched_late) {
        pair_shape s{};
        s.senders = s.receivers = 2;
        s.bytes = 16;
        s.inline_buffer = inline_buffer;
        s.inline_from = 1;
        s.matched_late = matched_late;
        return s;
    }
    void begin() {
        pair.poison_in();
        pair.start_receive(1);
        pair.clear_to_send(1);
        pair.start_send(1);
    }
    void exchange() {
        pair.fill_out(data);
        for (int p = 0; p < 2; ++p) REQUIRE(mpix::pready(self, p, pair.send()) == MPI_SUCCESS);
        for (int p = 0; p < 2; ++p) REQUIRE(mpix::wait_arrived(self, pair.receive(), p) == MPI_SUCCESS);
        CHECK(pair.right(0, 2));
    }
    void go_on() {
        REQUIRE(mpix::next_epoch(self, pair.receive()) == MPI_SUCCESS);
        REQUIRE(mpix::next_epoch(self, pair.send()) == MPI_SUCCESS);
    }

    std::mt19937_64 data{Catch::rngSeed()};
    const mpix::thread_group self = mpix::this_thread();
    fake_pair pair;
};

}  // namespace

TEST_CASE("a handle does not make a partition ready twice, nor one of a later epoch") {
    for (const bool inline_buffer : {true, false}) {
        CAPTURE(inline_buffer);
        one_thread t(inline_buffer);
        t.begin();
        mpix::prepared_send old{};
        for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
            const mpix::prepared_send send = mpix::prepare_send(t.self, t.pair.send());
            t.pair.fill_out(t.data);
            CHECK(mpix::pready(t.self, 0, send) == MPI_SUCCESS);
            CHECK(t.pair.taken_error() == 0);
            if (epoch >= 3) {
                CHECK(mpix::pready(t.self, 0, send) == MPI_ERR_ARG);
                CHECK(t.pair.taken_error() != 0);
                CHECK(mpix::pready(t.self, 1, old) == MPI_ERR_ARG);
                t.pair.taken_error();
            }
            CHECK(mpix::pready(t.self, 1, send) == MPI_SUCCESS);
            REQUIRE(mpix::wait(t.self, t.pair.receive()) == MPI_SUCCESS);
            CHECK(t.pair.right(0, 2));
            old = send;
            t.go_on();
        }
    }
}

TEST_CASE("a handle that knows nothing stays so") {
    one_thread t(true, true);
    t.pair.start_send(1);
    t.pair.start_receive(1);
    mpix::prepared_send send = mpix::prepare_send(t.self, t.pair.send());
    mpix::prepared_receive receive = mpix::prepare_receive(t.self, t.pair.receive());
    mpix::follow_epoch(send, 3);
    mpix::follow_epoch(receive, 3);
    CHECK(send.state.epoch == 0);
    CHECK(receive.state.epoch == 0);
    t.pair.match();
    t.pair.clear_to_send(1);
    t.pair.fill_out(t.data);
    for (int p = 0; p < 2; ++p) CHECK(mpix::pready(t.self, p, send) == MPI_SUCCESS);
    for (int p = 0; p < 2; ++p) CHECK(mpix::wait_arrived(t.self, receive, p) == MPI_SUCCESS);
    CHECK(t.pair.right(0, 2));
}

TEST_CASE("a receive in place of a send is refused by handles, too") {
    one_thread t;
    t.begin();
    const mpix::prepared_send wrong = mpix::prepare_send(t.self, t.pair.receive());
    CHECK(mpix::pready(t.self, 1, wrong) == MPI_ERR_REQUEST);
    CHECK(t.pair.receiver_erred());
}

TEST_CASE("of a send and a receive neither goes on before both are over") {
    one_thread t;
    t.begin();
    t.exchange();
    t.go_on();
    mpix::prepared_send send = mpix::prepare_send(t.self, t.pair.send());
    mpix::prepared_receive receive = mpix::prepare_receive(t.self, t.pair.receive());
    t.pair.fill_out(t.data);
    CHECK(mpix::pready(t.self, 0, send) == MPI_SUCCESS);
    CHECK(mpix::wait_arrived(t.self, receive, 0) == MPI_SUCCESS);
    for (int i = 0; i < 3; ++i) {
        CHECK(mpix::next_epoch(t.self, send, receive, 0) == MPI_ERR_PENDING);
        CHECK(send.state.epoch == 2);
        CHECK(receive.state.epoch == 2);
        CHECK(t.pair.epoch_of_receiving_kernel() == 2);
    }
    CHECK(mpix::pready(t.self, 1, send) == MPI_SUCCESS);
    CHECK(mpix::wait_arrived(t.self, receive, 1) == MPI_SUCCESS);
    CHECK(t.pair.right(0, 2));
    CHECK(mpix::next_epoch(t.self, send, receive, 0) == MPI_SUCCESS);
    CHECK(t.pair.epoch_of_receiving_kernel() == 3);
}

TEST_CASE("a handle of an older epoch goes on with the running one") {
    one_thread t;
    t.begin();
    t.exchange();
    t.go_on();
    mpix::prepared_send send = mpix::prepare_send(t.self, t.pair.send());
    mpix::prepared_receive receive = mpix::prepare_receive(t.self, t.pair.receive());
    for (int epoch = 2; epoch < 5; ++epoch) {
        t.exchange();
        t.go_on();
    }
    t.exchange();
    CHECK(mpix::next_epoch(t.self, receive) == MPI_SUCCESS);
    CHECK(mpix::next_epoch(t.self, send) == MPI_SUCCESS);
    CHECK(t.pair.epoch_of_sending_kernel() == 6);
    CHECK(t.pair.epoch_of_receiving_kernel() == 6);
    t.exchange();
}
