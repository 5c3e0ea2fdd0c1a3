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

enum class by { receiver, sender };
void start(send_request &send, std::uint64_t epoch, by side = by::receiver) {
    // The first turn is the receiver's, the second the sender's.
    static_cast<const transport::peer_memory *>(send.home->far)->epochs = side == by::receiver ? 0 : 1;
    send.start();
    detail::store_relaxed(&send.words->clear_to_send, epoch);
}

// Matched, and in its first epoch all is ready and left to the receiver.
std::shared_ptr<send_request> ready_send(std::vector<char> &from) {
    const auto send = make<send_request>(from, 1);
    peer().accepts(*send);
    start(*send, 1);
    for (int p = 0; p < partitions; ++p) CHECK(send->ready(p) == MPI_SUCCESS);
    return send;
}

// The other process makes a send, from that buffer there.
void offer_single_copy(int tag, char *from, std::uint64_t number) {
    offer_body body{
        .communicator = 99, .tag = tag, .partitions = partitions, .bytes = message, .words = peer().itself.inbox};
    body.flags.set(offer_flag::in_place);
    transport::describe_buffer(from, message, body.send_buffer);
    peer().says({.from = number, .body = body});
}
int next_tag() {
    static int tag = 100;  // each has its own, since what is left of the one before would match
    return ++tag;
}
// Matched with such a send.
std::shared_ptr<receive_request> matched_receive(std::vector<char> &into, char *from) {
    const int tag = next_tag();
    const auto receive = make<receive_request>(into, tag);
    const auto number = static_cast<std::uint64_t>(tag);
    offer_single_copy(tag, from, number);
    peer().says({.from = number, .to = receive->number, .body = connect_body{}});
    REQUIRE(receive->home->far != nullptr);
    return receive;
}
char *const nowhere = reinterpret_cast<char *>(64);  // neither process has anything there

// Not mapped in the other process, which was made before.
char *pages_of_ours() {
    return static_cast<char *>(mmap(nullptr, message, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
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
    const auto send = ready_send(sent);
    for (int p = 0; p < partitions; ++p) CHECK(peer().flags()[p] == 1);
    CHECK(holds(peer().buffer, 0, message));
    detail::store_release_gpu(&peer().taken()[0], 2);
    detail::store_release_gpu(&peer().taken()[1], 1);  // it is reading this one
    CHECK(stays_active(*send));
    CHECK(peer().taken()[1] == 1);
    CHECK(send->describe_stall().remark.find("; 1 partitions are being copied") != std::string::npos);
    detail::store_release_gpu(&peer().taken()[1], 2);
    CHECK(end_of(*send).ok());
    CHECK(holds(peer().buffer, 0, message));
    leave(send);
}

TEST_CASE("what nobody reads the sender's Wait writes, also the rest of a message") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = ready_send(sent);
    const bool one_is_read = GENERATE(false, true);
    if (one_is_read) detail::store_release_gpu(&peer().taken()[0], 2);
    CHECK(end_of(*send).ok());
    CHECK(holds(peer().buffer, one_is_read ? 0 : 7));
    CHECK(holds(peer().buffer + elements, 7));
    for (int p = 0; p < partitions; ++p) CHECK(peer().taken()[p] == 2);
    leave(send);
}

TEST_CASE("the sender writes what its receiver may not read, and tries to again and again") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = ready_send(sent);
    const auto since = wait_clock::now();
    bool done = false;
    while (!done && seconds_since(since) < 30) {
        // A receiver that claims a partition, may not read, and gives it back, between any two looks.
        if (detail::cas_acq_rel_gpu(&peer().taken()[0], 0, 1)) {
            CHECK_FALSE(send->done());
            detail::store_release_gpu(&peer().taken()[0], 0);
        }
        done = send->done();
    }
    CHECK(done);
    CHECK(end_of(*send).ok());
    CHECK(holds(peer().buffer, 7, message));
    leave(send);
}

TEST_CASE("what Pready writes is marked as copied") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = make<send_request>(sent, 1);
    peer().accepts(*send);
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        start(*send, epoch, epoch == 1 ? by::receiver : by::sender);
        std::fill(sent.begin(), sent.end(), static_cast<char>(epoch));
        CHECK(send->ready(1) == MPI_SUCCESS);
        CHECK(peer().flags()[1] == epoch);
        CHECK(peer().taken()[1] == (epoch == 2 ? 4 : 0));
        CHECK(holds(peer().buffer + elements, epoch == 2 ? 2 : 0));
        CHECK(send->ready(0) == MPI_SUCCESS);
        CHECK(end_of(*send).ok());
        CHECK(holds(peer().buffer, static_cast<char>(epoch), message));
    }
    leave(send);
}

TEST_CASE("after a write that has failed, Wait returns when nobody reads, nor will begin to") {
    if (!met()) return;
    std::vector<char> sent(message, 7);
    const auto send = make<send_request>(sent, 1);
    char *const good = peer().buffer;
    peer().buffer = pages_of_ours();
    peer().accepts(*send);
    peer().buffer = good;
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        start(*send, epoch);
        for (int p = 0; p < partitions; ++p) CHECK(send->ready(p) == MPI_SUCCESS);
        if (epoch == 1) {
            detail::store_release_gpu(&peer().taken()[1], 1);  // it is reading this one
            CHECK(stays_active(*send));
            detail::store_release_gpu(&peer().taken()[1], 2);
        }
        CHECK(end_of(*send).message().find("partition 0 cannot be written") == 0);
        CHECK(peer().taken()[0] % 2 == 1);  // claimed for ever
    }
    leave(send);
}

TEST_CASE("a receive reads what it looks for, once, and leaves to the sender what it cannot read") {
    if (!met()) return;
    std::vector<char> received(message);
    const bool readable = GENERATE(true, false);
    const auto receive = matched_receive(received, readable ? peer().buffer : nowhere);
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

TEST_CASE("after a match was undone there is a landing, for threads may remember how the earlier one was read") {
    if (!met()) return;
    std::vector<char> received(message);
    const int tag = next_tag();
    const auto receive = make<receive_request>(received, tag);
    const auto number = static_cast<std::uint64_t>(tag);
    offer_single_copy(tag, peer().buffer, number);
    REQUIRE(receive->home->far != nullptr);
    peer().says({.from = number, .to = receive->number, .body = connect_body{}});
    receive->start();
    peer().says({.from = number, .body = withdraw_body{.by = pair_side::send}});
    CHECK(receive->home->far == nullptr);
    offer_single_copy(tag, peer().buffer, number + 1000);
    CHECK(receive->home->far == nullptr);
    CHECK(receive->home->landing != nullptr);
    detail::store_release(&receive->words->complete, 1);
    CHECK(end_of(*receive).ok());
    leave(receive);
}

TEST_CASE("a receive that cannot read says which partitions are missing, and that they are ready") {
    if (!met()) return;
    std::vector<char> received(message);
    const auto receive = matched_receive(received, nowhere);
    receive->start();
    for (int p = 0; p < partitions; ++p) detail::store_release(&receive->home->flags[p], 1);
    CHECK_FALSE(receive->done());
    detail::store_release_gpu(&receive->home->taken[1], 2);
    const stall s = receive->describe_stall();
    CHECK(s.missing == std::vector<int>{0});
    CHECK(s.remark.find("all partitions are ready, and the system has not copied these") != std::string::npos);
    detail::store_release_gpu(&receive->home->taken[0], 2);
    CHECK(end_of(*receive).ok());
    leave(receive);
}

TEST_CASE("both sides are tried, then the faster one copies, and now and then the other") {
    for (std::uint64_t turn = 1; turn <= copy_trials; ++turn) CHECK(receiver_copies(turn, 9, 5) == (turn % 2 == 1));
    for (const std::uint64_t turn : {copy_trials + 1, copy_trial_period - 1, copy_trial_period + 1}) {
        CHECK(receiver_copies(turn, 5, 9));
        CHECK(receiver_copies(turn, 5, 0));
        CHECK_FALSE(receiver_copies(turn, 9, 5));
        CHECK_FALSE(receiver_copies(turn, 0, 5));
        CHECK_FALSE(receiver_copies(turn, 0, 0));
    }
    CHECK_FALSE(receiver_copies(copy_trial_period, 5, 9));
    CHECK(receiver_copies(2 * copy_trial_period, 9, 5));
    for (const std::uint64_t turn : {std::uint64_t{1}, copy_trials + 1, copy_trial_period})
        CHECK_FALSE(receiver_copies(turn, transport::cannot_copy, 5));
}

// The last one, for the others need the process.
TEST_CASE("a process that ends while it reads, or is read, ends both requests") {
    if (!met()) return;
    std::vector<char> sent(message, 7), received(message);
    const auto send = ready_send(sent);
    detail::store_release_gpu(&peer().taken()[0], 2);
    detail::store_release_gpu(&peer().taken()[1], 1);  // it is reading this one
    const auto receive = matched_receive(received, peer().buffer);
    receive->start();
    detail::store_release(&receive->home->flags[0], 1);
    peer().end();
    // The receive meets the end: its read finds no process.
    const std::string ended = "the process of rank 1 (world rank 1) has ended";
    CHECK(end_of(*receive).message() == ended);
    CHECK(end_of(*send).message() == ended);
    leave(send);
    leave(receive);
}
