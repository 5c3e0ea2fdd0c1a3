// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory by two copies, where the fast path of MPI_Pready does not count: how a send finds out that its epoch is
// over; and a receive that copies a message out at once.
#include <mpix/detail/order.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

#include "host/transfer/receive.h"
#include "host/transfer/send.h"

#include "tests/backoff.hpp"
#include "tests/unit/peer_process.hpp"

using namespace mpix;

namespace {

// The one that all test cases talk to.
peer_process &peer() {
    static peer_process one;
    return one;
}
void meet(bool one_thread) {
    static const bool met = [] {
        fake_mpi::neighbours.emplace_back(reinterpret_cast<const char *>(&peer().itself), sizeof peer().itself);
        config().single_copy_bytes = ~std::uint64_t{0};
        return transport::use_only("shm").ok();
    }();
    REQUIRE(met);
    start_setup({.one_thread = one_thread});
}

// A send of ours, matched with a receive whose landing is seen here, with one slot.
struct matched_send {
    const std::uint64_t bytes;  // of all partitions
    std::vector<char> from;
    std::shared_ptr<send_request> send;
    transport::region landing, arrival;
    explicit matched_send(std::uint64_t partition_bytes = elements)
        : bytes(partitions * partition_bytes), from(bytes), send(make<send_request>(from, 1, partition_bytes)) {
        accept_body accept{.partitions = partitions, .bytes = bytes, .slots = 1, .words = peer().itself.inbox};
        for (auto [made, size, wire] : {std::tuple{&landing, bytes, &accept.landing},
                                        std::tuple{&arrival, bytes_with_taken(partitions), &accept.arrival}}) {
            REQUIRE(transport::node_memory().allocate(size, transport::on_host, *made).ok());
            REQUIRE(transport::node_memory().describe(*made, *wire).ok());
        }
        detail::store_relaxed(complete(), 0);
        peer().says({.from = 5, .to = send->number, .body = accept});
        REQUIRE(send->home->landing != nullptr);
        REQUIRE(send->home->far == nullptr);
    }
    ~matched_send() { leave(send); }
    static std::uint64_t *complete() { return &static_cast<mpix_words *>(peer().words.address)->complete; }
    void start(std::uint64_t epoch) {
        std::memset(from.data(), static_cast<int>('a' + epoch % 23), bytes);
        send->start();
    }
    void clear(std::uint64_t epoch) { detail::store_release(&send->words->clear_to_send, epoch); }
    bool has_come(std::uint64_t epoch) const {
        for (int p = 0; p < partitions; ++p)
            if (detail::load_acquire(static_cast<std::uint64_t *>(arrival.address) + p) != epoch) return false;
        return std::memcmp(landing.address, from.data(), bytes) == 0;
    }
};

}  // namespace

TEST_CASE("with several threads, a look at the send tells of the epoch's end") {
    meet(false);
    matched_send m;
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        if (epoch != 3) m.clear(epoch);
        m.start(epoch);
        m.clear(epoch);  // of the third one: after Start
        CHECK(m.send->ready(1) == MPI_SUCCESS);
        CHECK(m.send->ready(1) == MPI_ERR_ARG);
        CHECK_FALSE(m.send->done());
        CHECK(m.send->ready(0) == MPI_SUCCESS);
        CHECK(m.has_come(epoch));
        CHECK(m.send->words->all_ready == epoch - 1);
        CHECK(*m.complete() == epoch - 1);
        CHECK(m.send->ready(0) == MPI_ERR_ARG);
        CHECK(m.send->done());
        CHECK(m.send->words->all_ready == epoch);
        CHECK(*m.complete() == epoch);
        CHECK(m.send->home->ready_count == epoch * partitions);
        CHECK(m.send->retire(MPI_STATUS_IGNORE).ok());
        CHECK(m.send->ready(0) == MPI_ERR_REQUEST);
    }
}

TEST_CASE("a send that has reached its receiver ends well, though the receiver's process has ended since") {
    meet(GENERATE(false, true));
    matched_send m;
    m.clear(1);
    m.start(1);
    for (int p = 0; p < partitions; ++p) REQUIRE(m.send->ready(p) == MPI_SUCCESS);
    {
        const std::lock_guard lock(setup_mutex());
        m.send->peer_ended();
    }
    CHECK(m.send->done());
    CHECK(m.send->retire(MPI_STATUS_IGNORE).ok());
}

TEST_CASE("with one thread, the last Pready does") {
    meet(true);
    matched_send m;
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        m.clear(epoch);
        m.start(epoch);
        CHECK(m.send->ready(1) == MPI_SUCCESS);
        CHECK(*m.complete() == epoch - 1);
        CHECK(m.send->ready(1) == MPI_ERR_ARG);
        CHECK(m.send->ready(0) == MPI_SUCCESS);
        CHECK(m.has_come(epoch));
        CHECK(m.send->words->all_ready == epoch);
        CHECK(*m.complete() == epoch);
        CHECK(end_of(*m.send).ok());
    }
}

TEST_CASE("partitions that were left to the engine and others end an epoch together") {
    meet(GENERATE(false, true));
    matched_send m;
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        m.start(epoch);
        CHECK(m.send->ready(1) == MPI_SUCCESS);
        m.clear(epoch);
        CHECK(m.send->ready(0) == MPI_SUCCESS);
        CHECK(end_of(*m.send).ok());
        CHECK(m.has_come(epoch));
        CHECK(*m.complete() == epoch);
    }
}

// Clear-to-send comes after Start, or later. So the threads take the fast path or the full one, or leave partitions to
// the engine.
TEST_CASE("a send is not done before all its partitions have come") {
    meet(false);
    matched_send m(16 * 1024);
    const std::uint64_t epochs = 2000;
    std::atomic<std::uint64_t> running{0};
    std::atomic<int> ended{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < partitions; ++t)
        threads.emplace_back([&, t] {
            for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
                backoff wait;
                for (unsigned k = 1; running.load() < epoch; ++k)
                    if (k % 256 == 0) wait.pause();
                if (m.send->ready(t) != MPI_SUCCESS) ++refused;
                ++ended;
            }
        });
    int too_soon = 0;
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        m.start(epoch);
        const bool late = epoch % 4 == 0;  // then partitions are left to the engine, maybe not all
        if (!late) m.clear(epoch);
        running.store(epoch);
        if (late) m.clear(epoch);
        REQUIRE(end_of(*m.send).ok());
        too_soon += !m.has_come(epoch);
        backoff wait;
        while (ended.load() != static_cast<int>(epoch) * partitions) wait.pause();
    }
    for (std::thread &t : threads) t.join();
    CHECK(too_soon == 0);
    CHECK(refused == 0);
}

// What the sender does is done here: it stores into our landing, and sets flags and `complete`.
TEST_CASE("a message that was copied out at once is not copied again") {
    meet(GENERATE(false, true));
    static int tag = 10;
    std::vector<char> into(message);
    const auto receive = make<receive_request>(into, ++tag);
    const auto number = static_cast<std::uint64_t>(tag);
    peer().says({.from = number,
                 .body = offer_body{.communicator = 99,
                                    .tag = tag,
                                    .partitions = partitions,
                                    .bytes = message,
                                    .words = peer().itself.inbox}});
    peer().says({.from = number, .to = receive->number, .body = connect_body{}});
    REQUIRE(receive->home->landing != nullptr);
    REQUIRE(receive->home->taken != nullptr);
    const auto send = [&](std::uint64_t epoch, int p) {
        const std::uint64_t slot = detail::slot_of(epoch, receive->home->slots) * message;
        std::memset(receive->home->landing + slot + p * static_cast<int>(elements), static_cast<int>(epoch), elements);
        detail::store_release(&receive->home->flags[p], epoch);
    };
    const auto arrived = [&](int p) {
        bool flag = false;
        CHECK(receive->arrived(p, flag).ok());
        return flag;
    };
    for (std::uint64_t epoch = 1; epoch <= 6; ++epoch) {
        CAPTURE(epoch);
        receive->start();
        send(epoch, 1);
        const bool asks = epoch % 3 == 0;
        if (asks) {
            CHECK(arrived(1));
            CHECK(into[elements] == static_cast<char>(epoch));
            into[elements] = 'x';  // the user goes on with it
        }
        CHECK_FALSE(receive->done_exactly());
        if (asks) CHECK_FALSE(arrived(0));
        send(epoch, 0);
        if (epoch % 2 == 0) detail::store_release(&receive->words->complete, epoch);
        CHECK(receive->done_exactly());
        CHECK(into[0] == static_cast<char>(epoch));
        CHECK(into[elements] == (asks ? 'x' : static_cast<char>(epoch)));
        into[0] = 'y';
        CHECK(arrived(0));
        CHECK(into[0] == 'y');
        CHECK(receive->retire(MPI_STATUS_IGNORE).ok());
    }
    leave(receive);
}
