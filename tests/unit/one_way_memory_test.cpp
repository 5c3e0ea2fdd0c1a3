// SPDX-License-Identifier: BSD-3-Clause
//
// Which processes share a node's memory; and those of one node that cannot all map each other's, as in containers,
// where the MPI library is for one thread at a time.
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "host/config.h"
#include "host/control/fifo.h"
#include "host/control/peers.h"
#include "host/control/setup_mutex.h"
#include "host/progress.h"
#include "host/request/upcalls.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

// World rank 1, in this very process.
process_table::neighbour neighbour_with(const transport::region &inbox) {
    process_table::neighbour n{};
    n.world_rank = 1;
    if (inbox) REQUIRE(transport::node_memory().describe(inbox, n.inbox).ok());
    return n;
}

void on_our_node(const process_table::neighbour &n) {
    fake_mpi::neighbours.assign(1, {reinterpret_cast<const char *>(&n), sizeof n});
}

std::vector<control> sent_kinds() {
    std::vector<control> kinds;
    for (const fake_mpi::message &m : fake_mpi::sent) {
        control_message sent;
        REQUIRE(check_control(m.bytes.data(), m.bytes.size(), sent).ok());
        kinds.push_back(std::visit([](const auto &body) { return body.kind; }, sent.body));
    }
    return kinds;
}

}  // namespace

TEST_CASE("the job shares memory if everybody can map the next one's, and not otherwise") {
    transport::region inbox;
    REQUIRE(transport::node_memory().allocate(inbox_bytes(2), transport::on_host, inbox).ok());
    fake_mpi::least_of_neighbours = 1;
    SECTION("all can") {
        on_our_node(neighbour_with(inbox));
        process_table processes;
        processes.exchange(false);
        CHECK(processes.all_share_memory());
    }
    SECTION("we cannot") {
        on_our_node(neighbour_with({}));
        process_table processes;
        processes.exchange(false);
        CHECK_FALSE(processes.all_share_memory());
    }
    SECTION("another cannot") {
        on_our_node(neighbour_with(inbox));
        fake_mpi::least_of_neighbours = 0;
        process_table processes;
        processes.exchange(false);
        CHECK_FALSE(processes.all_share_memory());
        CHECK(processes.shares_memory(1));
        fake_mpi::least_of_neighbours = 1;
    }
    transport::node_memory().release(inbox);
}

TEST_CASE("exchange() asks the MPI library who is on the node, unless every process was told that all are") {
    transport::region inbox;
    REQUIRE(transport::node_memory().allocate(inbox_bytes(2), transport::on_host, inbox).ok());
    on_our_node(neighbour_with(inbox));
    fake_mpi::splits = 0;
    fake_mpi::least_of_neighbours = 1;
    process_table processes;
    SECTION("all were told") {
        processes.exchange(true);
        CHECK(fake_mpi::splits == 0);
        CHECK(processes.all_share_memory());
        CHECK(processes.shares_memory(1));
    }
    SECTION("we were not") {
        processes.exchange(false);
        CHECK(fake_mpi::splits == 1);
        CHECK(processes.all_share_memory());
    }
    SECTION("another was not") {
        // It also says that another cannot map, so all_share_memory() says nothing here.
        fake_mpi::least_of_neighbours = 0;
        processes.exchange(true);
        fake_mpi::least_of_neighbours = 1;
        CHECK(fake_mpi::splits == 1);
        CHECK(processes.shares_memory(1));
    }
    transport::node_memory().release(inbox);
}

TEST_CASE("what the progress thread leaves to a caller of MPI is not overtaken") {
    on_our_node(neighbour_with({}));  // it can map our memory, but not we its
    fake_mpi::keeps_sent = true;
    config().progress = progress_mode::always;
    start_setup({});
    start_progress();
    process_table::neighbour told;
    REQUIRE(fake_mpi::told.size() == sizeof told);
    std::memcpy(static_cast<void *>(&told), fake_mpi::told.data(), sizeof told);
    transport::region ours;
    REQUIRE(transport::node_memory().attach(told.inbox, transport::on_host, ours).ok());
    control_outbox outbox(ours.address, 2, 1);

    REQUIRE(outbox.put(encode_control({.from = 7, .body = inquire_body{}})));
    progress_wake();  // makes the thread, which answers
    const auto since = wait_clock::now();
    while (!setup_pending() && seconds_since(since) < 30) usleep(100);
    CHECK(setup_pending());
    CHECK(fake_mpi::sent.empty());
    {
        const std::lock_guard lock(setup_mutex());
        send_control(1, {.from = 3, .to = 4, .body = detach_body{}});
    }
    CHECK(sent_kinds() == std::vector<control>{control::answer, control::detach});
    CHECK_FALSE(setup_pending());
    stop_progress();
}
