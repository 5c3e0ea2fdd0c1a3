// SPDX-License-Identifier: BSD-3-Clause
//
// A single copy meets the end of the peer's process, of which the system says nothing else: its number is not known by
// its start. That epoch and all later ones end with an error, of this request and of the others with that peer.
#include <mpix/detail/order.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include "host/config.h"
#include "host/control/peers.h"
#include "host/progress.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

constexpr int partitions = 2;
constexpr std::uint64_t count = 100, message = partitions * count;

// The process of world rank 1. Its receive buffer is seen here as well.
struct peer_process {
    char *buffer =
        static_cast<char *>(mmap(nullptr, message, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    process_table::neighbour itself{};
    pid_t pid;
    transport::region words, arrival;
    transport::wire_region arrival_there{};
    peer_process() {
        itself.own = transport::probe_of_this_process();
        itself.world_rank = 1;
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
        itself.own.pid = pid;
        REQUIRE(transport::node_memory().allocate(sizeof(mpix_words), transport::on_host, words).ok());
        REQUIRE(transport::node_memory().describe(words, itself.inbox).ok());
        REQUIRE(transport::node_memory().allocate(bytes_with_taken(partitions), transport::on_host, arrival).ok());
        REQUIRE(transport::node_memory().describe(arrival, arrival_there).ok());
    }
    void end() {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
};

template <class Kind>
std::shared_ptr<Kind> make(std::vector<char> &buffer, int tag) {
    static status problem;
    static const auto type = make_plan({{{0, 0, 1, {}}}, 1, 1}, problem);
    static const auto members = [] {
        auto made = std::make_shared<communicator>();
        made->name = 99;
        made->peers = {0, 1};
        return made;
    }();
    operation op;
    op.buffer = buffer.data();
    op.partitions = partitions;
    op.count = count;
    op.type = type;
    op.peer = 1;
    op.tag = tag;
    op.members = members;
    auto r = std::make_shared<Kind>(op);
    REQUIRE(r->prepare().ok());
    join(r);
    return r;
}

// Its end, against hangs only by a deadline.
status end_of(request &r) {
    const auto since = wait_clock::now();
    while (!r.done()) {
        progress_poll();
        if (seconds_since(since) > 30) return failure(MPI_ERR_PENDING, "it does not end");
    }
    return r.retire(MPI_STATUS_IGNORE);
}

void check_ended(const status &p) {
    CHECK(class_of(p) == process_failed);
    CHECK(p.message() == "the process of rank 1 (world rank 1) has ended");
}

}  // namespace

TEST_CASE("all epochs end once a single copy has met the end of the peer's process") {
    peer_process peer;
    transport::peer_memory memory;
    if (const auto bad = transport::reach_memory(peer.itself.own, memory); !bad.ok())
        return skip_rest("the system lets us not write to another process's memory: " + bad.message());
    fake_mpi::neighbours.emplace_back(reinterpret_cast<const char *>(&peer.itself), sizeof peer.itself);
    config().single_copy_bytes = 1;
    REQUIRE(transport::use_only("shm").ok());
    start_setup(false, false);
    std::vector<char> sent(message, 7), received(message);
    const auto send = make<send_request>(sent, 1);
    const auto receive = make<receive_request>(received, 2);

    accept_body accept{
        .partitions = 1, .bytes = message, .slots = 1, .words = peer.itself.inbox, .arrival = peer.arrival_there};
    accept.flags.set(accept_flag::in_place);
    transport::describe_buffer(peer.buffer, message, accept.landing);
    const control_packet packet = encode_control({.from = 5, .to = send->number, .body = accept});
    fake_mpi::inbox.push_back({1, {reinterpret_cast<const char *>(&packet), sizeof packet}});
    poll_setup();
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
