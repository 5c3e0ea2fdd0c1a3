// SPDX-License-Identifier: BSD-3-Clause
//
// Posters, the software HCA and receivers around one small queue, for ThreadSanitizer: the payload, the entries and the
// completions are ordinary memory, so every order that is missing is a race. There are no other ways by which one
// thread could learn of another's doings: posters reuse their buffers when the queue says so, receivers look at flags
// alone, and what has landed is never written again.
#include <sched.h>
#include <unistd.h>

// Threads are held up where others could come between two steps.
static void stumble();
#define MPIX_ON_POST_STEP() ::stumble()
#define MPIX_ON_HCA_STEP() ::stumble()

#include <mpix/impl/work_queue/queue.cuh>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/queue_memory.hpp"
#include "transport/status.cc"
#include "transport/workqueue/decode.cc"
#include "transport/workqueue/software_hca.cc"
#include "transport/wqe/wqe.cc"

using namespace mpix::detail;
using namespace mpix::transport;
using queue_test::queue_memory;

namespace {

thread_local std::uint64_t dice = 1;
std::uint64_t seed = 1;

std::uint64_t roll() { return dice = dice * 6364136223846793005u + 1442695040888963407u; }

template <class Condition, class Meanwhile>
void wait_until(const Condition &holds, const Meanwhile &meanwhile) {
    for (const std::uint64_t end = now_ns() + 30'000'000'000u; !holds(); meanwhile())
        if (now_ns() > end) {
            std::fprintf(stderr, "stuck\n");
            _exit(3);
        }
}

// Payload is copied by another thread, later.
class late_backend : public hca_backend {
public:
    explicit late_backend(const key_table &keys) : now_(keys), thread_([this] { work(); }) {}
    ~late_backend() override {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        changed_.notify_one();
        thread_.join();
    }
    void write(const hca_write &what, hca_operation &op) override {
        if (what.is_inline) return now_.write(what, op);
        const std::lock_guard lock(mutex_);
        jobs_.push_back({what, &op});
        changed_.notify_one();
    }

private:
    struct job {
        hca_write what;
        hca_operation *op;
    };
    void work() {
        for (std::unique_lock lock(mutex_);;) {
            changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            const job next = jobs_.front();
            jobs_.pop_front();
            lock.unlock();
            now_.write(next.what, *next.op);
            lock.lock();
        }
    }
    memory_backend now_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<job> jobs_;
    bool ending_ = false;
    std::thread thread_;
};

constexpr std::uint64_t bytes = 24;
constexpr int posters = 3;
using message = std::array<unsigned char, bytes>;

struct exchange {
    exchange(std::uint32_t log_sq, int epochs)
        : memory(std::aligned_alloc(64, (queue_memory::bytes(log_sq, log_sq) + 63) & ~std::size_t{63}), &std::free),
          words(queue_memory::make(memory.get(), log_sq, log_sq)),
          out(posters),
          in(static_cast<std::size_t>(posters * epochs)),
          flags(in.size()),
          count(epochs) {
        const auto number = [](const void *at) { return reinterpret_cast<std::uint64_t>(at); };
        const std::uint32_t from = local.add(out.data(), posters * bytes, may_read_locally),
                            to = remote.add(in.data(), in.size() * bytes, may_write_remotely),
                            flag = remote.add(flags.data(), 8 * in.size(), may_write_remotely);
        for (int e = 0; e < epochs; ++e) {
            const auto row = static_cast<std::size_t>(e * posters);
            const partition_layout l{queue_memory::qpn,
                                     posters,
                                     bytes,
                                     {number(out.data()), from},
                                     bytes,
                                     {number(&in[row]), to},
                                     bytes,
                                     {number(&flags[row]), flag}};
            blocks.push_back(make_blocks(l));
            postings.push_back(describe_posting(l, &words->queue, blocks.back().data()));
        }
    }
    static unsigned char byte(int epoch, int poster, std::size_t i) {
        return static_cast<unsigned char>(epoch * 31 + poster * 7 + static_cast<int>(i));
    }

    void post(int poster) {
        mpix_work_queue *const q = &words->queue;
        const auto p = static_cast<std::uint32_t>(poster);
        for (int e = 0; e < count; ++e) {
            for (std::size_t i = 0; i < bytes; ++i) out[p][i] = byte(e, poster, i);
            posted done{};
            const auto all_posted = [&] {
                done = post_range(&postings[static_cast<std::size_t>(e)], p, 1, 1);
                return done.what != room::full;
            };
            wait_until(all_posted, [] { sched_yield(); });
            // One of them asks as a host would that does not reach the queue.
            const auto complete = [&] {
                return (poster == 0 ? load_acquire(&words->report.completed) : queue_completed(q)) >= done.complete;
            };
            wait_until(complete, [&] {
                if (poll_queue(q, poster == 1 ? MPIX_POLLER_GPU : MPIX_POLLER_HOST) == 0) sched_yield();
            });
        }
    }
    // As a progress engine does, which knows nothing of the queue but what polling takes over.
    void poll() {
        while (!finished.load(std::memory_order_relaxed))
            if (poll_queue(&words->queue) == 0) sched_yield();
    }
    void receive(int poster) {
        for (int e = 0; e < count; ++e) {
            const auto at = static_cast<std::size_t>(e * posters + poster);
            wait_until([&] { return load_acquire(&flags[at]) != 0; }, [] { sched_yield(); });
            for (std::size_t i = 0; i < bytes; ++i)
                if (in[at][i] != byte(e, poster, i)) {
                    std::fprintf(stderr, "wrong byte\n");
                    _exit(4);
                }
        }
    }

    std::unique_ptr<void, void (*)(void *)> memory;
    queue_memory *words;
    std::vector<message> out, in;
    std::vector<std::uint64_t> flags;
    int count;
    std::atomic<bool> finished{false};
    key_table local, remote;
    std::vector<std::vector<wqe>> blocks;
    std::vector<mpix_posting> postings;
};

template <class Backend>
void run(std::uint32_t log_sq, int epochs) {
    exchange x(log_sq, epochs);
    Backend backend(x.remote);
    const auto queue = std::make_shared<hca_queue>(x.words->queue.rings, x.local, backend);
    queue->faults.poison = true;
    {
        software_hca hca;
        hca.add(queue);
        std::vector<std::thread> team;
        for (int p = 0; p < posters; ++p) {
            team.emplace_back([&, p] { dice = seed * 100 + static_cast<std::uint64_t>(p), x.post(p); });
            team.emplace_back([&, p] { x.receive(p); });
        }
        std::thread poller([&] { x.poll(); });
        for (auto &t : team) t.join();
        x.finished = true;
        poller.join();
        hca.remove(queue.get());
    }
    if (x.words->queue.error != 0 || queue->counts.torn != 0 || queue->counts.bad_records != 0) {
        std::fprintf(stderr, "error %llx\n", static_cast<unsigned long long>(x.words->queue.error));
        _exit(5);
    }
}

// An entry that fails: whoever polls reads why out of the completion.
void fail() {
    exchange x(3, 1);
    memory_backend backend(x.remote);
    const auto queue = std::make_shared<hca_queue>(x.words->queue.rings, x.local, backend);
    queue->faults.fail_at = 0;
    {
        software_hca hca;
        hca.add(queue);
        mpix_work_queue *const q = &x.words->queue;
        post_range(&x.postings[0], 0, 1, 1);
        wait_until(
            [&] {
                poll_queue(q);
                return load_relaxed(&q->error) != 0;
            },
            [] { sched_yield(); });
        hca.remove(queue.get());
    }
    if (error_syndrome(x.words->queue.error) != syndrome_retries_exceeded) {
        std::fprintf(stderr, "error %llx\n", static_cast<unsigned long long>(x.words->queue.error));
        _exit(5);
    }
}

}  // namespace

static void stumble() {
    const std::uint64_t what = roll() >> 60;
    if (what == 0)
        usleep(1);
    else if (what < 6)
        sched_yield();
}

int main(int argc, char **argv) {
    if (argc > 1) seed = std::strtoull(argv[1], nullptr, 10);
    const int epochs = argc > 2 ? std::atoi(argv[2]) : 300;
    run<memory_backend>(3, epochs);
    run<late_backend>(3, epochs);
    for (int i = 0; i < 20; ++i) fail();
    return 0;
}
