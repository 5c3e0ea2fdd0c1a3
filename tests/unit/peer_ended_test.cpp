// SPDX-License-Identifier: BSD-3-Clause
//
// A single copy meets the end of the peer's process, of which the system says nothing else: its number is not known by
// its start. That epoch and all later ones end with an error, of this request and of the others with that peer.
#include <mpix/detail/order.h>

#include <cstring>
#include <vector>

#include "host/transfer/receive.h"
#include "host/transfer/send.h"

#include "tests/unit/peer_process.hpp"

using namespace mpix;

namespace {

void check_ended(const status &p) {
    CHECK(class_of(p) == process_failed);
    CHECK(p.message() == "the process of rank 1 (world rank 1) has ended");
}

}  // namespace

TEST_CASE("all epochs end once a single copy has met the end of the peer's process") {
    peer_process peer;
    if (!meet(peer)) return;
    std::vector<char> sent(message, 7), received(message);
    const auto send = make<send_request>(sent, 1);
    const auto receive = make<receive_request>(received, 2);

    peer.accepts(*send);
    REQUIRE(send->home->far != nullptr);

    send->start();
    detail::store_relaxed(&send->words->clear_to_send, 1);
    for (int p = 0; p < partitions; ++p) CHECK(send->ready(p) == MPI_SUCCESS);
    CHECK(end_of(*send).ok());
    CHECK(std::memcmp(peer.buffer, sent.data(), message) == 0);

    send->start();
    receive->start();
    detail::store_relaxed(&send->words->clear_to_send, 2);
    CHECK(send->ready(0) == MPI_SUCCESS);
    peer.end();
    CHECK(send->ready(1) == MPI_SUCCESS);
    check_ended(end_of(*send));
    check_ended(end_of(*receive));

    for (int epoch = 3; epoch < 5; ++epoch) {
        send->start();
        receive->start();
        for (int p = 0; p < partitions; ++p) CHECK(send->ready(p) == MPI_SUCCESS);
        check_ended(end_of(*send));
        check_ended(end_of(*receive));
    }
    leave(send);
    leave(receive);
}
