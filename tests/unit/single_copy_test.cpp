// SPDX-License-Identifier: BSD-3-Clause
//
// A single copy between two processes: either of them makes it, each partition is copied once, and the sender's Wait returns
// when nobody reads the send buffer any more.
#include <mpix/detail/order.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "host/protocol/copying_side.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"

#include "tests/unit/peer_process.hpp"

using namespace mpix;

namespace {

bool holds(const char *at, char value, std::uint64_t bytes = elements) {
    return std::all_of(at, at + bytes, [value](char c) { return c == value; });
}

// The one that all test cases talk to.
peer_process &peer() {
    static peer_process one;
    return one;
}
bool met() {
    static const bool may = meet(peer());
    return may;
}

void start(send_request &send, std::uint64_t epoch) {
    send.start();
    detail::store_relaxed(&send.words->clear_to_send, epoch);
}

// For longer than a sender waits for its receiver.
bool stays_active(request &r) {
    const auto since = wait_clock::now();
    while (seconds_since(since) < 0.05)
        if (r.done()) return false;
    return true;
}

}  // namespace

TEST_CASE("what the receiver reads the sender does not write, and it waits for the end of the read") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = make<send_request>(sent, 1);
    peer().accepts(*send);
    start(*send, 1);
    for (int p = 0; p < partitions; ++p) CHECK(send->ready(p) == MPI_SUCCESS);
    for (int p = 0; p < partitions; ++p) CHECK(peer().flags()[p] == 1);
    CHECK(holds(peer().buffer, 0, message));
    detail::store_release_gpu(&peer().taken()[0], 2);
    detail::store_release_gpu(&peer().taken()[1], 1);  // it is reading this one
    CHECK(stays_active(*send));
    CHECK(peer().taken()[1] == 1);
    detail::store_release_gpu(&peer().taken()[1], 2);
    CHECK(end_of(*send).ok());
    CHECK(holds(peer().buffer, 0, message));
    leave(send);
}

TEST_CASE("what nobody reads the sender's Wait writes, also the rest of a message") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = make<send_request>(sent, 1);
    peer().accepts(*send);
    start(*send, 1);
    for (int p = 0; p < partitions; ++p) CHECK(send->ready(p) == MPI_SUCCESS);
    const bool one_is_read = GENERATE(false, true);
    if (one_is_read) detail::store_release_gpu(&peer().taken()[0], 2);
    CHECK(end_of(*send).ok());
    CHECK(holds(peer().buffer, one_is_read ? 0 : 7));
    CHECK(holds(peer().buffer + elements, 7));
    for (int p = 0; p < partitions; ++p) CHECK(peer().taken()[p] == 2);
    leave(send);
}

TEST_CASE("what Pready writes is marked as copied before its flag is set") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = make<send_request>(sent, 1);
    peer().accepts(*send);
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        start(*send, epoch);
        std::fill(sent.begin(), sent.end(), static_cast<char>(epoch));
        CHECK(send->ready(1) == MPI_SUCCESS);
        CHECK(peer().flags()[1] == epoch);
        CHECK(peer().taken()[1] == (epoch == 2 ? 4 : 0));  // in the second epoch the sender's side has its turn
        CHECK(holds(peer().buffer + elements, epoch == 2 ? 2 : 0));
        CHECK(send->ready(0) == MPI_SUCCESS);
        CHECK(end_of(*send).ok());
        CHECK(holds(peer().buffer, static_cast<char>(epoch), message));
    }
    leave(send);
}

TEST_CASE("a receive reads what it looks for, once, and leaves to the sender what it cannot read") {
    if (!met()) return;
    std::vector<char> received(message);
    static int tag = 2;  // of each run of this test case, since what is left of the one before would match
    ++tag;
    const auto receive = make<receive_request>(received, tag);
    const auto from = static_cast<std::uint64_t>(tag);
    offer_body offer{
        .communicator = 99, .tag = tag, .partitions = partitions, .bytes = message, .words = peer().itself.inbox};
    offer.flags.set(offer_flag::in_place);
    const bool readable = GENERATE(true, false);
    transport::describe_buffer(readable ? peer().buffer : reinterpret_cast<char *>(64), message, offer.send_buffer);
    peer().says({.from = from, .body = offer});
    peer().says({.from = from, .to = receive->number, .body = connect_body{}});
    REQUIRE(receive->home->far != nullptr);
    std::uint64_t *const flags = receive->home->flags, *const taken = receive->home->taken;
    receive->start();
    std::memset(peer().buffer, 3, message);
    const auto arrived = [&](int p) {
        bool flag = false;
        CHECK(receive->arrived(p, flag).ok());
        return flag;
    };
    CHECK_FALSE(arrived(1));
    detail::store_release(&flags[1], 1);
    CHECK(arrived(1) == readable);
    CHECK(taken[1] == (readable ? 2 : 0));
    CHECK(holds(received.data() + elements, readable ? 3 : 0));
    CHECK_FALSE(arrived(0));
    CHECK(holds(received.data(), 0));

    std::memset(peer().buffer, 4, message);
    detail::store_release(&flags[0], 1);
    const bool all_told = GENERATE(false, true);
    if (all_told) detail::store_release(&receive->words->complete, 1);
    if (!readable) {
        CHECK_FALSE(receive->done());
        CHECK(taken[0] == 0);
        for (int p : {0, 1}) {  // as the sender does
            std::memset(received.data() + p * static_cast<std::ptrdiff_t>(elements), 5, elements);
            detail::store_release_gpu(&taken[p], 2);
        }
    }
    CHECK(end_of(*receive).ok());
    CHECK(holds(received.data(), readable ? 4 : 5));
    CHECK(holds(received.data() + elements, readable ? 3 : 5));
    leave(receive);
}

TEST_CASE("both sides are tried, then the faster one copies, and now and then the other") {
    for (std::uint64_t epoch = 1; epoch <= copy_trials; ++epoch)
        CHECK(receiver_copies(epoch, 9, 5) == (epoch % 2 == 1));
    for (const std::uint64_t epoch : {copy_trials + 1, copy_trial_period - 1, copy_trial_period + 1}) {
        CHECK(receiver_copies(epoch, 5, 9));
        CHECK(receiver_copies(epoch, 5, 0));
        CHECK_FALSE(receiver_copies(epoch, 9, 5));
        CHECK_FALSE(receiver_copies(epoch, 0, 5));
        CHECK_FALSE(receiver_copies(epoch, 0, 0));
    }
    CHECK_FALSE(receiver_copies(copy_trial_period, 5, 9));
    CHECK(receiver_copies(2 * copy_trial_period, 9, 5));
}
