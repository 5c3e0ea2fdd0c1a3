// SPDX-License-Identifier: BSD-3-Clause
//
// A peer that does not keep to the rules undoes a match in the middle of an epoch, where threads look at the route
// without a lock: what they have begun ends, and nothing is read or written by way of a route that is not there.
#include <mpix/detail/order.h>
#include <mpix/device.cuh>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/config.h"
#include "host/transfer/receive.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

// A group of one, during whose barrier something happens.
struct interrupted {
    const std::function<void()> &meanwhile;
    int thread_rank() const { return 0; }
    int num_threads() const { return 1; }
    void sync() const { meanwhile(); }
    std::uint64_t broadcast(std::uint64_t value) const {
        meanwhile();
        return value;
    }
    bool all(bool mine) const { return mine; }
};

struct started_send {
    static constexpr int partitions = 3;
    static constexpr std::uint64_t bytes = 16, epoch = 2;
    std::vector<char> buffer, landing;
    std::vector<std::uint64_t> flags;
    std::vector<mpix_ring_entry> ring;
    mpix_words words{}, peers{};
    std::unique_ptr<void, void (*)(void *)> memory;
    mpix_prequest *const r;

    started_send()
        : buffer(partitions * bytes, 7),
          landing(partitions * bytes),
          flags(partitions + 1, 1),
          ring(partitions),
          memory(std::calloc(1, mpix_prequest_size(MPIX_KIND_SEND, partitions)), &std::free),
          r(static_cast<mpix_prequest *>(memory.get())) {
        r->head = detail::send_head;
        r->partitions = partitions;
        r->contributors = 1;
        r->partition_bytes = bytes;
        r->buffer = buffer.data();
        r->words = &words;
        r->ring = ring.data();
        r->slots = 1;
        r->landing = landing.data();
        r->flags = flags.data();
        r->peer_complete = &peers.complete;
        // One epoch is over.
        for (int p = 0; p < partitions; ++p) detail::partition_states(r)[p] = 1;
        r->ready_count = partitions;
        words.epoch = 2 * epoch + 1;
        words.clear_to_send = epoch;
    }
    // As send_request::drop_route.
    void undo() {
        detail::store_pointer(&r->landing, static_cast<char *>(nullptr));
        detail::store_pointer(&r->flags, static_cast<std::uint64_t *>(nullptr));
        detail::store_pointer(&r->peer_complete, static_cast<std::uint64_t *>(nullptr));
        detail::store_relaxed(&r->slots, 0);
        detail::store_release(&words.clear_to_send, 0);
    }
};

constexpr int partitions = 2;
constexpr std::uint64_t count = 100, message = partitions * count, sender = 5;

std::shared_ptr<receive_request> make_receive(std::vector<char> &buffer) {
    status problem;
    auto members = std::make_shared<communicator>();
    members->name = 99;
    members->peers = {0, 1};
    operation op;
    op.buffer = buffer.data();
    op.partitions = partitions;
    op.count = count;
    op.type = make_plan({{{0, 0, 1, {}}}, 1, 1}, problem);
    op.peer = 1;
    op.tag = 3;
    op.members = std::move(members);
    auto r = std::make_shared<receive_request>(op);
    REQUIRE(r->prepare().ok());
    join(r);
    return r;
}

void hear(const control_message &m) {
    const control_packet packet = encode_control(m);
    fake_mpi::inbox.push_back({1, {reinterpret_cast<const char *>(&packet), sizeof packet}});
    poll_setup();
}

control_message offer_of(std::uint64_t number, bool in_place, const transport::region &words) {
    offer_body body{.communicator = 99, .tag = 3, .partitions = partitions, .bytes = message};
    body.flags.set(offer_flag::in_place, in_place);
    REQUIRE(transport::node_memory().describe(words, body.words).ok());
    return {.from = number, .body = body};
}

}  // namespace

TEST_CASE("a route that goes while a partition is on its way is not followed") {
    started_send s;
    bool undone = false;
    const std::function<void()> nothing = [] {}, goes = [&] {
        if (!undone) s.undo();
        undone = true;
    };
    int stored = 0;
    SECTION("of the first partition, which asks") {}
    SECTION("of a later one, which need not") {
        CHECK(pready(interrupted{nothing}, 0, s.r) == MPI_SUCCESS);
        CHECK(detail::open_epoch(s.r, s.r->open_word, s.r->ready_count) == started_send::epoch);
        stored = 1;
    }
    for (int p = stored; p < started_send::partitions; ++p) CHECK(pready(interrupted{goes}, p, s.r) == MPI_SUCCESS);
    CHECK(undone);
    // It is left to the engine, as what is ready later.
    CHECK(s.r->defer_count == static_cast<std::uint64_t>(started_send::partitions - stored));
    for (int p = stored; p < started_send::partitions; ++p) {
        const std::uint64_t at = static_cast<std::uint64_t>(p);
        CHECK(s.ring[at - static_cast<std::uint64_t>(stored)] == (started_send::epoch << 32 | at));
        CHECK(s.flags[at] == 1);
        CHECK(s.landing[at * started_send::bytes] == 0);
    }
    CHECK((stored == 0 || (s.flags[0] == started_send::epoch && s.landing[0] == 7)));
    CHECK(s.words.all_ready == started_send::epoch);
    CHECK(s.peers.complete == 0);
    CHECK(pready(interrupted{nothing}, 1, s.r) == MPI_ERR_ARG);
}

TEST_CASE("after a match was undone, a single copy is declined: who asks may remember the landing") {
    if (std::vector<char> probe(8); !transport::others_reach(probe.data(), probe.size()))
        return skip_rest("the system lets nobody reach this process's memory");
    config().single_copy_bytes = 1;
    REQUIRE(transport::use_only("shm").ok());
    start_setup({});
    std::vector<char> received(message);
    const auto receive = make_receive(received);
    transport::region words;
    REQUIRE(transport::node_memory().allocate(sizeof(mpix_words), transport::on_host, words).ok());

    hear(offer_of(sender, false, words));
    REQUIRE(detail::load_pointer(&receive->home->landing) != nullptr);
    hear({.from = sender, .to = receive->number, .body = connect_body{}});
    receive->start();
    // It says that all is there; who has seen that has not taken note of it yet (MPI_Request_get_status).
    detail::store_release(&receive->words->complete, 1);
    CHECK(receive->done());

    hear({.from = sender, .body = withdraw_body{.by = pair_side::send}});
    hear(offer_of(sender + 1, true, words));
    REQUIRE(detail::load_relaxed(&receive->words->matched) == 1);
    REQUIRE(detail::load_pointer(&receive->home->landing) != nullptr);
    REQUIRE(detail::load_pointer(&receive->home->far) == nullptr);
    for (int j = 0; j < partitions; ++j) {
        bool flag = true;
        CHECK(receive->arrived(j, flag).ok());
        CHECK_FALSE(flag);
    }
    CHECK(receive->retire(MPI_STATUS_IGNORE).ok());
    leave(receive);
    transport::node_memory().release(words);
}
