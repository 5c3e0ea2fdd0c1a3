// SPDX-License-Identifier: BSD-3-Clause
//
// Pready by a work queue that the software HCA executes over a network: host threads post, while another one steps the
// queue and the network.
#include "tests/unit/network_queue.hpp"

#include <mpix/host_group.hpp>

#include <cstdio>
#include <numeric>

using namespace network_queue_test;

namespace {

// One thread steps the queue and the network, now faster and now slower than threads post.
class stepper {
public:
    stepper(wiring &w, std::vector<message *> of) : w_(w), messages_(std::move(of)) {
        w_.network.on_word = [this](const void *at, std::uint64_t value) {
            for (message *m : messages_) m->see(at, value);
        };
        w_.served = true;
        thread_ = std::thread([this] { run(); });
    }
    ~stepper() {
        ending_.store(true);
        thread_.join();
        w_.served = false;
        w_.settle();
        w_.network.on_word = nullptr;
    }

private:
    void run() {
        std::mt19937_64 random(7);
        while (!ending_.load()) {
            // Slow for a while, so that the queue fills up.
            const unsigned share = random() % 3 == 0 ? 1 : 40;
            for (unsigned round = 0; round < 10 && !ending_.load(); ++round) {
                for (std::uint64_t n = random() % share; n != 0; --n) w_.queue->step();
                w_.network.wire.work(static_cast<unsigned>(random() % share));
                for (message *m : messages_) m->look();
                mpix::detail::give_way();
            }
        }
    }
    wiring &w_;
    std::vector<message *> messages_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

struct team {
    int groups, threads;
    bool ranges = false;
};

void send_epochs(message &m, team t, unsigned epochs, unsigned seed) {
    std::mt19937_64 random(seed);
    struct piece {
        int low, high;
    };
    std::vector<piece> order;
    for (unsigned e = 0; e < epochs; ++e) {
        m.start();
        order.clear();
        for (int low = 0, all = static_cast<int>(m.s.partitions); low < all; low = order.back().high + 1)
            order.push_back({low, t.ranges ? std::min(all - 1, low + static_cast<int>(random() % 9)) : low});
        std::shuffle(order.begin(), order.end(), random);
        mpix::host_launch(t.groups, t.threads, [&](const mpix::host_group &group) {
            for (auto i = static_cast<std::size_t>(group.group_rank()); i < order.size();
                 i += static_cast<std::size_t>(t.groups))
                m.wrong.check((t.ranges ? mpix::pready_range(group, order[i].low, order[i].high, m.r)
                                        : mpix::pready(group, order[i].low, m.r)) == MPI_SUCCESS,
                              "pready", i);
        });
        m.finish();
    }
}

void check_end(const message &m, unsigned epochs) {
    CHECK(m.wrong.first() == "");
    CHECK(m.completes == epochs);
    CHECK(m.peer.complete == m.epoch);
    for (const std::uint64_t f : m.flags) CHECK(f == m.epoch);
    for (std::uint64_t p = 0; p < m.s.partitions; ++p) CHECK(m.arrived(p, m.epoch));
    CHECK(m.words.error == 0);
}

const rows vector_type{3, 7, 5}, words_type{16, 48, 4};

}  // namespace

TEST_CASE("every byte, every flag and the end of every epoch, by groups of one thread and of several") {
    const shape shapes[] = {
        {.partitions = 1, .bytes = 8},
        {.partitions = 5, .bytes = 40, .slots = 2},
        {.partitions = 16, .bytes = 1000, .slots = 2},
        {.partitions = 5, .bytes = 40, .slots = 16},
        {.partitions = 3, .bytes = 4096, .slots = 2, .first_epoch = 0xfffffff8},
        {.partitions = 7, .bytes = 0},
        {.partitions = 12, .bytes = 100, .slots = 2, .staged = true},
        {.partitions = 8, .bytes = 30, .slots = 2, .staged = true, .gaps = vector_type},
        {.partitions = 6, .bytes = 22, .staged = true, .gaps = vector_type},
        {.partitions = 4, .bytes = 640, .slots = 2, .staged = true, .gaps = words_type},
        {.partitions = 100, .bytes = 24, .slots = 2},  // now and then the queue is full
        {.partitions = 300, .bytes = 9, .slots = 2},
        {.partitions = 200, .bytes = 30, .staged = true, .gaps = vector_type},
    };
    std::uint64_t deferred = 0, posted = 0;
    bool for_gpu = false;
    for (const shape &s : shapes) {
        for_gpu = !for_gpu;
        for (const team t : {team{4, 1}, team{2, 3}, team{4, 1, true}, team{2, 3, true}}) {
            for_gpu = !for_gpu;
            CAPTURE(s.partitions, s.bytes, s.slots, s.staged, s.gaps.width, t.threads, t.ranges, for_gpu);
            const unsigned epochs = s.partitions < 60 ? 40 : 8;
            wiring w(for_gpu);
            w.network.wire.any_order = t.threads == 1;
            message m(w, s);
            {
                const stepper other(w, {&m});
                send_epochs(m, t, epochs, s.partitions);
            }
            check_end(m, epochs);
            CHECK(w.queue->completed() == m.words.posted);
            CHECK(w.queue->failed(everything).ok());
            deferred += m.deferred;
            posted += epochs * s.partitions - m.deferred;
            // One may find it full that another one is just polling.
            if (s.partitions < 60 && m.deferred == 0) {
                const std::uint64_t one_by_one = epochs * (s.partitions * (s.bytes == 0 ? 1 : 2) + 2);
                CHECK((t.ranges && s.partitions > 2 ? m.words.posted < one_by_one : m.words.posted == one_by_one));
                CHECK(m.words.ended == m.epoch);
            }
        }
    }
    std::printf("%llu partitions went by the queue, %llu found it full\n", static_cast<unsigned long long>(posted),
                static_cast<unsigned long long>(deferred));
    CHECK(posted > 4000);
    CHECK(deferred > 100);
}

TEST_CASE("two messages share a queue") {
    constexpr unsigned epochs = 40;
    for (const bool gaps : {false, true}) {
        wiring w;
        w.network.wire.any_order = true;
        message a(w, {.partitions = 40, .bytes = 48, .slots = 2}),
            b(w, {.partitions = 25, .bytes = 33, .staged = gaps, .gaps = gaps ? vector_type : rows{}});
        {
            const stepper other(w, {&a, &b});
            std::thread first([&] {
                send_epochs(a, {2, 1}, epochs, 1);
            }),
                second([&] {
                    send_epochs(b, {1, 2, true}, epochs, 2);
                });
            first.join();
            second.join();
        }
        check_end(a, epochs);
        check_end(b, epochs);
        CHECK(w.queue->completed() == std::max(a.words.posted, b.words.posted));
        CHECK(w.queue->failed(everything).ok());
        // The other one does not mind.
        a.entered.reset();
        b.start();
        b.ready_all();
        w.settle();
        CHECK(w.queue->completed() == b.words.posted);
        CHECK(b.peer.complete == b.epoch);
    }
}
