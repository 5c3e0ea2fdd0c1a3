// SPDX-License-Identifier: BSD-3-Clause
#include "host/progress.h"

#include <mpix/device.cuh>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "host/config.h"
#include "host/format.h"
#include "host/request/inquiry.h"
#include "host/request/request.h"
#include "host/wireup/peer_watch.h"
#include "host/wireup/wireup.h"
#include "transport/service_thread.h"

namespace mpix {
namespace {

// So many attended requests are looked at in one go: a wait for one request does not walk over ten thousand.
constexpr std::size_t handful = 64;

struct progress_state {
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::shared_ptr<request>> attended;  // in no order; each knows its place
    std::size_t next = 0;                            // whose turn it is
    std::atomic<bool> any{false};                    // attended is not empty
    std::atomic<std::uint64_t> news{0};
    std::atomic<std::size_t> requests{0};  // that may come to be attended
    std::atomic<std::size_t> room{0};      // in `attended`, for all of them; it only grows
    // Callers that wait, and print notices themselves: all so far, and those that have ended.
    std::atomic<std::uint64_t> waits_begun{0}, waits_ended{0};
    std::atomic<int> timed{0};  // who wants to know how long
    std::atomic<std::uint64_t> waited_ns{0};
    std::atomic<bool> noticed{false};     // a notice has been printed
    std::atomic<std::uint64_t> polls{0};  // by callers of MPI; about so many
    std::atomic<std::uint64_t> turns{0};  // of callers that wait, and do not sleep meanwhile; about so many
    std::atomic<bool> awake{false};       // the thread: it looks for work by itself
    std::atomic<bool> at_once{false};     // a request has been attended that the thread should not let wait
    std::atomic<bool> stop{false};
    bool enabled = false;  // between start and stop, with a mode that allows a thread
    transport::service_thread thread;
    void run();
    void rest();
    bool nap_beside_waiter();
};

progress_state &state() {
    static progress_state *const s = new progress_state;
    return *s;
}

// `mutex` is held.
void dismiss(request &r) {
    progress_state &s = state();
    std::shared_ptr<request> &place = s.attended[r.attended_at];
    s.attended.back()->attended_at = r.attended_at;
    r.attended_at = request::not_attended;
    place = std::move(s.attended.back());
    s.attended.pop_back();
    s.any.store(!s.attended.empty(), std::memory_order_release);  // pairs: H3
}

// A handful of the attended requests; it takes several calls to come to all. True if the last one was among them.
bool advance_some() {
    progress_state &s = state();
    try_step([] {
        if (transport::network *const network = transport::network_in_use(); network != nullptr && network->progress())
            progress_busy();
    });
    if (!s.any.load(std::memory_order_acquire)) return true;  // pairs: H3
    struct turn {
        std::shared_ptr<request> r;
        std::uint64_t times = 0;  // that it had been attended before we asked
        bool finished = false;
    };
    // Empty between calls; thread_local since making it takes longer than a look at a request.
    thread_local std::array<turn, handful> turns;
    thread_local bool in_use = false;
    if (in_use) return true;  // a request's advance has called a function that has called us
    in_use = true;
    std::size_t taken = 0;
    bool last = false;
    {
        const std::lock_guard lock(s.mutex);
        if (s.next >= s.attended.size()) s.next = 0;
        const std::size_t end = std::min(s.next + handful, s.attended.size());
        for (; s.next < end; ++s.next) turns[taken++] = {s.attended[s.next], s.attended[s.next]->times_attended, false};
        last = end == s.attended.size();
    }
    bool any_finished = false;
    for (std::size_t i = 0; i < taken; ++i) any_finished |= turns[i].finished = !turns[i].r->try_advance();
    if (any_finished) {
        const std::lock_guard lock(s.mutex);
        for (std::size_t i = 0; i < taken; ++i) {
            const turn &t = turns[i];
            // Attended anew since we asked? Then the answer is out of date. Another thread may have dismissed it, and
            // the user have attended it again, so it is not enough that it is in the list.
            if (t.finished && t.r->attended_at != request::not_attended && t.r->times_attended == t.times)
                dismiss(*t.r);
        }
    }
    for (std::size_t i = 0; i < taken; ++i) turns[i].r = nullptr;  // which may be the last owner
    in_use = false;
    return last;
}

bool has_delayed_words() {
    const transport::network *const network = transport::network_in_use();
    return network != nullptr && network->has_delayed_words();
}

bool work() {
    const bool any = state().any.load(std::memory_order_acquire);  // pairs: H3
    return any || has_delayed_words() || (setup_in_background() && setup_pending());
}

// A waiting caller makes progress for all requests; the thread would only compete with it. A hint: relaxed and inexact.
void note(std::atomic<std::uint64_t> &times) {
    times.store(times.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Busy at first, then ever lazier, up to what a wake-up costs anyway.
void pause_between_rounds(unsigned idle_rounds) {
    if (idle_rounds < 200)
        sched_yield();
    else
        usleep(std::min(20u * (idle_rounds / 200), longest_pause_us));
}

// One look at all there is to do; the thread's share of an attended list takes several.
bool round() {
    poll_setup();
    return advance_some();
}

// A kernel that waits prints nothing, and the host may be in cudaStreamSynchronize. So the progress thread prints which
// request has had no partner for a long time: once, and only if no call has printed a notice, for which it leaves twice
// the time. Half-way there it asks the peer which requests the peer has.
void notice_unmatched_request() {
    static std::uint64_t asked_for = 0;
    if (state().noticed.load(std::memory_order_relaxed)) return;
    if (state().waits_begun.load(std::memory_order_relaxed) != state().waits_ended.load(std::memory_order_relaxed))
        return;
    double seconds = 0;
    const std::shared_ptr<request> r = longest_unmatched(notice_seconds(), seconds);
    if (r == nullptr) return;
    if (std::exchange(asked_for, r->number) != r->number) inquire(*r);
    if (seconds < 2 * notice_seconds()) return;
    state().noticed.store(true, std::memory_order_relaxed);
    notice_unmatched(seconds, r->describe_stall_fully());
}

// A program that makes and frees requests leaves work for moments at a time. Waking the thread takes such a caller some
// microseconds, so the thread sleeps only after so many naps without news.
constexpr unsigned quiet_naps_before_sleep = 20, most_naps = 10000;
constexpr unsigned nap_us = 50;
// Each nap costs the waiting caller that shares its core up to 20 us.
constexpr std::chrono::microseconds nap_beside_waiter_for{200};

// Returns when there is work, or the thread has to stop. It also returns from time to time without work, to answer
// inquiries of peers (inquiry.h): callers that keep bringing news must not keep it here, hence most_naps.
void progress_state::rest() {
    std::uint64_t seen = news.load(std::memory_order_relaxed);
    const auto called = [this] { return stop.load(std::memory_order_relaxed) || work(); };
    for (unsigned quiet = 0, in_all = 0; quiet < quiet_naps_before_sleep; ++quiet, ++in_all) {
        if (called() || in_all == most_naps) return;
        std::unique_lock lock(mutex);
        if (wake.wait_for(lock, std::chrono::microseconds(nap_us), called)) return;
        lock.unlock();
        const std::uint64_t now = news.load(std::memory_order_relaxed);
        if (std::exchange(seen, now) != now) quiet = 0;
    }
    std::unique_lock lock(mutex);
    awake.store(false, std::memory_order_relaxed);
    // Either this finds the news of a caller, and so its work, or the caller finds the thread asleep. It adds 1, though 0 would
    // do: clang drops an addition of 0 whose result is not used, and with it the order.
    news.fetch_add(1, std::memory_order_acq_rel);  // pairs: H13
    wake.wait_for(lock, std::chrono::duration<double>(notice_seconds() / 4), called);
    awake.store(true, std::memory_order_relaxed);
}

// True if it has been called meanwhile.
bool progress_state::nap_beside_waiter() {
    std::unique_lock lock(mutex);
    return wake.wait_for(lock, nap_beside_waiter_for, [this] {
        return stop.load(std::memory_order_relaxed) || at_once.exchange(false, std::memory_order_relaxed);
    });
}

thread_local bool is_progress_thread = false;

void progress_state::run() {
    is_progress_thread = true;
    unsigned idle_rounds = 0;
    std::uint64_t seen = 0, polls_seen = 0, turns_seen = 0;
    bool called = false;
    awake.store(true, std::memory_order_relaxed);
    for (;;) {
        if (config().progress != progress_mode::always) rest();
        if (stop.load(std::memory_order_relaxed)) return;
        const std::uint64_t polled = polls.load(std::memory_order_relaxed);
        const bool beside_caller = std::exchange(polls_seen, polled) != polled;
        const std::uint64_t turn = turns.load(std::memory_order_relaxed);
        const bool beside_waiter = std::exchange(turns_seen, turn) != turn;
        const std::uint64_t now = news.load(std::memory_order_relaxed);
        if (config().progress != progress_mode::always) {
            if (beside_waiter && !std::exchange(called, false)) {
                called = nap_beside_waiter();
                continue;
            }
            if (beside_caller && now == seen) {
                usleep(nap_us);
                continue;
            }
        }
        idle_rounds = now == seen ? idle_rounds + 1 : 0;
        seen = now;
        const bool last = round();
        try_step(notice_unmatched_request);
        if (!last) continue;
        if (config().progress == progress_mode::always)
            sched_yield();
        else
            pause_between_rounds(idle_rounds);
    }
}

// `mutex` is held. A program that never makes a partitioned request never has the thread.
void ensure_thread() {
    progress_state &s = state();
    if (!s.enabled || s.thread.running()) return;
    if (const int error = s.thread.start<&progress_state::run>("mpix-progress", s); error != 0) {
        s.enabled = false;
        char line[200];
        std::snprintf(line, sizeof line,
                      "no thread for progress (%s): progress is made in MPI calls only, as with MPIX_PROGRESS=never",
                      std::strerror(error));
        say(line);
        return;
    }
    std::vector<int> cpus;
    if (config().progress_cpus.empty() || !parse_cpu_list(config().progress_cpus, cpus)) return;
    if (!s.thread.bind(cpus))
        say("MPIX_PROGRESS_CPUS: the progress thread could not be bound to \"" + config().progress_cpus + "\"");
}

void wake_thread(thread_looks when) {
    progress_state &s = state();
    s.news.fetch_add(1, std::memory_order_acq_rel);  // pairs: H13
    if (when == thread_looks::soon && s.awake.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(s.mutex);
    if (when == thread_looks::at_once) s.at_once.store(true, std::memory_order_relaxed);
    ensure_thread();
    s.wake.notify_one();
}

}  // namespace

place_in_progress::place_in_progress() {
    progress_state &s = state();
    const std::size_t least = s.requests.fetch_add(1, std::memory_order_relaxed) + 1;
    // Relaxed: whoever puts into `attended` has the mutex.
    if (least <= s.room.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(s.mutex);
    try {
        if (least > s.attended.capacity()) s.attended.reserve(2 * least);
        s.room.store(s.attended.capacity(), std::memory_order_relaxed);
    } catch (...) {
        s.requests.fetch_sub(1, std::memory_order_relaxed);
        throw;
    }
}
place_in_progress::~place_in_progress() { state().requests.fetch_sub(1, std::memory_order_relaxed); }

void progress_attend(const std::shared_ptr<request> &r, thread_looks when) {
    progress_state &s = state();
    {
        const std::lock_guard lock(s.mutex);
        ++r->times_attended;
        if (r->attended_at == request::not_attended) {
            r->attended_at = s.attended.size();
            s.attended.push_back(r);
            s.any.store(true, std::memory_order_release);  // pairs: H3
        }
    }
    wake_thread(when);
}

void progress_wake() { wake_thread(thread_looks::soon); }

void progress_busy() { state().news.fetch_add(1, std::memory_order_relaxed); }

void progress_poll() {
    note(state().polls);
    poll_setup();
    advance_some();
}

// The MPI library may yield the core in each of its calls; beside busy processes a round that does nothing then takes
// milliseconds.
void progress_after_miss() {
    constexpr std::uint64_t long_ns = 20000, longest_ns = 10000000;  // the process may have been suspended meanwhile
    static thread_local std::uint64_t again_at = 0;
    const std::uint64_t before = detail::now_ns();
    if (before < again_at) return;
    const std::atomic<std::uint64_t> &news = state().news;
    const std::uint64_t seen = news.load(std::memory_order_relaxed);
    progress_poll();
    detail::yield_after_miss();
    const std::uint64_t took = detail::now_ns() - before;
    if (took > long_ns && news.load(std::memory_order_relaxed) == seen)
        again_at = before + took + std::min(took, longest_ns);
}

void start_progress() {
    progress_state &s = state();
    const std::lock_guard lock(s.mutex);
    s.enabled = config().progress != progress_mode::never;
}

void stop_progress() {
    progress_state &s = state();
    {
        const std::lock_guard lock(s.mutex);
        s.enabled = false;
        s.stop.store(true, std::memory_order_relaxed);
        s.wake.notify_one();
    }
    s.thread.join();
}

double seconds_since(wait_clock::time_point start) {
    return std::chrono::duration<double>(wait_clock::now() - start).count();
}

bool outlast(const char *what, const std::function<bool()> &ended) {
    const auto since = wait_clock::now();
    const double limit = config().stall_seconds;
    for (bool noticed = false; !ended();) {
        const double waited = seconds_since(since);
        if (limit > 0 && waited > limit) {
            say(format("STALL: after {:.1f} s {} has not ended; its memory is not given back", waited, what));
            return false;
        }
        if (!noticed && waited > notice_seconds()) {
            noticed = true;
            say(format("WAITING for {:.1f} s: {} has not ended", waited, what));
        }
        detail::pause_waiting(waited * 1e9 > static_cast<double>(detail::long_wait_ns));
    }
    return true;
}

namespace {

class waiting_caller {
public:
    waiting_caller() {
        state().waits_begun.fetch_add(1, std::memory_order_relaxed);
        if (state().timed.load(std::memory_order_relaxed) != 0) [[unlikely]]
            since_ = wait_clock::now();
    }
    ~waiting_caller() {
        state().waits_ended.fetch_add(1, std::memory_order_relaxed);
        if (since_ == wait_clock::time_point{}) [[likely]]
            return;
        const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(wait_clock::now() - since_);
        state().waited_ns.fetch_add(static_cast<std::uint64_t>(waited.count()), std::memory_order_relaxed);
    }
    waiting_caller(const waiting_caller &) = delete;
    waiting_caller &operator=(const waiting_caller &) = delete;

private:
    wait_clock::time_point since_{};
};

}  // namespace

waits_so_far count_waits() {
    return {state().waits_begun.load(std::memory_order_relaxed), state().waited_ns.load(std::memory_order_relaxed)};
}

void time_waits(int more) { state().timed.fetch_add(more, std::memory_order_relaxed); }

status progress_until(const char *call, wait_clock::time_point since, const std::function<bool()> &done,
                      const std::function<request &()> &waits_for) {
    // The start of the call that has printed a notice: a call on several requests comes here for each, but prints only
    // one.
    static thread_local wait_clock::time_point noticed;
    if (done()) return {};
    // Setup needs control messages, so do not spin without polling for them.
    const std::atomic<bool> &needs_setup = waits_for().waiting;
    for (int spin = 1; spin < 64 && !needs_setup.load(std::memory_order_relaxed); ++spin)
        if (done()) return {};
    const waiting_caller waiting;
    const double limit = config().stall_seconds, notice = notice_seconds();
    double next_question = notice / 2;
    bool long_already = false;  // then this caller sleeps as well, and the thread does the work
    for (unsigned round = 0;; ++round) {
        if (done()) return {};
        if (!long_already) note(state().turns);
        advance_some();
        // The library makes progress only in calls of its own; testing for control messages is one.
        if (round % 8 == 0 || needs_setup.load(std::memory_order_relaxed)) poll_setup();
        if (round % 16 != 15) continue;
        const double waited = seconds_since(since);
        long_already = waited * 1e9 > static_cast<double>(detail::long_wait_ns);
        if (limit > 0 && waited > limit) return report_stall(call, waited, waits_for().describe_stall_fully());
        if (waited > next_question) {
            try_step([&] { inquire(waits_for()); });
            next_question = waited + notice / 2;
        }
        if (waited > notice && noticed != since) {
            noticed = since;
            state().noticed.store(true, std::memory_order_relaxed);
            try_step([&] { notice_stall(call, waited, waits_for().describe_stall_fully()); });
        }
        detail::pause_waiting(long_already);
    }
}

bool progress_needs_caller() {
    progress_state &s = state();
    if (!s.any.load(std::memory_order_acquire) && !has_delayed_words() && !setup_pending()) return false;  // pairs: H3
    return progress_is_callers();
}

bool progress_is_callers() {
    progress_state &s = state();
    const std::lock_guard lock(s.mutex);
    return !s.enabled || !setup_in_background();
}

bool may_call_mpi() { return !is_progress_thread || setup_thread_safe(); }

}  // namespace mpix
