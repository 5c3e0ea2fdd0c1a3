// SPDX-License-Identifier: BSD-3-Clause
//
// A send request whose queue the software HCA executes over a network, and the memory of its receiver: what comes there
// is checked word by word as it comes. To be included before the device functions.
#ifndef MPIX_TESTS_UNIT_NETWORK_QUEUE_HPP
#define MPIX_TESTS_UNIT_NETWORK_QUEUE_HPP

#include <mpix/detail/give_way.h>

#include <thread>

// Now and then another thread posts between two steps of ours.
inline thread_local unsigned post_steps = 0;
#define MPIX_ON_POST_STEP() (++post_steps % 16 == 0 ? mpix::detail::give_way() : void())

#include <mpix/device.cuh>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "host/datatype/plan.h"
#include "host/datatype/typemap.h"
#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/fake_network.hpp"
#include "transport/backends.h"

namespace network_queue_test {

using namespace mpix::detail;
using fakes::fake_gpus;
using fakes::fake_network;
using fakes::host_memory;
using mpix::failure;
using mpix::status;
using mpix::transport::queue_message;
using mpix::transport::queued_message;
using mpix::transport::send_queue;

constexpr std::uint64_t everything = ~std::uint64_t{0};
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
        status problem;
        auto made =
            mpix::make_plan({{{0, 0, width, {{height, pitch, width}}}}, width * height, pitch * height}, problem);
        REQUIRE(problem.ok());
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
                    .ok());
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
        words.clear_to_send = s.first_epoch;
        peer.complete = epoch;
        if (s.gaps.width != 0) {
            type = s.gaps.plan();
            layouts.from = &mpix::typemap_of(*type)->map;
            r->layouts = &layouts;
        }
        const status bad = enter(entered);
        REQUIRE(bad.ok());
        r->postings = entered->postings();
        for (std::uint64_t slot = 0; slot < s.slots; ++slot) {
            // Host threads find the layouts by themselves; kernels go by this.
            CHECK(r->postings[slot].gaps == (s.gaps.width != 0 ? 1u : 0u));
            CHECK(r->postings[slot].staging == (s.staged ? staging.data() : nullptr));
        }
    }

    status enter(std::unique_ptr<queued_message> &out, std::uint64_t slots = 0) {
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

    std::size_t place(std::uint64_t of_epoch) const { return slot_of(of_epoch, s.slots) * all; }
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
            store_release(&words.clear_to_send, value + 1);
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
        if (load_acquire(&words.all_ready) != now || now == 0) return;
        const std::uint64_t posted = load_relaxed(&words.posted), ended = load_relaxed(&words.ended);
        const std::uint64_t own = load_acquire(&r->posted), put_off = load_relaxed(&r->defer_epoch);
        if (running.load() != now) return;
        wrong.check(posted == own, "not all that was posted is told of", posted, own);
        wrong.check(ended == now || ended < now, "an end of no epoch yet", ended, now);
        wrong.check(ended != now || put_off != now, "ended, and some were deferred", ended, put_off);
    }

    void start() {
        ++epoch;
        wait([&] { return load_acquire(&words.clear_to_send) >= clear_to_send_needed(epoch, s.slots); },
             "the end of an epoch does not come");
        for (char &c : source) c = static_cast<char>(random());
        std::vector<char> &wanted = expected[epoch % 2];
        wanted.resize(all);
        for (std::size_t x = 0; x < all; ++x) wanted[x] = source[s.gaps.offset(x)];
        running.store(epoch);
        store_release(&words.epoch, 2 * epoch + 1);
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
        backoff look;
        for (const auto begin = std::chrono::steady_clock::now(); !stuck && !condition(); look.pause()) {
            if (w.served)
                w.queue->step();  // the stepper is at it as well
            else
                w.step();
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
                    .ok(),
                "the engine cannot put", p);
        wrong.check(w.network.put_word(host_memory(flags.data(), 8 * flags.size()), 8 * p, epoch).ok(),
                    "the engine cannot put a word", p);
        if (put != nullptr) moving.push_back(std::move(put));
    }
    void drain() {
        for (; taken < load_relaxed(&r->defer_count); ++taken, ++deferred) {
            const std::uint64_t entry = load_acquire(&ring[taken % s.partitions]);
            wrong.check(entry >> 32 == (epoch & 0xffffffff), "an entry of another epoch in the ring", entry >> 32,
                        epoch);
            move(entry & 0xffffffff);
        }
    }
    void finish() {
        wrong.check(load_acquire(&words.all_ready) == epoch, "not all ready", words.all_ready, epoch);
        drain();
        const auto left = [](auto &put) {
            status bad;
            return put->finished(bad);
        };
        wait([&] { return std::erase_if(moving, left), moving.empty(); }, "what the engine has put does not leave");
        wait([&] { return w.queue->completed() >= load_relaxed(&words.posted); }, "the queue does not come to its end");
        if (load_relaxed(&words.ended) != epoch) {
            REQUIRE(w.network.put_word(host_memory(flags.data(), 8 * flags.size()), 8 * s.partitions, epoch).ok());
            REQUIRE(w.network.put_word(host_memory(&peer, sizeof peer), offsetof(mpix_words, complete), epoch).ok());
        }
        std::fill(source.begin(), source.end(), '\xee');
        std::fill(staging.begin(), staging.end(), '\xdd');
        store_release(&words.epoch, 2 * epoch);
    }
};

}  // namespace network_queue_test

#endif  // MPIX_TESTS_UNIT_NETWORK_QUEUE_HPP
