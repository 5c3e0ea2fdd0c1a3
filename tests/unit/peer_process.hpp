// SPDX-License-Identifier: BSD-3-Clause
//
// A process of this node that requests of this one are matched with, over fake MPI. It does nothing; the test says what it
// says, and does to shared memory what it would.
#ifndef MPIX_TESTS_UNIT_PEER_PROCESS_HPP
#define MPIX_TESTS_UNIT_PEER_PROCESS_HPP

#include <mpix/detail/abi.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "host/config.h"
#include "host/control/peers.h"
#include "host/progress.h"
#include "host/protocol/select.h"
#include "host/request/request.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

namespace mpix {

constexpr int partitions = 2;
constexpr std::uint64_t elements = 100, message = partitions * elements;  // of a byte each

// The process of world rank 1. Its buffer is seen here as well.
struct peer_process {
    char *buffer =
        static_cast<char *>(mmap(nullptr, message, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    process_table::neighbour itself{};
    pid_t pid;
    transport::region words, arrival;
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
    }
    ~peer_process() { end(); }
    peer_process(const peer_process &) = delete;
    peer_process &operator=(const peer_process &) = delete;
    void end() {
        if (pid <= 0) return;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = 0;
    }

    // Of the receive of that process that was matched last.
    std::uint64_t *flags() const { return static_cast<std::uint64_t *>(arrival.address); }
    std::uint64_t *taken() const { return flags() + partitions + 1; }

    void says(const control_message &m) const {
        const control_packet packet = encode_control(m);
        fake_mpi::inbox.push_back({1, {reinterpret_cast<const char *>(&packet), sizeof packet}});
        poll_setup();
    }
    // Matches a send of ours with a new receive of its, into its buffer.
    void accepts(const request &send) {
        accept_body accept{.partitions = 1, .bytes = message, .slots = 1, .words = itself.inbox};
        REQUIRE(transport::node_memory().allocate(bytes_with_taken(partitions), transport::on_host, arrival).ok());
        REQUIRE(transport::node_memory().describe(arrival, accept.arrival).ok());
        std::memset(buffer, 0, message);
        accept.flags.set(accept_flag::in_place);
        transport::describe_buffer(buffer, message, accept.landing);
        says({.from = 5, .to = send.number, .body = accept});
    }
};

// Once in a process, before anything is made. False: the system does not let us reach another process's memory, and the
// test says so.
inline bool meet(const peer_process &peer) {
    transport::peer_memory memory;
    if (const auto bad = transport::reach_memory(peer.itself.own, memory); !bad.ok()) {
        skip_rest("the system lets us not reach another process's memory: " + bad.message());
        return false;
    }
    fake_mpi::neighbours.emplace_back(reinterpret_cast<const char *>(&peer.itself), sizeof peer.itself);
    config().single_copy_bytes = 1;
    REQUIRE(transport::use_only("shm").ok());
    start_setup({});
    return true;
}

template <class Kind>
std::shared_ptr<Kind> make(std::vector<char> &buffer, int tag, std::uint64_t number = elements) {
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
    op.count = number;
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
inline status end_of(request &r) {
    const auto since = wait_clock::now();
    while (!r.done()) {
        progress_poll();
        if (seconds_since(since) > 30) return failure(MPI_ERR_PENDING, "it does not end");
    }
    return r.retire(MPI_STATUS_IGNORE);
}

}  // namespace mpix

#endif  // MPIX_TESTS_UNIT_PEER_PROCESS_HPP
