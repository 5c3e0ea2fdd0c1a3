// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs that kernels start, by requests and by epoch handles, for ThreadSanitizer: host threads play the GPU's threads
// (MPIX_FAKE_GPU), the progress engine and the receiver's host. What a buffer's user may do and when, they know from
// mpix alone; beside the message, each sender leaves a note that the receiver reads without asking.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "tests/unit/played_pair.hpp"

using namespace mpix::detail;

namespace {

constexpr int partitions = 2;
constexpr std::uint64_t bytes = 24,
                        words = bytes /
                                8;  // not in 16-byte words: then each call on a request acquires clear-to-send itself

[[noreturn]] void give_up(const char *why) {
    std::fprintf(stderr, "%s\n", why);
    _exit(3);
}
void must(int code, const char *call) {
    if (code != MPI_SUCCESS) give_up(call);
}

// Whom the receiver's kernels tell of a new epoch.
enum class telling { kernels_and_engine, engine, own_host, count };

struct run {
    run(telling to, std::uint64_t seed, std::uint64_t epochs)
        : pair(shape()), seed_(seed), epochs_(epochs), notes_(partitions * (epochs + 1)) {
        mpix_prequest *const s = pair.sending(), *const r = pair.receiving();
        if (to != telling::kernels_and_engine) {
            store_pointer(&s->kernel_clear_to_send, static_cast<std::uint64_t *>(nullptr));
            store_pointer(&r->kernel_clear_to_send, static_cast<std::uint64_t *>(nullptr));
        }
        if (to != telling::own_host) store_pointer(&r->peer_clear_to_send, &s->words->clear_to_send);
        pair.start_receive(1);
        pair.clear_to_send(1);
        pair.start_send(1);
        std::thread threads[] = {std::thread([&] { helps(); }), std::thread([&] { sends(); }),
                                 std::thread([&] { receives(); })};
        std::thread engine([&] { moves(); });
        std::thread host([&] {
            while (to == telling::own_host && !over_.load())
                if (const std::uint64_t e = load_acquire(&r->words->kernel_epoch);
                    e > load_relaxed(&s->words->clear_to_send))
                    store_release(&s->words->clear_to_send, e);
                else
                    sched_yield();
        });
        for (std::thread &one : threads) one.join();
        over_.store(true);
        engine.join();
        host.join();
    }

private:
    static fake::pair_shape shape() {
        fake::pair_shape s{};
        s.senders = s.receivers = partitions;
        s.bytes = bytes;
        return s;
    }
    static std::uint64_t word(std::uint64_t epoch, int p) {
        return (epoch * 31 + 7u * unsigned(p)) * 0x0101010101010101u;
    }
    // Whole words: ThreadSanitizer remembers four accesses to each.
    std::uint64_t *out(int p) {
        return reinterpret_cast<std::uint64_t *>(pair.sending()->buffer) + unsigned(p) * words;
    }
    std::uint64_t *in(int p) {
        return reinterpret_cast<std::uint64_t *>(pair.receiving()->buffer) + unsigned(p) * words;
    }
    std::uint64_t &note(int p, std::uint64_t epoch) { return notes_[epoch * partitions + unsigned(p)]; }

    void ready(int p, std::uint64_t epoch, mpix::prepared_send &handle, bool by_handle) {
        note(p, epoch) = epoch;
        must(by_handle ? mpix::pready(self, p, handle) : mpix::pready(self, p, pair.send()), "pready");
    }
    // Nothing depends on how long it is: calls come in another order, and before or after the receiver's start.
    static void pause(std::mt19937_64 &random) {
        constexpr std::uint64_t some_ns[] = {0, 0, 20'000, 100'000, 500'000};
        for (std::uint64_t since = now_ns(), length = some_ns[random() % std::size(some_ns)];
             now_ns() - since < length;)
            sched_yield();
    }
    // A handle that was prepared may know of clear-to-send without having acquired it; one that was advanced may not.
    void prepare(std::uint64_t epoch, mpix::prepared_send &handle) {
        if (epoch == 2) handle = mpix::prepare_send(self, pair.send());
    }

    // A group that readies partition 0, often as the last one. It tells the other nothing but by mpix.
    void helps() {
        std::mt19937_64 random(seed_);
        mpix::prepared_send handle{};
        for (std::uint64_t e = 1; e <= epochs_; ++e) {
            while (begun_.load(std::memory_order_acquire) < e) sched_yield();
            if (e > 2) mpix::follow_epoch(handle);
            prepare(e, handle);
            pause(random);
            ready(0, e, handle, e > 2 && random() % 4 != 0);
        }
    }
    // The group that fills the buffer, readies partition 1, and goes on to the next epoch.
    void sends() {
        std::mt19937_64 random(seed_ + 1);
        mpix::prepared_send handle{};
        for (std::uint64_t e = 1;; ++e) {
            for (int p = 0; p < partitions; ++p)
                for (unsigned w = 0; w < words; ++w) out(p)[w] = word(e, p);
            begun_.store(e, std::memory_order_release);
            prepare(e, handle);
            pause(random);
            ready(1, e, handle, e > 2 && random() % 4 != 0);
            pause(random);
            if (e == epochs_) return must(mpix::wait(self, pair.send()), "wait");
            const unsigned way = random() % 4;
            if (way == 0) {
                must(mpix::wait(self, pair.send()), "wait");
                must(mpix::start(self, pair.send()), "start");
            } else {
                must(way == 1 || e < 2 ? mpix::next_epoch(self, pair.send()) : mpix::next_epoch(self, handle),
                     "next_epoch of the send");
            }
            if (e >= 2 && way < 2) mpix::follow_epoch(handle);
        }
    }
    void receives() {
        std::mt19937_64 random(seed_ + 2);
        mpix::prepared_receive handle{};
        for (std::uint64_t e = 1; e <= epochs_; ++e) {
            if (e == 2) handle = mpix::prepare_receive(self, pair.receive());
            pause(random);
            const unsigned way = e == epochs_ ? 0 : e < 2 ? random() % 2 : random() % 4;
            if (way < 2) must(mpix::wait(self, pair.receive()), "wait");
            for (int p = 0; way == 2 && p < partitions; ++p) must(mpix::wait_arrived(self, handle, p), "wait_arrived");
            for (int p = 0; way != 3 && p < partitions; ++p)
                for (unsigned w = 0; w < words; ++w)
                    if (in(p)[w] != word(e, p)) give_up("wrong bytes");
            if (e != epochs_)
                must(way == 0   ? mpix::start(self, pair.receive())
                     : way == 1 ? mpix::next_epoch(self, pair.receive())
                                : mpix::next_epoch(self, handle),
                     "next epoch of the receive");
            if (e >= 2 && way < 2) mpix::follow_epoch(handle);
            for (int p = 0; p < partitions; ++p)
                if (note(p, e) != e) give_up("wrong note");
        }
    }

    // The progress engine of the sender's host: moves what was left to it once there is clear-to-send.
    void moves() {
        mpix_prequest *const s = pair.sending();
        std::uint64_t taken = 0, last[partitions] = {}, concluded = 0;
        while (!over_.load()) {
            const std::uint64_t all_ready = load_acquire(&s->words->all_ready);
            const std::uint64_t entry = load_acquire(&s->ring[taken % partitions]);
            if (taken < load_relaxed(&s->defer_count)) {
                if (entry == last[taken % partitions] || load_acquire(&s->words->clear_to_send) < entry >> 32) {
                    sched_yield();
                    continue;
                }
                const int p = static_cast<int>(entry & (MPIX_RING_RTS - 1));
                last[taken++ % partitions] = entry;
                for (unsigned w = 0; w < words; ++w) in(p)[w] = out(p)[w];
                store_release(&arrival_flags(s->flags)[p], entry >> 32);
            } else if (all_ready > concluded) {
                store_release(&s->words->concluded, concluded = all_ready);
            } else {
                sched_yield();
            }
        }
    }

    const mpix::thread_group self = mpix::this_thread();
    fake::fake_pair pair;
    const std::uint64_t seed_, epochs_;
    std::vector<std::uint64_t> notes_;
    std::atomic<std::uint64_t> begun_{0};
    std::atomic<bool> over_{false};
};

// Threads that read the host's words at once, so that some take others' results. What they then may look at is as new as
// what they knew of before.
void ask_together(std::uint64_t epochs) {
    fake::pair_shape shape{};
    shape.senders = shape.receivers = partitions;
    shape.bytes = bytes;
    fake::fake_pair pair(shape);
    pair.start_send(1);
    mpix_prequest *const s = pair.sending();
    std::vector<std::uint64_t> given(epochs + 1);
    std::vector<std::thread> threads;
    for (int n = 0; n < 3; ++n)
        threads.emplace_back([&] {
            for (std::uint64_t known = 0; known < epochs;) {
                known = load_relaxed(&s->words->clear_to_send);
                ask_of_send(s);
                if (given[known] != known) give_up("the host's words are old");
            }
        });
    for (std::uint64_t e = 1; e <= epochs; ++e) {
        given[e] = e;
        store_release(&s->words->clear_to_send, e);
        sched_yield();
    }
    for (std::thread &one : threads) one.join();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const std::uint64_t seed = std::strtoull(argv[1], nullptr, 0), epochs = std::strtoull(argv[2], nullptr, 0);
    for (int to = 0; to < static_cast<int>(telling::count); ++to) run(static_cast<telling>(to), 3 * seed, epochs / 5);
    ask_together(epochs);
    return 0;
}
