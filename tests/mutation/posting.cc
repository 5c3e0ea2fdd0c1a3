// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that post prebuilt entries to a queue over a network, its steppers, and hosts that wait for it, for
// ThreadSanitizer: a host learns from the queue alone that its buffer is free, and then writes to it. It writes
// byte by byte: GCC turns a memset of constant size into stores that ThreadSanitizer does not see.
#include <mpix/impl/work_queue/post.cuh>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "tests/unit/fake_network.hpp"
#include "transport/wqe/prebuilt_message.cc"
#include "transport/workqueue/decode.cc"
#include "transport/reserve.cc"
#include "transport/status.cc"
#include "transport/workqueue/network_queue.cc"
#include "transport/workqueue/software_hca.cc"
#include "transport/wqe/wqe.cc"

using namespace mpix::detail;
using namespace mpix::transport;

namespace {

constexpr int posters = 2, each = 2, partitions = posters * each;  // neighbours are one poster's
constexpr std::uint64_t bytes = 32;                                // of a partition

[[noreturn]] void give_up(const char *why) {
    std::fprintf(stderr, "%s\n", why);
    _exit(3);
}

template <class Condition>
void wait_until(const Condition &holds) {
    for (const std::uint64_t end = now_ns() + 30'000'000'000u; !holds(); sched_yield())
        if (now_ns() > end) give_up("stuck");
}

// Before the queue, for what is under way reads and writes here.
struct ends {
    std::array<char, partitions * bytes> source{}, landing{};
    std::array<std::uint64_t, partitions + 1> flags{};
    mpix_words peer{};
};

struct message {
    ends &at;
    send_queue &queue;
    std::unique_ptr<queued_message> entered;
    mpix_words words{};
    mpix_prequest r{};

    message(ends &memory, send_queue &by) : at(memory), queue(by) {
        queue_message m;
        m.partitions = partitions;
        m.partition_bytes = bytes;
        m.payload = at.source.data();
        m.landing = fakes::host_memory(at.landing.data(), at.landing.size());
        m.flags = fakes::host_memory(at.flags.data(), sizeof at.flags);
        m.words = fakes::host_memory(&at.peer, sizeof at.peer);
        m.complete = offsetof(mpix_words, complete);
        if (const mpix::status bad = queue.enter(m, entered); !bad.ok()) give_up(bad.message().c_str());
        r.words = &words;
        r.slots = 1;
        r.postings = entered->postings();
    }
    static char byte(std::uint64_t epoch, int poster) { return static_cast<char>(epoch * 31 + 7u * unsigned(poster)); }

    // As Pready does, behind clear-to-send; of a range in every other epoch.
    void post(int poster, std::uint64_t epoch) {
        for (unsigned i = 0; i < each * bytes; ++i)
            at.source[unsigned(poster) * each * bytes + i] = byte(epoch, poster);
        if (!may_post(&r, true, 1)) give_up("no queue is found");
        const mpix_posting *const way = load_pointer(&r.postings);
        for (int p = poster * each, end = p + each; p < end;) {
            const auto some = [&] {
                if (epoch % 2 == 0) return post_partition(&r, way, p, epoch) ? 1u : 0u;
                const posted those = post_range(way, unsigned(p), unsigned(end - p), epoch);
                if (those.count != 0) fetch_max_relaxed_gpu(&r.posted, those.complete);
                return those.count;
            };
            // Full, for as long as another poster polls it.
            wait_until([&] {
                const unsigned count = some();
                p += int(count);
                return count != 0;
            });
        }
        if (fetch_add_acq_rel_gpu(&r.ready_count, each) + each != epoch * partitions) return;
        end_posting(&r, epoch, true);
        fence_acq_rel();
        store_release_after_fence(&words.all_ready, epoch);
    }
    void serve(int poster, std::uint64_t epochs) {
        for (std::uint64_t e = 1; e <= epochs; ++e) {
            wait_until([&] { return load_acquire(&words.epoch) == 2 * e + 1; });
            post(poster, e);
        }
    }
    void use(std::uint64_t epochs) {
        for (std::uint64_t e = 1; e <= epochs; ++e) {
            store_release(&words.epoch, 2 * e + 1);
            wait_until([&] { return load_acquire(&words.all_ready) == e; });
            wait_until([&] { return queue.completed() >= load_relaxed(&words.posted); });
            for (char &old : at.source) old = '\xee';
        }
    }
    bool arrived(std::uint64_t epoch) const {
        for (int p = 0; p < partitions; ++p)
            if (at.flags[unsigned(p)] != epoch || at.landing[unsigned(p) * bytes] != byte(epoch, p / each))
                return false;
        // Where there was no room for the end, the engine would tell it.
        return at.flags[partitions] == load_relaxed(&words.ended) && at.peer.complete == load_relaxed(&words.ended);
    }
};

struct wiring {
    fakes::fake_gpus memory;
    fakes::fake_network network;
    std::unique_ptr<send_queue> queue;
    wiring() {
        if (!make_network_queue(network, memory, nullptr, on_host, queue).ok()) give_up("no queue");
    }
    bool step() {
        const bool queued = queue->step();
        return network.wire.work(1) != 0 || queued;
    }
};

// Two messages by one queue, which two threads step, while others come and go.
void exchange(std::uint64_t epochs) {
    ends of_first, of_second, of_third;
    wiring w;
    message first(of_first, *w.queue), second(of_second, *w.queue);
    std::atomic<bool> finished{false};
    const auto step = [&] {
        while (!finished.load(std::memory_order_relaxed))
            if (!w.step()) sched_yield();
    };
    std::vector<std::thread> steppers, team;
    for (int i = 0; i < 2; ++i) steppers.emplace_back(step);
    for (message *const m : {&first, &second}) {
        for (int p = 0; p < posters; ++p) team.emplace_back([=] { m->serve(p, epochs); });
        team.emplace_back([=] { m->use(epochs); });
    }
    // So many that whoever looks for the others' keys comes by theirs.
    team.emplace_back([&] {
        for (std::uint64_t e = 0; e < epochs; ++e) {
            std::deque<message> passing;
            for (int i = 0; i < 4; ++i) passing.emplace_back(of_third, *w.queue);
            usleep(100);
        }
    });
    for (auto &t : team) t.join();
    finished = true;
    for (auto &t : steppers) t.join();
    while (w.step()) {
    }
    if (!w.queue->failed(~std::uint64_t{0}).ok() || !first.arrived(epochs) || !second.arrived(epochs))
        give_up("wrong bytes");
}

// Whoever asks hears why, from the thread that found it.
void fail() {
    ends memory;
    wiring w;
    message m(memory, *w.queue);
    w.network.problem.set(mpix::failure("the cable was cut"));
    std::thread asking([&] { wait_until([&] { return !w.queue->failed(~std::uint64_t{0}).ok(); }); });
    for (int p = 0; p < posters; ++p) m.post(p, 1);
    while (w.step()) {
    }
    asking.join();
    if (w.queue->failed(m.words.posted).message() != "the work queue has failed: the cable was cut")
        give_up("another failure");
}

}  // namespace

int main(int argc, char **argv) {
    exchange(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 300);
    for (int i = 0; i < 10; ++i) fail();
    return 0;
}
