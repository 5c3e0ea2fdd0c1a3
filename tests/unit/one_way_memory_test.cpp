// SPDX-License-Identifier: BSD-3-Clause
//
// Processes of one node that cannot all map each other's memory, as in containers, where the MPI library is for one thread at a
// time.
#include "host/control/fifo.h"
#include "host/control/peers.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

// World rank 1, in this very process.
process_table::neighbour neighbour_with(const transport::region &inbox) {
    process_table::neighbour n{};
    n.world_rank = 1;
    if (inbox) REQUIRE(transport::node_memory().describe(inbox, n.inbox) == "");
    return n;
}

void on_our_node(const process_table::neighbour &n) {
    fake_mpi::neighbours.assign(1, {reinterpret_cast<const char *>(&n), sizeof n});
}

}  // namespace

TEST_CASE("the job shares memory if everybody can map the next one's, and not otherwise") {
    transport::region inbox;
    REQUIRE(transport::node_memory().allocate(inbox_bytes(2), transport::on_host, inbox) == "");
    fake_mpi::least_of_neighbours = 1;
    SECTION("all can") {
        on_our_node(neighbour_with(inbox));
        process_table processes;
        processes.exchange();
        CHECK(processes.all_share_memory());
    }
    SECTION("we cannot") {
        on_our_node(neighbour_with({}));
        process_table processes;
        processes.exchange();
        CHECK_FALSE(processes.all_share_memory());
    }
    SECTION("another cannot") {
        on_our_node(neighbour_with(inbox));
        fake_mpi::least_of_neighbours = 0;
        process_table processes;
        processes.exchange();
        CHECK_FALSE(processes.all_share_memory());
        CHECK(processes.shares_memory(1));
        fake_mpi::least_of_neighbours = 1;
    }
    transport::node_memory().release(inbox);
}
