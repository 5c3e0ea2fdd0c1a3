// SPDX-License-Identifier: BSD-3-Clause
//
// Pready by a work queue that the software HCA executes over a network: host threads post, another one steps the queue
// and the network, and what comes to the receiver is checked word by word as it comes.
#include <thread>

// Now and then another thread posts between two steps of ours.
static thread_local unsigned post_steps = 0;
#define MPIX_ON_POST_STEP() (++post_steps % 16 == 0 ? std::this_thread::yield() : void())

#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "host/datatype/plan.h"
#include "host/datatype/typemap.h"
#include "tests/catch.hpp"
#include "tests/unit/fake_network.hpp"
#include "transport/backends.h"

namespace {

constexpr std::uint64_t everything = ~std::uint64_t{0};

using namespace mpix::detail;
using fakes::fake_gpus;
using fakes::fake_network;
using fakes::host_memory;
using mpix::transport::outcome;
using mpix::transport::queue_message;
using mpix::transport::queued_message;
using mpix::transport::send_queue;

constexpr std::uint64_t queue_size = 256;  // blocks of a queue; a partition takes two, and the end

// Of threads, to which Catch is closed.
class complaints {
public:
    void check(bool right, const char *what, std::uint64_t a = 0, std::uint64_t b = 0) {
        if (right) return;
        const std::lock_guard lock(mutex_);
        if (number_++ == 0) first_ = std::string(what) + ": " + std::to_string(a) + ", " + std::to_string(b);
    }
    std::string first() const {
        const std::lock_guard lock(mutex_);
        return first_;
    }

private:
    mutable std::mutex mutex_;
    std::string first_;
    unsigned number_ = 0;
};

// How the sender's packed bytes lie in its buffer: rows, as an MPI vector has them, or one piece.
struct rows {
    std::int64_t width = 0, pitch = 0, height = 0;

    std::size_t offset(std::size_t packed) const {
        if (width == 0) return packed;
        const auto x = static_cast<std::int64_t>(packed), size = width * height;
        return static_cast<std::size_t>(x / size * (pitch * height) + x % size / width * pitch + x % width);
    }
    std::shared_ptr<const mpix::plan> plan() const {
        std::string problem;
        auto made =
            mpix::make_plan({{{0, 0, width, {{height, pitch, width}}}}, width * height, pitch * height}, problem);
        REQUIRE(problem.empty());
        return made;
    }
};

struct shape {
    std::uint32_t partitions = 4;
    std::uint64_t bytes = 40;  // of a partition
    std::uint64_t slots = 1;
    bool staged = false;
    rows gaps = {};
    std::uint64_t first_epoch = 1;
    std::uint64_t landing_short = 0, flags_short = 0;  // so many bytes of it are not given to the sender
};

struct wiring {
    fake_gpus memory, gpus;
    fake_network network;
    std::unique_ptr<send_queue> queue;
    bool served = false;  // by a stepper

    explicit wiring(bool for_gpu = false) {
        REQUIRE(mpix::transport::make_network_queue(network, memory, for_gpu ? &gpus : nullptr, for_gpu ? 0 : -1, queue)
                    .empty());
    }
    bool step() {
        const bool queued = queue->step();
        return network.wire.work(1) != 0 || queued;
    }
    void settle() {
        while (step()) {
        }
    }
    void execute() {
        while (queue->step()) {
        }
    }
};

// A send request and the memory of its receiver, without anything of the host's runtime.
struct message {
    const shape s;
    const std::uint64_t all;  // bytes
    wiring &w;
    std::vector<char> source, staging, landing, expected[2];
    std::vector<std::uint64_t> flags;
    alignas(64) mpix_words words{}, peer{};
    std::vector<mpix_ring_entry> ring;
    std::unique_ptr<void, void (*)(void *)> memory;
    mpix_prequest *const r;
    std::shared_ptr<const mpix::plan> type;
    mpix_layouts layouts{};
    std::unique_ptr<queued_message> entered;
    complaints wrong;
    std::mt19937_64 random;
    std::uint64_t epoch, taken = 0;
    std::atomic<std::uint64_t> running{0};
    std::uint64_t completes = 0;  // words that came

    message(wiring &by, const shape &made)
        : s(made),
          all(s.partitions * s.bytes),
          w(by),
          source(all == 0 ? 1 : s.gaps.offset(all - 1) + 1 + static_cast<std::size_t>(s.gaps.pitch)),
          staging(s.staged ? all : 0),
          landing(s.slots * all + 1, '\x5a'),
          flags(s.partitions + 1, s.first_epoch - 1),
          ring(s.partitions),
          memory(std::calloc(1, mpix_prequest_size(MPIX_KIND_SEND, static_cast<int>(s.partitions))), &std::free),
          r(static_cast<mpix_prequest *>(memory.get())),
          random(s.partitions + s.bytes),
          epoch(s.first_epoch - 1) {
        r->head = send_head;
        r->partitions = static_cast<std::int32_t>(s.partitions);
        r->contributors = 1;
        r->partition_bytes = s.bytes;
        r->buffer = source.data();
        r->words = &words;
        r->ring = ring.data();
        r->slots = s.slots;
        r->ready_count = epoch * s.partitions;
        words.gate = s.first_epoch;
        peer.complete = epoch;
        if (s.gaps.width != 0) {
            type = s.gaps.plan();
            layouts.from = &mpix::typemap_of(*type)->map;
            r->layouts = &layouts;
        }
        const outcome bad = enter(entered);
        REQUIRE(bad.empty());
        r->postings = entered->postings();
        for (std::uint64_t slot = 0; slot < s.slots; ++slot) {
            // Host threads find the layouts by themselves; kernels go by this.
            CHECK(r->postings[slot].gaps == (s.gaps.width != 0 ? 1u : 0u));
            CHECK(r->postings[slot].staging == (s.staged ? staging.data() : nullptr));
        }
    }

    outcome enter(std::unique_ptr<queued_message> &out, std::uint64_t slots = 0) {
        queue_message m;
        m.partitions = s.partitions;
        m.partition_bytes = s.bytes;
        m.payload = s.staged ? staging.data() : source.data();
        m.staging = s.staged ? staging.data() : nullptr;
        m.gaps = s.gaps.width != 0;
        m.landing = host_memory(landing.data(), s.slots * all - s.landing_short);
        m.flags = host_memory(flags.data(), 8 * flags.size() - s.flags_short);
        m.words = host_memory(&peer, sizeof peer);
        m.complete = offsetof(mpix_words, complete);
        m.slots = slots != 0 ? slots : s.slots;
        return w.queue->enter(m, out);
    }

    std::size_t place(std::uint64_t of_epoch) const { return s.slots == 2 && of_epoch % 2 == 1 ? all : 0; }
    bool arrived(std::uint64_t p, std::uint64_t of_epoch) const {
        const std::vector<char> &wanted = expected[of_epoch % 2];
        return wanted.size() == all &&
               std::equal(wanted.begin() + static_cast<std::ptrdiff_t>(p * s.bytes),
                          wanted.begin() + static_cast<std::ptrdiff_t>((p + 1) * s.bytes),
                          landing.begin() + static_cast<std::ptrdiff_t>(place(of_epoch) + p * s.bytes));
    }
    // Nothing of the landing has changed since it was made.
    bool untouched() const {
        return std::all_of(landing.begin(), landing.end(), [](char c) { return c == '\x5a'; });
    }

    // The receiver's end: a word comes.
    void see(const void *at, std::uint64_t value) {
        const auto index = static_cast<std::uint64_t>(static_cast<const std::uint64_t *>(at) - flags.data());
        if (at == &peer.complete) {
            ++completes;
            wrong.check(value == peer.complete + 1, "complete does not count epochs", value, completes);
            wrong.check(flags[s.partitions] == value, "complete before the flag of all", value, flags[s.partitions]);
            wrong.check(landing.back() == '\x5a', "bytes behind the landing");
            // As its next Start does.
            publish(&words.gate, value + 1);
            return;
        }
        if (at < flags.data() || index > s.partitions) return;
        wrong.check(value == flags[index] + 1, "a flag does not count epochs", index, value);
        wrong.check(value == running.load() || value + 1 == running.load(), "a flag of another epoch", index, value);
        wrong.check(peer.complete < value, "a flag behind complete", index, value);
        if (index < s.partitions) {
            wrong.check(arrived(index, value), "a flag before its bytes", index, value);
            return;
        }
        for (std::uint64_t p = 0; p < s.partitions; ++p)
            wrong.check(flags[p] == value && arrived(p, value), "the flag of all before a partition", p, value);
    }

    // What the host makes of its words, at any time.
    void look() {
        const std::uint64_t now = running.load();
        if (observe(&words.all_ready) != now || now == 0) return;
        const std::uint64_t posted = peek(&words.posted), ended = peek(&words.ended);
        const std::uint64_t own = observe(&r->posted), put_off = peek(&r->defer_epoch);
        if (running.load() != now) return;
        wrong.check(posted == own, "not all that was posted is told of", posted, own);
        wrong.check(ended == now || ended < now, "an end of no epoch yet", ended, now);
        wrong.check(ended != now || put_off != now, "ended, and some were deferred", ended, put_off);
    }

    void start() {
        ++epoch;
        wait([&] { return observe(&words.gate) >= gate_needed(epoch, s.slots); }, "the end of an epoch does not come");
        for (char &c : source) c = static_cast<char>(random());
        std::vector<char> &wanted = expected[epoch % 2];
        wanted.resize(all);
        for (std::size_t x = 0; x < all; ++x) wanted[x] = source[s.gaps.offset(x)];
        running.store(epoch);
        publish(&words.epoch, 2 * epoch + 1);
    }
    int ready(std::uint64_t p) { return mpix::pready(mpix::this_thread(), static_cast<int>(p), r); }
    void ready_all() {
        for (std::uint64_t p = 0; p < s.partitions; ++p) CHECK(ready(p) == MPI_SUCCESS);
    }

    // The engine's part: what the queue did not take, and the end if it was not posted. Then the buffer is the user's.
    std::vector<std::unique_ptr<mpix::transport::transfer>> moving;
    std::uint64_t deferred = 0;
    bool stuck = false;
    template <class Condition>
    void wait(const Condition &condition, const char *what) {
        for (const auto begin = std::chrono::steady_clock::now(); !stuck && !condition();) {
            if (w.served)
                w.queue->step();  // the stepper is at it as well
            else
                w.step();
            std::this_thread::yield();
            stuck = std::chrono::steady_clock::now() - begin > std::chrono::seconds(20);
        }
        wrong.check(!stuck, what, epoch);
    }
    void move(std::uint64_t p) {
        std::unique_ptr<mpix::transport::transfer> put;
        std::vector<char> &packed = expected[epoch % 2];
        if (s.bytes != 0)
            wrong.check(
                w.network
                    .put(host_memory(landing), place(epoch) + p * s.bytes, packed.data() + p * s.bytes, s.bytes, put)
                    .empty(),
                "the engine cannot put", p);
        wrong.check(w.network.put_word(host_memory(flags.data(), 8 * flags.size()), 8 * p, epoch).empty(),
                    "the engine cannot put a word", p);
        if (put != nullptr) moving.push_back(std::move(put));
    }
    void drain() {
        for (; taken < peek(&r->defer_count); ++taken, ++deferred) {
            const std::uint64_t entry = observe(&ring[taken % s.partitions]);
            wrong.check(entry >> 32 == (epoch & 0xffffffff), "an entry of another epoch in the ring", entry >> 32,
                        epoch);
            move(entry & 0xffffffff);
        }
    }
    void finish() {
        wrong.check(observe(&words.all_ready) == epoch, "not all ready", words.all_ready, epoch);
        drain();
        const auto left = [](auto &put) {
            outcome bad;
            return put->finished(bad);
        };
        wait([&] { return std::erase_if(moving, left), moving.empty(); }, "what the engine has put does not leave");
        wait([&] { return w.queue->completed() >= peek(&words.posted); }, "the queue does not come to its end");
        if (peek(&words.ended) != epoch) {
            w.network.put_word(host_memory(flags.data(), 8 * flags.size()), 8 * s.partitions, epoch);
            w.network.put_word(host_memory(&peer, sizeof peer), offsetof(mpix_words, complete), epoch);
        }
        std::fill(source.begin(), source.end(), '\xee');
        std::fill(staging.begin(), staging.end(), '\xdd');
        publish(&words.epoch, 2 * epoch);
    }
};

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
                std::this_thread::yield();
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
            CHECK(w.queue->failed(everything) == "");
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
        CHECK(w.queue->failed(everything) == "");
        // The other one does not mind.
        a.entered.reset();
        b.start();
        b.ready_all();
        w.settle();
        CHECK(w.queue->completed() == b.words.posted);
        CHECK(b.peer.complete == b.epoch);
    }
}

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
        CHECK(w.queue->failed(everything) ==
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
        CHECK(w.queue->failed(everything) ==
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
        publish(&m.words.gate, 2);
        m.start();
        m.ready_all();
        CHECK(m.r->defer_count == 2 * x.deferred);
        CHECK(m.words.posted == 2 * x.posted);
        CHECK(m.words.ended == 2 * x.ended);
        w.settle();
    }
}

TEST_CASE("behind a closed gate nothing is posted, and the epoch is not ended") {
    wiring w;
    message m(w, {.partitions = 3, .bytes = 16});
    m.words.gate = 0;
    m.epoch = 1;
    m.words.epoch = 3;
    CHECK(m.ready(2) == MPI_SUCCESS);
    CHECK(m.r->posted == 0);
    CHECK(m.r->defer_count == 1);
    publish(&m.words.gate, 1);
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
        CHECK(w.queue->failed(everything) ==
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
        const outcome bad = m.enter(m.entered);
        REQUIRE(bad.empty());
        w.settle();
        CHECK(w.queue->failed(everything) != "");
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
        CHECK(w.queue->failed(everything) ==
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
    CHECK(w.queue->failed(everything) != "");
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
        CHECK(w.queue->failed(everything) == "");
        w.network.problem.set("the cable was cut");
        w.execute();
        CHECK(w.queue->failed(everything) == "the work queue has failed: the cable was cut");
        CHECK(w.queue->completed() == m.words.posted);
        CHECK(m.words.ended == 1);
        CHECK(m.untouched());
        // Callers of Pready hear of it when they look for room; until then what they post is flushed.
        for (int more = 0; more < 15; ++more) {
            publish(&m.words.epoch, 2 * m.epoch);
            publish(&m.words.gate, m.epoch + 1);
            m.start();
            m.ready_all();
            CHECK(m.words.all_ready == m.epoch);
            w.execute();
            CHECK(w.queue->completed() == m.words.posted);
        }
        CHECK(m.words.ended < m.epoch);
        CHECK(m.r->defer_epoch == m.epoch);
        CHECK(m.words.posted <= queue_size);
        CHECK(w.queue->failed(everything) == "the work queue has failed: the cable was cut");
        CHECK(m.untouched());
    }
}

TEST_CASE("a landing of neither one message nor two is refused") {
    wiring w;
    message m(w, {.partitions = 2, .bytes = 8});
    std::unique_ptr<queued_message> none;
    CHECK(m.enter(none, 3) == "a landing holds one message or two");
    CHECK(none == nullptr);
}
