// SPDX-License-Identifier: BSD-3-Clause
//
// The ways that GPU threads go in Pready and Parrived, gone by host threads (MPIX_PLAY_GPU): groups of a sender and of a receiver
// over many epochs, while this test plays both hosts: Start, clear-to-send, progress engine, Wait.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

namespace {

using namespace mpix::detail;

constexpr std::uint64_t patience_ns = 60'000'000'000u;  // against hangs

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
constexpr bool thread_sanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool thread_sanitizer = false;
#endif

struct scenario {
    int senders, receivers;  // partitions
    std::uint64_t bytes;     // of one of the sender's
    unsigned skew;           // of both buffers
    bool mailbox;
    std::uint64_t mailed_from;  // the epoch in which the sender hears of the mailbox
    int sending_groups, receiving_groups, sending_threads, receiving_threads;
    bool watched;  // by one more thread of the receiver's, which looks all the time, between the epochs as well
    bool matched_late;
    std::uint64_t piece_out, piece_in;  // of buffers with gaps; 0: none
};

// A message in the user's buffer: in one piece, or in pieces anywhere in twice the room.
class spread_buffer {
public:
    spread_buffer(std::uint64_t bytes, std::uint64_t piece, unsigned skew, std::mt19937_64 random)
        : bytes_(bytes), memory_(2 * bytes + 64), piece_(piece) {
        begin_ = reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 15) / 16 * 16) + 16;
        begin_ += piece == 0 ? skew : skew / piece * piece;
        if (piece == 0) return;
        std::vector<std::uint64_t> slots(bytes / piece);
        std::iota(slots.begin(), slots.end(), std::uint64_t{0});
        std::shuffle(slots.begin(), slots.end(), random);
        for (const std::uint64_t slot : slots)
            places_.push_back(static_cast<std::int64_t>((2 * slot + random() % 2) * piece));
    }
    char *begin() { return begin_; }
    const std::int64_t *places() const {
        return piece_ == 0 ? nullptr : places_in(places_.data(), static_cast<std::int64_t>(piece_));
    }
    char *at(std::uint64_t x) {
        return begin_ + (piece_ == 0 ? x : static_cast<std::uint64_t>(places_[x / piece_]) + x % piece_);
    }
    void fill(std::mt19937_64 &random) {
        for (char &c : memory_) c = static_cast<char>(random());
    }
    void poison() { std::fill(memory_.begin(), memory_.end(), char{0x5a}); }
    bool poisoned_around() {
        std::vector<bool> mine(memory_.size());
        for (std::uint64_t x = 0; x < bytes_; ++x) mine[static_cast<std::size_t>(at(x) - memory_.data())] = true;
        for (std::size_t i = 0; i < memory_.size(); ++i)
            if (!mine[i] && memory_[i] != 0x5a) return false;
        return true;
    }

private:
    const std::uint64_t bytes_;
    std::vector<char> memory_;
    const std::uint64_t piece_;
    char *begin_ = nullptr;
    std::vector<std::int64_t> places_;
};

// Memory of one side's request: the structure and what lies behind it.
class request_memory {
public:
    request_memory(mpix_kind kind, int partitions)
        : memory_(mpix_prequest_size(kind, partitions) / 8 + 8, 0),
          at_(reinterpret_cast<mpix_prequest *>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 63) / 64 * 64)) {
        at_->head = MPIX_ABI_VERSION | std::uint64_t{kind} << 32;
        at_->partitions = partitions;
        at_->contributors = 1;
    }
    mpix_prequest *operator->() const { return at_; }
    mpix_prequest *get() const { return at_; }

private:
    std::vector<std::uint64_t> memory_;
    mpix_prequest *at_;
};

class played_pair {
public:
    explicit played_pair(const scenario &s)
        : s_(s),
          total_(static_cast<std::uint64_t>(s.senders) * s.bytes),
          send_(MPIX_KIND_SEND, s.senders),
          receive_(MPIX_KIND_RECV, s.receivers),
          out_(total_, s.piece_out, s.skew, std::mt19937_64(total_)),
          in_(total_, s.piece_in, s.skew, std::mt19937_64(total_ + 1)),
          flags_(2 * static_cast<std::size_t>(s.senders) + 1),
          told_(static_cast<std::size_t>(s.senders)),
          ring_(static_cast<std::size_t>(s.senders)),
          lines_(2 * static_cast<std::size_t>(s.senders) * lines_of(s.bytes) + 2),
          begun_(static_cast<std::size_t>(s.senders)) {
        const auto aligned = [](auto &memory, std::uintptr_t to) {
            return reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(memory.data()) + to - 1) / to * to);
        };
        send_->partition_bytes = s.bytes;
        send_->buffer = out_.begin();
        send_->words = &send_words_;
        send_->ring = ring_.data();
        send_->stall_ns = patience_ns;
        receive_->partition_bytes = total_ / static_cast<std::uint64_t>(s.receivers);
        receive_->buffer = in_.begin();
        receive_->words = &receive_words_;
        receive_->stall_ns = patience_ns;
        mailbox_ = s.mailbox ? aligned(lines_, 16) : nullptr;
        if (s.mailbox) send_->places = out_.places(), receive_->places = in_.places();
        if (!s.matched_late) match();
    }

    MPIX_Prequest send() const {
        return s_.mailbox ? mailable_send(send_.get(), least_mailing_threads(s_.bytes)) : send_.get();
    }
    MPIX_Prequest receive() const { return s_.mailbox ? mailable_receive(receive_.get(), false) : receive_.get(); }

    // ---- the hosts' part ----

    void match() {
        poke(&receive_->peer_partitions, static_cast<std::uint64_t>(s_.senders));
        poke(&receive_->slots, 1);
        poke_pointer(&receive_->taken, taken_of(flags_.data(), ring_.size()));
        receive_->told = told_.data();
        poke_pointer(&receive_->mailbox, mailbox_);
        poke_pointer(&receive_->flags, flags_.data());
        publish(&receive_words_.gate, 1);
        poke(&send_->slots, 1);
        poke_pointer(&send_->peer_complete, &receive_words_.complete);
        poke_pointer(&send_->mailbox, mailbox_);
        // Without a mailbox, pready leaves what has gaps to the engine.
        const bool gaps = s_.piece_out != 0 || s_.piece_in != 0;
        const auto at = reinterpret_cast<std::uintptr_t>(flags_.data());
        poke_pointer(&send_->flags, reinterpret_cast<std::uint64_t *>(at | (gaps ? MPIX_FLAGS_WITH_LAYOUTS : 0)));
        poke_pointer(&send_->landing, receive_->buffer);
    }
    void fill(std::mt19937_64 &random) {
        out_.fill(random);
        in_.poison();
    }
    void start_receive(std::uint64_t epoch) { publish(&receive_words_.epoch, 2 * epoch + 1); }
    void clear_to_send(std::uint64_t epoch) {
        if (s_.mailbox && epoch >= s_.mailed_from) publish(&send_words_.mailbox, 1);
        publish(&send_words_.gate, epoch);
    }
    void start_send(std::uint64_t epoch) {
        deferred_before_ = moved_;
        publish(&send_words_.epoch, 2 * epoch + 1);
    }
    // The engine's next look; whether the message is complete at the receiver's.
    bool progress(std::uint64_t epoch) {
        // All told first: who is counted has put in the ring what it put there.
        const bool all_ready = observe(&send_words_.all_ready) == epoch;
        for (;; ++moved_) {
            const std::uint64_t entry = observe(&ring_[moved_ % ring_.size()]);
            const bool fresh = moved_ < peek(&send_->defer_count) && entry >> 32 == (epoch & 0xffffffff) &&
                               entry != 0 && last_moved_ != entry;
            if (!fresh) break;
            last_moved_ = entry;
            const std::uint64_t p = entry & 0xffffffff;
            for (std::uint64_t x = p * s_.bytes; x < (p + 1) * s_.bytes; ++x) *in_.at(x) = *out_.at(x);
            publish(&flags_[p], epoch);
        }
        if (!all_ready) return false;
        if (moved_ != deferred_before_) {
            if (moved_ != peek(&send_->defer_count)) return false;
            publish(&flags_[ring_.size()], epoch);
            publish(&receive_words_.complete, epoch);
        }
        if (observe(&receive_words_.complete) < epoch) return false;
        return std::all_of(flags_.data(), flags_.data() + ring_.size() + 1,
                           [epoch](const std::uint64_t &flag) { return observe(&flag) >= epoch; });
    }
    void end(std::uint64_t epoch) {
        publish(&send_words_.epoch, 2 * epoch);
        publish(&receive_words_.epoch, 2 * epoch);
        deferred_ += moved_ - deferred_before_;
    }
    std::uint64_t taken_error() {
        const std::uint64_t error = observe(&send_words_.error);
        publish(&send_words_.error, 0);
        return error;
    }
    bool receiver_erred() { return observe(&receive_words_.error) != 0; }
    std::uint64_t deferred() const { return deferred_; }
    bool has_deferred() const { return peek(&send_->defer_count) != deferred_before_; }  // in this epoch
    std::uint64_t mailed() const {
        return static_cast<std::uint64_t>(std::count_if(told_.begin(), told_.end(), [](auto e) { return e != 0; }));
    }

    // ---- what is looked at ----

    bool right(int first, int count) {
        const std::uint64_t at = static_cast<std::uint64_t>(first) * receive_->partition_bytes,
                            end = at + static_cast<std::uint64_t>(count) * receive_->partition_bytes;
        for (std::uint64_t x = at; x < end; ++x)
            if (*out_.at(x) != *in_.at(x)) return false;
        return true;
    }
    bool untouched_around() { return in_.poisoned_around(); }
    // Whether Pready was called for all that partition j consists of.
    void begin(int p, std::uint64_t epoch) { publish(&begun_[static_cast<std::size_t>(p)], epoch); }
    bool has_begun(int j, std::uint64_t epoch) const {
        const overlap range = sender_partitions(receive_.get(), j, static_cast<std::uint64_t>(s_.senders));
        for (std::uint64_t p = range.first; p <= range.last; ++p)
            if (observe(&begun_[p]) < epoch) return false;
        return true;
    }

private:
    const scenario s_;
    const std::uint64_t total_;
    alignas(64) mpix_words send_words_{};
    alignas(64) mpix_words receive_words_{};
    request_memory send_, receive_;
    spread_buffer out_, in_;
    std::vector<std::uint64_t> flags_, told_, ring_, lines_, begun_;
    char *mailbox_ = nullptr;
    std::uint64_t moved_ = 0, deferred_before_ = 0, deferred_ = 0, last_moved_ = 0;
};

// Epoch after epoch; groups go on when the hosts have started theirs.
struct turns {
    std::atomic<std::uint64_t> sender{0}, receiver{0};  // the last epoch started
    std::atomic<int> sent{0}, received{0};              // groups that are done with it
    std::atomic<const char *> failure{nullptr};

    void fail(const char *what) {
        const char *none = nullptr;
        failure.compare_exchange_strong(none, what);
    }
    void wait_alone(const std::atomic<std::uint64_t> &turn, std::uint64_t epoch) {
        while (turn.load(std::memory_order_acquire) < epoch && failure.load() == nullptr) std::this_thread::yield();
    }
    // The same answer for all members.
    bool wait_for(const mpix::host_group &group, const std::atomic<std::uint64_t> &turn, std::uint64_t epoch) {
        while (group.thread_rank() == 0 && turn.load(std::memory_order_acquire) < epoch && failure.load() == nullptr)
            std::this_thread::yield();
        return agree(group, turn.load(std::memory_order_acquire) >= epoch);
    }
};

void sends(const mpix::host_group &group, const scenario &s, played_pair &pair, turns &t, std::uint64_t last,
           std::uint64_t seed) {
    const bool leader = group.thread_rank() == 0;
    std::mt19937_64 random(seed + static_cast<unsigned>(group.group_rank()));  // the same for all members
    std::vector<int> mine;
    for (int p = group.group_rank(); p < s.senders; p += s.sending_groups) mine.push_back(p);
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        // One member knows of the host's Start; the others, who write nothing, wait for it in Pready.
        const int knows = static_cast<int>(random() % static_cast<unsigned>(group.num_threads()));
        if (group.thread_rank() == knows) t.wait_alone(t.sender, epoch);
        std::shuffle(mine.begin(), mine.end(), random);
        for (std::size_t k = 0; k < mine.size(); ++k) {
            const int p = mine[k];
            if (group.thread_rank() == knows) pair.begin(p, epoch);
            if (const int code = mpix::pready(group, p, pair.send()); code != MPI_SUCCESS)
                t.fail("a partition that was not ready could not be marked ready");
            // Again, while the epoch cannot end. An error, of which both calls may store, so ThreadSanitizer is spared it.
            if (!thread_sanitizer && k + 1 < mine.size() && random() % 8 == 0 &&
                mpix::pready(group, p, pair.send()) != MPI_ERR_ARG)
                t.fail("a partition was marked ready twice");
        }
        if (agree(group, t.failure.load() != nullptr)) return;
        if (leader) t.sent.fetch_add(1, std::memory_order_release);
    }
}

void receives(const mpix::host_group &group, const scenario &s, played_pair &pair, turns &t, std::uint64_t last,
              std::uint64_t seed) {
    std::mt19937_64 random(seed + 100 + static_cast<unsigned>(group.group_rank()));
    std::vector<int> all;
    for (int j = 0; j < s.receivers; ++j) all.push_back(j);
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        if (!t.wait_for(group, t.receiver, epoch)) return;
        std::shuffle(all.begin(), all.end(), random);
        for (const int j : all) {
            bool there = false;
            switch (random() % 3) {
                case 0:
                    // The longest limit is more than the clock can say.
                    there = mpix::wait_arrived(group, pair.receive(), j,
                                               random() % 2 == 0 ? mpix::default_timeout : ~std::uint64_t{0} - 1) ==
                            MPI_SUCCESS;
                    break;
                case 1:
                    do {
                        there = mpix::parrived(group, pair.receive(), j);
                    } while (!there && !agree(group, t.failure.load() != nullptr));
                    break;
                default:
                    for (int code = MPI_ERR_PENDING; code == MPI_ERR_PENDING; there = code == MPI_SUCCESS)
                        code = mpix::wait_arrived(group, pair.receive(), j, 200'000);
            }
            if (!there || !pair.right(j, 1)) t.fail("what has arrived is not what was sent");
            if (!mpix::parrived(mpix::this_thread(), pair.receive(), j))
                t.fail("what has arrived for the group is not there for one of its members");
            if (mpix::wait_arrived(group, pair.receive(), j, 0) != MPI_SUCCESS)
                t.fail("what has arrived is not there any more");
        }
        group.sync();
        if (group.thread_rank() == 0) t.received.fetch_add(1, std::memory_order_release);
    }
}

// Looks whenever it likes; what it is told of an epoch that ran before and after is looked at.
void watches(const scenario &s, played_pair &pair, turns &t, const std::atomic<std::uint64_t> &ended,
             std::uint64_t last, std::uint64_t seed) {
    std::mt19937_64 random(seed + 1000);
    while (ended.load(std::memory_order_acquire) < last && t.failure.load() == nullptr) {
        const int j = static_cast<int>(random() % static_cast<unsigned>(s.receivers));
        const std::uint64_t before = t.receiver.load(std::memory_order_acquire);
        int flag = 0;
        if (random() % 2 == 0)
            flag = mpix::parrived(mpix::this_thread(), pair.receive(), j) ? 1 : 0;
        else
            MPI_Parrived(pair.receive(), j, &flag);
        if (flag != 0 && before > ended.load(std::memory_order_acquire) && !pair.has_begun(j, before))
            t.fail("a partition is said to be there that was not sent");
        std::this_thread::yield();
    }
}

// The first failure, or null.
const char *play(const scenario &s, std::uint64_t last, std::uint64_t seed, std::uint64_t &deferred,
                 std::uint64_t &mailed) {
    std::mt19937_64 random(seed);
    played_pair pair(s);
    turns t;
    std::atomic<std::uint64_t> ended{0};
    std::thread sender([&] {
        mpix::host_launch(s.sending_groups, s.sending_threads,
                          [&](const mpix::host_group &g) { sends(g, s, pair, t, last, seed); });
    });
    std::thread receiver([&] {
        mpix::host_launch(s.receiving_groups, s.receiving_threads,
                          [&](const mpix::host_group &g) { receives(g, s, pair, t, last, seed); });
    });
    std::thread watcher([&] {
        if (s.watched) watches(s, pair, t, ended, last, seed);
    });
    const auto start = std::chrono::steady_clock::now();
    const auto until = [&](auto &&done) {
        while (!done()) {
            if (t.failure.load() != nullptr) return false;
            if (std::chrono::steady_clock::now() - start > std::chrono::nanoseconds(patience_ns)) {
                t.fail("it does not end");
                return false;
            }
            std::this_thread::yield();
        }
        return true;
    };
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        pair.fill(random);
        t.sent = 0;
        t.received = 0;
        // The sender may be early: what it readies before the clear-to-send is left to the engine.
        const bool early = random() % 4 == 0, unmatched = s.matched_late && epoch == 1;
        const auto open = [&] {
            if (unmatched && random() % 2 == 0) pair.match();
            pair.start_receive(epoch);
            t.receiver.store(epoch, std::memory_order_release);
            if (unmatched) pair.match();
            pair.clear_to_send(epoch);
        };
        if (!early) open();
        pair.start_send(epoch);
        t.sender.store(epoch, std::memory_order_release);
        if (early) {
            if (random() % 2 == 0) until([&] { return t.sent.load(std::memory_order_acquire) == s.sending_groups; });
            open();
        }
        bool complete = false;
        if (!until([&] {
                complete = complete || pair.progress(epoch);
                return complete && t.sent.load(std::memory_order_acquire) == s.sending_groups &&
                       t.received.load(std::memory_order_acquire) == s.receiving_groups;
            }))
            break;
        const bool by_mail = s.mailbox && is_mailable(pair.send(), static_cast<unsigned>(s.sending_threads));
        if (by_mail && !early && s.piece_out == 0 && epoch >= s.mailed_from && pair.has_deferred())
            t.fail("what can go by the mailbox was left to the engine");
        if (!pair.right(0, s.receivers) || !pair.untouched_around()) t.fail("the message is not what was sent");
        pair.taken_error();
        if (pair.receiver_erred() && t.failure.load() == nullptr) t.fail("an error at the receiver");
        pair.end(epoch);
        ended.store(epoch, std::memory_order_release);
        if (t.failure.load() != nullptr) break;  // nobody is to wait for an epoch that has no sender
    }
    sender.join();
    receiver.join();
    watcher.join();
    deferred += pair.deferred();
    mailed += pair.mailed();
    return t.failure.load();
}

}  // namespace

TEST_CASE("groups that ready, wait and watch over many epochs, as threads of a GPU do") {
    std::mt19937_64 random(Catch::rngSeed());
    std::uint64_t deferred = 0, mailed = 0, mailed_with_gaps = 0;
    for (int round = 0; round < 90; ++round) {
        scenario s{};
        s.receivers = 1 + static_cast<int>(random() % 3);
        s.mailbox = round % 2 == 0;
        s.senders = s.receivers * (s.mailbox ? 1 : 1 + static_cast<int>(random() % 3));
        constexpr std::uint64_t sizes[] = {8, 16, 24, 48, 5, 100, 256, 1024};
        s.bytes = sizes[random() % std::size(sizes)];
        s.skew = random() % 3 == 0 ? static_cast<unsigned>(random() % 16) : 0;
        s.mailed_from = 1 + random() % 3;
        s.sending_groups = 1 + static_cast<int>(random() % 2);
        s.receiving_groups = 1 + static_cast<int>(random() % 2);
        s.sending_threads = 1 + static_cast<int>(random() % 3);
        s.receiving_threads = 1 + static_cast<int>(random() % 3);
        s.watched = random() % 2 == 0;
        s.matched_late = random() % 3 == 0;
        s.sending_groups = std::min(s.sending_groups, s.senders);
        const auto piece = [&]() -> std::uint64_t {
            std::uint64_t length = std::uint64_t{1} << random() % 4;
            while (s.bytes % length != 0 || s.senders * s.bytes / static_cast<unsigned>(s.receivers) % length != 0)
                length /= 2;
            return random() % 3 == 0 ? length : 0;
        };
        s.piece_out = piece();
        s.piece_in = piece();
        const bool gaps = s.piece_out != 0 || s.piece_in != 0;
        CAPTURE(round, s.senders, s.receivers, s.bytes, s.skew, s.mailbox, s.mailed_from, s.sending_groups,
                s.receiving_groups, s.sending_threads, s.receiving_threads, s.watched, s.matched_late, s.piece_out,
                s.piece_in);
        const std::uint64_t mailed_before = mailed;
        const char *const failure = play(s, 12, random(), deferred, mailed);
        if (gaps) mailed_with_gaps += mailed - mailed_before;
        INFO(std::string(failure == nullptr ? "" : failure));
        REQUIRE(failure == nullptr);
    }
    CHECK(deferred != 0);
    CHECK(mailed != 0);
    CHECK(mailed_with_gaps != 0);
}
