// SPDX-License-Identifier: BSD-3-Clause
//
// A send and its receive, as kernels of two GPUs have them, in one process, with both hosts' part: Start,
// clear-to-send, progress engine, Wait. For tests whose host threads play GPU threads (MPIX_FAKE_GPU).
#ifndef MPIX_TESTS_UNIT_PLAYED_PAIR_HPP
#define MPIX_TESTS_UNIT_PLAYED_PAIR_HPP

#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"

namespace fake {

using namespace mpix::detail;

constexpr std::uint64_t patience_ns = 180'000'000'000u;  // against hangs

struct pair_shape {
    int senders, receivers;  // partitions
    std::uint64_t bytes;     // of one of the sender's
    unsigned skew;           // of both buffers
    bool inline_buffer;
    std::uint64_t inline_from;  // the epoch in which the sender hears of the inline buffer
    bool matched_late;
    bool gaps;                          // as far as kernels see: without an inline buffer they leave all to the engine
    std::uint64_t copy_engine_bytes;    // as in mpix_prequest
    std::uint64_t piece_out, piece_in;  // of buffers with gaps; 0: none
    std::uint32_t rget_bytes;           // as in mpix_prequest; 0: the receiver does not read the send buffer
    bool maybe_inline;                  // what the receiver reads might have had an inline buffer
    bool sole;                          // nobody but one group waits for what comes inline
};

// A message in the user's buffer: in one piece, or in pieces anywhere in twice the room.
class scattered_buffer {
public:
    scattered_buffer(std::uint64_t bytes, std::uint64_t piece, unsigned skew, std::mt19937_64 random)
        : bytes_(bytes), memory_(2 * bytes + 64), piece_(piece) {
        begin_ = reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 15) / 16 * 16) + 16;
        begin_ += piece == 0 ? skew : skew / piece * piece;
        if (piece == 0) return;
        std::vector<std::uint64_t> slots(bytes / piece);
        std::iota(slots.begin(), slots.end(), std::uint64_t{0});
        std::shuffle(slots.begin(), slots.end(), random);
        for (const std::uint64_t slot : slots)
            offsets_.push_back(static_cast<std::int64_t>((2 * slot + random() % 2) * piece));
    }
    char *begin() { return begin_; }
    const std::int64_t *offsets() const {
        return piece_ == 0 ? nullptr : offsets_in(offsets_.data(), static_cast<std::int64_t>(piece_));
    }
    char *at(std::uint64_t x) {
        return begin_ + (piece_ == 0 ? x : static_cast<std::uint64_t>(offsets_[x / piece_]) + x % piece_);
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
    std::vector<std::int64_t> offsets_;
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

class fake_pair {
public:
    explicit fake_pair(const pair_shape &s)
        : s_(s),
          total_(static_cast<std::uint64_t>(s.senders) * s.bytes),
          send_(MPIX_KIND_SEND, s.senders),
          receive_(MPIX_KIND_RECV, s.receivers),
          out_(total_, s.piece_out, s.skew, std::mt19937_64(total_)),
          in_(total_, s.piece_in, s.skew, std::mt19937_64(total_ + 1)),
          flags_(words_before_rts(static_cast<std::uint64_t>(s.senders)) + static_cast<std::uint64_t>(s.senders) + 1),
          wanted_(static_cast<std::size_t>(s.senders)),
          answers_(static_cast<std::size_t>(s.senders)),
          told_(static_cast<std::size_t>(s.senders)),
          ring_(static_cast<std::size_t>(s.senders)),
          lines_(2 * static_cast<std::size_t>(s.senders) * packets_of(s.bytes) + 2),
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
        inline_buffer_ = s.inline_buffer ? aligned(lines_, 16) : nullptr;
        if (s.inline_buffer) send_->offsets = out_.offsets(), receive_->offsets = in_.offsets();
        if (!s.matched_late) match();
    }

    MPIX_Prequest send() const {
        return s_.inline_buffer ? inline_capable_send(send_.get(), least_inline_threads(s_.bytes)) : send_.get();
    }
    MPIX_Prequest receive() const {
        // What is small enough for an inline buffer, but has none, says so by the handle all the same.
        if (s_.rget_bytes != 0 && !s_.inline_buffer)
            return s_.maybe_inline ? inline_capable_receive(receive_.get(), false, 1) : reading_receive(receive_.get());
        return s_.inline_buffer
                   ? inline_capable_receive(receive_.get(), s_.sole, least_inline_threads(receive_->partition_bytes))
                   : receive_.get();
    }

    mpix_prequest *sending() const { return send_.get(); }
    mpix_prequest *receiving() const { return receive_.get(); }

    // ---- the hosts' part ----

    void match() {
        store_relaxed(&receive_->peer_partitions, static_cast<std::uint64_t>(s_.senders));
        store_relaxed(&receive_->slots, 1);
        store_pointer(&receive_->taken, taken_of(flags_.data(), ring_.size()));
        receive_->told = told_.data();
        store_pointer(&receive_->inline_buffer, inline_buffer_);
        if (s_.rget_bytes != 0) {
            store_pointer(&receive_->wanted, wanted_.data());
            store_pointer(&receive_->answers, answers_.data());
            store_pointer(&receive_->peer_buffer, static_cast<const char *>(out_.begin()));
            store_pointer(&send_->wanted, wanted_.data());
            store_relaxed(&send_->rget_bytes, s_.rget_bytes);
        }
        store_pointer(&receive_->flags, flags_.data());
        store_release(&receive_words_.matched, 1);
        store_relaxed(&send_->slots, 1);
        store_pointer(&send_->peer_complete, &receive_words_.complete);
        store_pointer(&send_->inline_buffer, inline_buffer_);
        // Without an inline buffer, pready leaves what has gaps to the engine.
        const bool gaps = s_.gaps || s_.piece_out != 0 || s_.piece_in != 0;
        const auto at = reinterpret_cast<std::uintptr_t>(flags_.data());
        store_pointer(&send_->flags, reinterpret_cast<std::uint64_t *>(at | (gaps ? MPIX_FLAGS_WITH_LAYOUTS : 0)));
        store_relaxed(&send_->copy_engine_bytes, static_cast<std::uint32_t>(s_.copy_engine_bytes));
        store_relaxed(&send_->offload_bytes,
                      static_cast<std::uint32_t>(s_.copy_engine_bytes == 0 ||
                                                         (s_.rget_bytes != 0 && s_.rget_bytes < s_.copy_engine_bytes)
                                                     ? s_.rget_bytes
                                                     : s_.copy_engine_bytes));
        store_pointer(&receive_->kernel_clear_to_send, &kernel_clear_to_send_);
        store_pointer(&send_->kernel_clear_to_send, &kernel_clear_to_send_);
        store_pointer(&send_->landing, receive_->buffer);
    }
    void fill(std::mt19937_64 &random) {
        fill_out(random);
        in_.poison();
    }
    void fill_out(std::mt19937_64 &random) { out_.fill(random); }
    void poison_in() { in_.poison(); }
    void start_receive(std::uint64_t epoch) { store_release(&receive_words_.epoch, 2 * epoch + 1); }
    void clear_to_send(std::uint64_t epoch) {
        if (s_.inline_buffer && epoch >= s_.inline_from) store_release(&send_words_.inline_buffer, 1);
        store_release(&send_words_.clear_to_send, epoch);
    }
    void start_send(std::uint64_t epoch) {
        deferred_before_ = moved_;
        store_release(&send_words_.epoch, 2 * epoch + 1);
    }
    // The engine's next look; whether the message is complete at the receiver's.
    bool progress(std::uint64_t epoch) {
        // All told first: who is counted has put in the ring what it put there.
        const bool all_ready = load_acquire(&send_words_.all_ready) == epoch;
        for (;; ++moved_) {
            const std::uint64_t entry = load_acquire(&ring_[moved_ % ring_.size()]);
            const bool fresh = moved_ < load_relaxed(&send_->defer_count) && entry >> 32 == (epoch & 0xffffffff) &&
                               entry != 0 && last_moved_ != entry;
            if (!fresh) break;
            last_moved_ = entry;
            const std::uint64_t p = entry & (MPIX_RING_RTS - 1);
            if ((entry & MPIX_RING_RTS) != 0)
                offered_.push_back(p);
            else
                move(p, epoch);
        }
        std::erase_if(offered_, [&](std::uint64_t p) {
            const std::uint64_t answer = load_acquire(&answers_[p]);
            if (answer == 2 * epoch) {
                ++read_;
                if (load_relaxed(&flags_[p]) < epoch) answered_early_ = true;
            } else if (answer == 2 * epoch + 1) {
                ++refused_;
                move(p, epoch);
            }
            return answer >= 2 * epoch;
        });
        if (!all_ready || !offered_.empty()) return false;
        if (moved_ != deferred_before_) {
            if (moved_ != load_relaxed(&send_->defer_count)) return false;
            store_release(&flags_[ring_.size()], epoch);
            store_release(&receive_words_.complete, epoch);
        }
        if (load_acquire(&receive_words_.complete) < epoch) return false;
        // Of what was read, the answers have told; the sender's side sees no flags.
        return std::all_of(flags_.data(), flags_.data() + ring_.size() + 1, [&](const std::uint64_t &flag) {
            return (s_.rget_bytes != 0 ? load_relaxed(&flag) : load_acquire(&flag)) >= epoch;
        });
    }
    // The same in an activation in which kernels start epochs, from `first` on.
    bool progress_of_kernels(std::uint64_t first) {
        const std::uint64_t epoch = std::max(first, load_acquire(&send_words_.kernel_epoch));
        if (epoch != followed_) deferred_before_ = moved_;
        followed_ = epoch;
        if (load_acquire(&send_words_.clear_to_send) < epoch && load_acquire(&kernel_clear_to_send_) >> 1 < epoch)
            return false;
        const bool all_ready = load_acquire(&send_words_.all_ready) == epoch;
        const bool complete = progress(epoch);
        if (all_ready && moved_ != deferred_before_ && moved_ == load_relaxed(&send_->defer_count))
            store_release(&send_words_.concluded, epoch);
        return complete;
    }
    // Both hosts' look at the GPUs' memory, after the last kernel has ended: whether the epoch is over, of which nobody
    // tells them.
    bool ended_quietly(std::uint64_t epoch) {
        if (load_acquire(&send_->told_epoch) >> 1 < epoch || load_acquire(&send_words_.all_ready) >= epoch)
            return false;
        for (std::size_t p = 0; p < ring_.size(); ++p)
            if (load_acquire(&flags_[p]) < epoch) return false;
        store_release(&flags_[ring_.size()], epoch);
        return true;
    }
    std::uint64_t epoch_of_sending_kernel() const { return load_acquire(&send_words_.kernel_epoch); }
    std::uint64_t epoch_of_receiving_kernel() const { return load_acquire(&receive_words_.kernel_epoch); }
    // The end of such an activation.
    void end_of_kernels(std::uint64_t epoch) {
        store_relaxed(&send_->started_epoch, 0);
        store_relaxed(&receive_->started_epoch, 0);
        end(epoch);
    }
    void end(std::uint64_t epoch) {
        store_release(&send_words_.epoch, 2 * epoch);
        store_release(&receive_words_.epoch, 2 * epoch);
        deferred_ += moved_ - deferred_before_;
    }
    std::uint64_t taken_error() {
        const std::uint64_t error = load_acquire(&send_words_.error);
        store_release(&send_words_.error, 0);
        return error;
    }
    bool receiver_erred() { return load_acquire(&receive_words_.error) != 0; }
    bool has_failed(int error_class, int partition) {
        const std::uint64_t error = taken_error();
        return error != 0 && class_of(static_cast<mpix_cause>(error >> 48 & 0xff)) == error_class &&
               static_cast<std::uint32_t>(error) == static_cast<std::uint32_t>(partition + 1);
    }
    std::uint64_t flag(int p) const { return load_acquire(&flags_[static_cast<std::size_t>(p)]); }
    bool all_are_ready(std::uint64_t epoch) const { return load_acquire(&send_words_.all_ready) == epoch; }
    std::uint64_t deferred() const { return deferred_; }
    // Of the partitions that were offered to the receiver's groups, those that they have read, and that the engine had
    // to move. An answer comes behind its flag.
    std::uint64_t read() const { return read_; }
    std::uint64_t refused() const { return refused_; }
    bool answered_early() const { return answered_early_; }
    std::uint64_t wanted(int p) const { return load_relaxed(&wanted_[static_cast<std::size_t>(p)]); }
    std::uint64_t answer(int p) const { return load_acquire(&answers_[static_cast<std::size_t>(p)]); }
    bool has_deferred() const { return load_relaxed(&send_->defer_count) != deferred_before_; }  // in this epoch
    std::uint64_t sent_inline() const {
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
    void begin(int p, std::uint64_t epoch) { store_release(&begun_[static_cast<std::size_t>(p)], epoch); }
    bool has_begun(int j, std::uint64_t epoch) const {
        const overlap range = sender_partitions(receive_.get(), j, static_cast<std::uint64_t>(s_.senders));
        for (std::uint64_t p = range.first; p <= range.last; ++p)
            if (load_acquire(&begun_[p]) < epoch) return false;
        return true;
    }

private:
    // As the copy engine.
    void move(std::uint64_t p, std::uint64_t epoch) {
        for (std::uint64_t x = p * s_.bytes; x < (p + 1) * s_.bytes; ++x) *in_.at(x) = *out_.at(x);
        store_release(&flags_[p], epoch);
    }

    const pair_shape s_;
    const std::uint64_t total_;
    alignas(64) mpix_words send_words_{};
    alignas(64) mpix_words receive_words_{};
    request_memory send_, receive_;
    scattered_buffer out_, in_;
    std::vector<std::uint64_t> flags_, wanted_, answers_, told_, ring_, lines_, begun_;
    std::vector<std::uint64_t> offered_;  // and not answered
    char *inline_buffer_ = nullptr;
    std::uint64_t kernel_clear_to_send_ = 0, followed_ = 0;
    std::uint64_t moved_ = 0, deferred_before_ = 0, deferred_ = 0, last_moved_ = 0, read_ = 0, refused_ = 0;
    bool answered_early_ = false;
};

// Epoch after epoch; groups go on when the hosts have started theirs.
struct turns {
    std::atomic<std::uint64_t> sender{0}, receiver{0};                   // the last epoch started
    std::atomic<int> sent{0}, received{0};                               // groups that are done with it
    std::atomic<std::uint64_t> prepared_sends{0}, prepared_receives{0};  // times that one knew the epoch in registers
    std::atomic<const char *> failure{nullptr};

    void fail(const char *what) {
        const char *none = nullptr;
        failure.compare_exchange_strong(none, what);
    }
    void wait_alone(const std::atomic<std::uint64_t> &turn, std::uint64_t epoch) {
        for (backoff wait; turn.load(std::memory_order_acquire) < epoch && failure.load() == nullptr;) wait.pause();
    }
    // The same answer for all members.
    bool wait_for(const mpix::host_group &group, const std::atomic<std::uint64_t> &turn, std::uint64_t epoch) {
        if (group.thread_rank() == 0) wait_alone(turn, epoch);
        return broadcast_bool(group, turn.load(std::memory_order_acquire) >= epoch);
    }
};

}  // namespace fake

#endif  // MPIX_TESTS_UNIT_PLAYED_PAIR_HPP
