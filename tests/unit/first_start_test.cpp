// SPDX-License-Identifier: BSD-3-Clause
//
// The first MPI_Start of a request takes the setup messages that have come, so that a message of a process to itself need
// not be put off until a call that waits.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "host/control/peers.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

// To this process itself, or from it.
template <class Kind>
std::shared_ptr<Kind> make(double &buffer) {
    status bad;
    auto members = std::make_shared<communicator>();
    members->name = 99;
    members->peers = {0};
    operation op;
    op.buffer = reinterpret_cast<char *>(&buffer);
    op.partitions = 1;
    op.count = sizeof buffer;
    op.type = make_plan({{{0, 0, 1, {}}}, 1, 1}, bad);
    op.peer = 0;
    op.tag = 3;
    op.members = std::move(members);
    auto r = std::make_shared<Kind>(op);
    REQUIRE(r->prepare().ok());
    join(r);
    return r;
}

}  // namespace

TEST_CASE("a message to oneself goes at once when both requests have been started") {
    REQUIRE(transport::use_only("shm").ok());
    process_table::neighbour other{};
    other.world_rank = 1;
    fake_mpi::neighbours.assign(1, {reinterpret_cast<const char *>(&other), sizeof other});
    start_setup({});
    fake_mpi::neighbours.clear();
    double sent = 7, received = 0;
    const auto send = make<send_request>(sent);
    const auto receive = make<receive_request>(received);
    CHECK_FALSE(send->connected);
    send->start();
    CHECK_FALSE(send->prepared());
    receive->start();
    REQUIRE(send->prepared());
    CHECK(send->ready(0) == MPI_SUCCESS);
    CHECK(send->home->defer_count == 0);
    CHECK(receive->done_exactly());
    CHECK(received == 7);
    CHECK(send->done());
    CHECK(send->retire(MPI_STATUS_IGNORE).ok());
    CHECK(receive->retire(MPI_STATUS_IGNORE).ok());
    leave(send);
    leave(receive);
    poll_setup();
    CHECK(send.use_count() == 1);
    CHECK(receive.use_count() == 1);
}
