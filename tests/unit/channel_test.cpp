// SPDX-License-Identifier: BSD-3-Clause
//
// The control channel: what the receiver has no room for waits. And its end: nobody closes it while anybody still has
// something to send, which may need its receiver to get on.
#include "host/control/channel.h"

#include <variant>

#include "host/control/fifo.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

struct opened_channel {
    opened_channel() {
        fake_mpi::inbox.clear();
        fake_mpi::sends_held_up = false;
        fake_mpi::barriers_that_end = fake_mpi::all;
        fake_mpi::barriers_begun = 0;
        channel.open();
    }
    process_table processes;
    control_channel channel{processes};
};

void one_comes() { fake_mpi::inbox.push_back({2, "whatever"}); }

}  // namespace

TEST_CASE("Messages that the receiver's inbox has no room for follow the others, in order") {
    opened_channel c;
    constexpr std::size_t senders = 2;
    transport::region memory;
    REQUIRE(transport::node_memory().allocate(inbox_bytes(senders), transport::on_host, memory).ok());
    control_inbox inbox;
    inbox.open(memory.address, senders);
    process_table::neighbour other{};
    other.world_rank = 1;
    REQUIRE(transport::node_memory().describe(memory, other.inbox).ok());
    fake_mpi::neighbours.assign(1, {reinterpret_cast<const char *>(&other), sizeof other});
    c.processes.exchange(false);
    fake_mpi::neighbours.clear();
    const std::uint64_t room = fifo_slots(senders), count = 3 * room + 5;
    for (std::uint64_t i = 1; i <= count; ++i) c.channel.send(1, {.to = i, .body = detach_body{}});
    CHECK(c.channel.holds_any());
    std::uint64_t received = 0;
    for (int turn = 0; turn < 4; ++turn) {
        std::size_t sender = senders;
        control_message m;
        for (control_packet packet; inbox.receive(sender, packet);) {
            REQUIRE(check_control(&packet, sizeof packet, m).ok());
            CHECK(std::holds_alternative<detach_body>(m.body));
            CHECK(m.to == ++received);
        }
        if (turn == 0) {  // behind those that wait already
            CHECK(received == room);
            c.channel.send(1, {.to = count + 1, .body = detach_body{}});
        }
        c.channel.advance();
    }
    CHECK(received == count + 1);
    CHECK_FALSE(c.channel.holds_any());
    transport::node_memory().release(memory);
}

TEST_CASE("What a process sends to itself comes in order, however much it is, and while one is looked at") {
    opened_channel c;
    process_table::neighbour other{};
    other.world_rank = 1;
    fake_mpi::neighbours.assign(1, {reinterpret_cast<const char *>(&other), sizeof other});
    c.processes.exchange(false);
    fake_mpi::neighbours.clear();
    const std::uint64_t count = 2 * fifo_slots(2);
    for (std::uint64_t i = 1; i <= count; ++i) c.channel.send(0, {.from = i, .to = 1, .body = connect_body{}});
    CHECK_FALSE(c.channel.holds_any());
    std::uint64_t received = 0;
    int source = -1;
    while (const control_message *const m = c.channel.receive(source)) {
        CHECK(source == 0);
        if (++received <= count) c.channel.send(0, {.to = received, .body = detach_body{}});
        CHECK(std::holds_alternative<connect_body>(m->body) == (received <= count));
        CHECK((received <= count ? m->from : m->to + count) == received);
    }
    CHECK(received == 2 * count);
    c.channel.send(0, {.to = 1, .body = detach_body{}});
    c.channel.forget();
    CHECK(c.channel.receive(source) == nullptr);
}

TEST_CASE("The channel is empty when all have sent what they had") {
    opened_channel c;
    c.channel.send(1, {.from = 3, .to = 4, .body = detach_body{}});
    CHECK(c.channel.emptied());
    CHECK(fake_mpi::barriers_begun == 1);
    c.channel.close();
}

TEST_CASE("Who still has something to send does not say that it is done, and takes what comes") {
    opened_channel c;
    fake_mpi::sends_held_up = true;
    for (std::uint64_t i = 0; i < 3; ++i) c.channel.send(1, {.from = 3, .to = i, .body = detach_body{}});
    for (int i = 0; i < 5; ++i) {
        one_comes();
        one_comes();
        CHECK_FALSE(c.channel.emptied());
        CHECK(fake_mpi::inbox.empty());
    }
    CHECK(fake_mpi::barriers_begun == 0);
    fake_mpi::sends_held_up = false;
    CHECK(c.channel.emptied());
    CHECK(fake_mpi::barriers_begun == 1);
    c.channel.close();
}

TEST_CASE("Who has sent everything takes what comes until the others have") {
    opened_channel c;
    fake_mpi::barriers_that_end = 0;
    CHECK_FALSE(c.channel.emptied());
    for (int i = 0; i < 5; ++i) {  // also after a time when nothing came
        CHECK_FALSE(c.channel.emptied());
        one_comes();
        one_comes();
        CHECK_FALSE(c.channel.emptied());
        CHECK(fake_mpi::inbox.empty());
    }
    CHECK(fake_mpi::barriers_begun == 1);
    fake_mpi::barriers_that_end = fake_mpi::all;
    CHECK(c.channel.emptied());
    c.channel.close();
}
