// SPDX-License-Identifier: BSD-3-Clause
//
// The queue over a network, step by step: when what was posted is done with, what is deferred, and what fails.
#include "tests/unit/network_queue.hpp"

using namespace network_queue_test;

TEST_CASE("blocks are done with when their bytes have left, one by one and in their order") {
    wiring w;
    message m(w, {.partitions = 2, .bytes = 100});
    CHECK_FALSE(w.queue->step());
    m.start();
    CHECK(m.ready(1) == MPI_SUCCESS);
    CHECK(m.r->posted == 2);
    CHECK(m.words.all_ready == 0);
    CHECK(m.ready(1) == MPI_ERR_ARG);
    CHECK(m.r->posted == 2);
    CHECK(m.ready(0) == MPI_SUCCESS);
    CHECK(m.words.all_ready == 1);
    CHECK(m.words.ended == 1);
    CHECK(m.words.posted == 6);
    w.execute();
    CHECK(w.network.wire.waiting() == 6);
    CHECK(w.queue->completed() == 0);
    w.network.wire.work(1);
    w.execute();
    CHECK(w.queue->completed() == 2);  // the flag's word left at once
    w.network.wire.work(1);
    w.execute();
    CHECK(w.queue->completed() == 2);
    CHECK(m.flags[1] == 1);
    CHECK(m.flags[0] == 0);
    w.network.wire.work(1);
    w.execute();
    CHECK(w.queue->completed() == 6);
    std::fill(m.source.begin(), m.source.end(), '\xee');
    CHECK(m.flags == std::vector<std::uint64_t>{0, 1, 0});
    w.network.wire.work(2);
    CHECK(m.flags == std::vector<std::uint64_t>{1, 1, 1});
    CHECK(m.peer.complete == 0);
    w.settle();
    CHECK(m.peer.complete == 1);
    CHECK((m.arrived(0, 1) && m.arrived(1, 1)));
}

TEST_CASE("a range is one payload and one entry for each three flags, all behind the payload") {
    for (const unsigned count : {2u, 3u, 4u, 10u}) {
        CAPTURE(count);
        wiring w;
        message m(w, {.partitions = 12, .bytes = 100, .slots = 2});
        m.start();
        CHECK(mpix::pready_range(mpix::this_thread(), 1, static_cast<int>(count), m.r) == MPI_SUCCESS);
        const std::uint64_t entries = 1 + (count + 2) / 3;
        CHECK(m.r->posted == entries);
        w.execute();
        CHECK(w.network.wire.waiting() == 1 + count);  // a put and words
        CHECK(std::all_of(m.flags.begin(), m.flags.end(), [](auto f) { return f == 0; }));
        w.network.wire.work(1);
        for (std::uint64_t p = 1; p <= count; ++p) CHECK(m.arrived(p, 1));
        CHECK((m.landing[m.all + 99] == '\x5a' && m.landing[m.all + 100 * (count + 1)] == '\x5a'));
        w.settle();
        CHECK(w.queue->completed() == entries);
        for (std::uint64_t p = 0; p <= 12; ++p) CHECK(m.flags[p] == (p >= 1 && p <= count ? 1 : 0));
        CHECK(m.peer.complete == 0);
    }
}

TEST_CASE("a range beyond what the peer has given arrives in no part") {
    for (const bool flags : {false, true}) {
        wiring w;
        // Of the landing the last byte is missing; of the flags the whole message's and the third partition's.
        message m(w, {.partitions = 3,
                      .bytes = 32,
                      .landing_short = flags ? std::uint64_t{0} : std::uint64_t{1},
                      .flags_short = flags ? std::uint64_t{16} : std::uint64_t{0}});
        m.start();
        CHECK(mpix::pready_range(mpix::this_thread(), 0, 2, m.r) == MPI_SUCCESS);
        w.settle();
        CHECK(w.queue->failed(everything).message() ==
              "the work queue has failed: an entry names memory of the peer that it has not given us");
        CHECK(w.queue->completed() == m.words.posted);
        if (!flags) CHECK(m.untouched());
        CHECK(m.flags == std::vector<std::uint64_t>(4, 0));
        CHECK(m.peer.complete == 0);
    }
}

TEST_CASE("inline entries hold whole flags at their places") {
    for (const bool bytes : {false, true}) {
        wiring w;
        message m(w, {.partitions = 3, .bytes = 32});
        // As a broken poster might write it.
        auto *const flag = const_cast<wqe *>(m.r->postings->blocks + 1);
        if (bytes)
            flag->inlined.bytes = to_be32(12 | wqe_inline_bit);
        else
            flag->remote.address = to_be64(from_be(flag->remote.address) + 4);
        m.start();
        CHECK(m.ready(0) == MPI_SUCCESS);
        w.settle();
        CHECK(w.queue->failed(everything).message() ==
              "the work queue has failed: an inline entry holds something else than flags");
        CHECK(m.flags == std::vector<std::uint64_t>(4, 0));
    }
}

TEST_CASE("each put is asked once a step whether it has finished, however many entries are executed") {
    wiring w;
    message m(w, {.partitions = 100, .bytes = 64});
    m.start();
    m.ready_all();
    w.execute();
    CHECK(w.network.wire.waiting() == 202);
    CHECK(w.network.asked <= 200);
    w.settle();
    CHECK(m.peer.complete == 1);
}

TEST_CASE("what finds the queue full is deferred, and an epoch that has no room for its end is not ended") {
    struct one {
        std::uint32_t partitions;
        std::uint64_t deferred, posted, ended;
    };
    for (const one &x :
         {one{126, 0, 254, 1}, one{127, 0, 256, 1}, one{128, 0, 256, 0}, one{129, 1, 256, 0}, one{200, 72, 256, 0}}) {
        CAPTURE(x.partitions);
        wiring w;
        message m(w, {.partitions = x.partitions, .bytes = 16});
        m.start();
        m.ready_all();
        CHECK(m.words.all_ready == 1);
        CHECK(m.words.posted == x.posted);
        CHECK(m.words.ended == x.ended);
        CHECK(m.r->defer_count == x.deferred);
        for (std::uint64_t i = 0; i < x.deferred; ++i)
            CHECK(m.ring[i] == (std::uint64_t{1} << 32 | (queue_size / 2 + i)));
        w.settle();
        CHECK(w.queue->completed() == x.posted);
        for (std::uint64_t p = 0; p < x.partitions; ++p)
            CHECK(m.flags[p] == (p < std::min<std::uint64_t>(x.partitions, queue_size / 2) ? 1 : 0));
        CHECK(m.flags[x.partitions] == x.ended);
        CHECK(m.peer.complete == x.ended);
        // The next one has the queue to itself again.
        m.finish();
        m.w.settle();
        store_release(&m.words.clear_to_send, 2);
        m.start();
        m.ready_all();
        CHECK(m.r->defer_count == 2 * x.deferred);
        CHECK(m.words.posted == 2 * x.posted);
        CHECK(m.words.ended == 2 * x.ended);
        w.settle();
    }
}

TEST_CASE("without clear-to-send nothing is posted, and the epoch is not ended") {
    wiring w;
    message m(w, {.partitions = 3, .bytes = 16});
    m.words.clear_to_send = 0;
    m.epoch = 1;
    m.words.epoch = 3;
    CHECK(m.ready(2) == MPI_SUCCESS);
    CHECK(m.r->posted == 0);
    CHECK(m.r->defer_count == 1);
    store_release(&m.words.clear_to_send, 1);
    CHECK(m.ready(0) == MPI_SUCCESS);
    CHECK(m.ready(1) == MPI_SUCCESS);
    CHECK(m.words.all_ready == 1);
    CHECK(m.words.ended == 0);
    CHECK(m.words.posted == 4);
    w.settle();
    CHECK(w.queue->completed() == 4);
    CHECK(m.flags == std::vector<std::uint64_t>{1, 1, 0, 0});
    CHECK(m.peer.complete == 0);
}

TEST_CASE("a message that was withdrawn is not sent, and whose memory it was is not touched") {
    // Payload names our memory first; a flag alone the peer's.
    for (const std::uint64_t bytes : {32, 0}) {
        wiring w;
        message m(w, {.partitions = 4, .bytes = bytes, .slots = 2}), next(w, {.partitions = 2, .bytes = 8});
        m.start();
        m.ready_all();
        const std::uint64_t posted = m.words.posted;
        m.entered.reset();
        w.settle();
        CHECK(w.queue->failed(everything).message() ==
              (bytes != 0 ? "the work queue has failed: an entry of it is malformed"
                          : "the work queue has failed: an entry names memory of the peer that it "
                            "has not given us"));
        CHECK(w.queue->completed() == posted);
        CHECK(m.untouched());
        CHECK(m.flags == std::vector<std::uint64_t>(5, 0));
        CHECK(m.peer.complete == 0);
        // Nor do others get through any more.
        next.start();
        next.ready_all();
        w.settle();
        CHECK(w.queue->completed() == next.words.posted);
        CHECK(next.untouched());
    }
}

TEST_CASE("what was posted for a message does not go where the next one of the same memory is to go") {
    for (const std::uint64_t bytes : {32, 0}) {
        wiring w;
        message m(w, {.partitions = 4, .bytes = bytes});
        m.start();
        m.ready_all();
        m.entered.reset();
        const status bad = m.enter(m.entered);
        REQUIRE(bad.ok());
        w.settle();
        CHECK(!w.queue->failed(everything).ok());
        CHECK(m.untouched());
        CHECK(m.flags == std::vector<std::uint64_t>(5, 0));
        CHECK(m.peer.complete == 0);
    }
}

TEST_CASE("entries beyond what the peer has given fail") {
    {
        wiring w;
        message m(w, {.partitions = 3, .bytes = 32, .landing_short = 1});
        m.start();
        m.ready_all();
        w.settle();
        CHECK(w.queue->failed(everything).message() ==
              "the work queue has failed: an entry names memory of the peer that it has not given us");
        CHECK(w.queue->completed() == m.words.posted);
        CHECK(m.flags == std::vector<std::uint64_t>{1, 1, 0, 0});
        CHECK((m.arrived(0, 1) && m.arrived(1, 1) && m.landing[64] == '\x5a'));
        CHECK(m.peer.complete == 0);
    }
    wiring w;
    message m(w, {.partitions = 3, .bytes = 32, .flags_short = 8});
    m.start();
    m.ready_all();
    w.settle();
    CHECK(!w.queue->failed(everything).ok());
    CHECK(m.flags == std::vector<std::uint64_t>{1, 1, 1, 0});
    CHECK(m.peer.complete == 0);
}

TEST_CASE("a failure of the network is said, and all that was posted is done with") {
    enum class moment { at_the_put, during_it, at_a_word };
    for (const moment at : {moment::at_the_put, moment::during_it, moment::at_a_word}) {
        CAPTURE(static_cast<int>(at));
        wiring w;
        message m(w, {.partitions = 20, .bytes = at == moment::at_a_word ? 0u : 64u, .slots = 2});
        m.start();
        m.ready_all();
        if (at == moment::during_it) w.execute();
        CHECK(w.queue->failed(everything).ok());
        w.network.problem.set(failure("the cable was cut"));
        w.execute();
        CHECK(w.queue->failed(everything).message() == "the work queue has failed: the cable was cut");
        CHECK(w.queue->completed() == m.words.posted);
        CHECK(m.words.ended == 1);
        CHECK(m.untouched());
        // Callers of Pready hear of it when they look for room; until then what they post is flushed.
        for (int more = 0; more < 15; ++more) {
            store_release(&m.words.epoch, 2 * m.epoch);
            store_release(&m.words.clear_to_send, m.epoch + 1);
            m.start();
            m.ready_all();
            CHECK(m.words.all_ready == m.epoch);
            w.execute();
            CHECK(w.queue->completed() == m.words.posted);
        }
        CHECK(m.words.ended < m.epoch);
        CHECK(m.r->defer_epoch == m.epoch);
        CHECK(m.words.posted <= queue_size);
        CHECK(w.queue->failed(everything).message() == "the work queue has failed: the cable was cut");
        CHECK(m.untouched());
    }
}

TEST_CASE("a landing of neither one message nor two is refused") {
    wiring w;
    message m(w, {.partitions = 2, .bytes = 8});
    std::unique_ptr<queued_message> none;
    CHECK(m.enter(none, 3).message() == "a landing holds a power of two of messages");
    CHECK(none == nullptr);
}
