// SPDX-License-Identifier: BSD-3-Clause
//
// A small partition's way into a peer GPU without a fence: each store carries data and the epoch it is of, so whoever
// finds the epoch has the data. The stores go to lines of a mailbox at the receiver, whose kernels (Parrived) copy them
// out to the user's buffer and set the arrival flag that a fence would have been waited for otherwise.
//
// One slot is enough: the receiver starts an epoch only when all of the one before is in its buffer, and clear-to-send
// says so.
#ifndef MPIX_DEVICE_MAILBOX_CUH
#define MPIX_DEVICE_MAILBOX_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/device/group.cuh>
#include <mpix/device/payload.cuh>
#include <mpix/device/words.cuh>

namespace mpix::detail {

// The request that a handle stands for; whether it may have a mailbox.
MPIX_FN mpix_prequest *request_of(mpix_prequest *handle) {
#if MPIX_ON_GPU
    // Subtracted, not masked: so the compiler still sees what kind of memory a kernel's argument leads to.
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<char *>(handle) -
                                             (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_BITS));
#else
    return handle;  // host threads use none
#endif
}
MPIX_FN bool is_mailable(const mpix_prequest *handle) {
#if MPIX_ON_GPU
    return (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_MAILABLE) != 0;
#else
    (void)handle;
    return false;
#endif
}
// The same of a send, by a group of so many threads.
MPIX_FN bool is_mailable(const mpix_prequest *handle, unsigned threads) {
#if MPIX_ON_GPU
    const unsigned bits = static_cast<unsigned>(reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_BITS);
    return (bits & MPIX_HANDLE_MAILABLE) != 0 && threads >> (bits >> MPIX_HANDLE_THREADS_SHIFT) != 0;
#else
    (void)handle, (void)threads;
    return false;
#endif
}
// Who asks for the partitions of a receive with a mailbox: several groups, of which one takes a partition out for all, or only
// one of which the others hear afterwards.
enum class waiters { no_mailbox, any, sole };
MPIX_FN waiters waiters_of(const mpix_prequest *handle) {
    if (!is_mailable(handle)) return waiters::no_mailbox;
    return (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_SOLE) != 0 ? waiters::sole : waiters::any;
}
// For the user; `least_threads` is at least 1.
inline mpix_prequest *mailable_send(mpix_prequest *r, uint64_t least_threads) {
    uint64_t logarithm = 0;
    while ((uint64_t{1} << logarithm) < least_threads) ++logarithm;
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<uint64_t>(r) | MPIX_HANDLE_MAILABLE |
                                             logarithm << MPIX_HANDLE_THREADS_SHIFT);
}
inline mpix_prequest *mailable_receive(mpix_prequest *r, bool sole_waiter, uint64_t least_threads) {
    constexpr uint64_t most = MPIX_HANDLE_BITS >> MPIX_HANDLE_TAKERS_SHIFT;  // no group has so many
    uint64_t logarithm = 0;
    while (logarithm < most && (uint64_t{1} << logarithm) < least_threads) ++logarithm;
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<uint64_t>(r) | MPIX_HANDLE_MAILABLE |
                                             (sole_waiter ? MPIX_HANDLE_SOLE : 0) |
                                             logarithm << MPIX_HANDLE_TAKERS_SHIFT);
}
// Whether a group of so many threads is to try take_at_once.
MPIX_FN bool takes_at_once(const mpix_prequest *handle, unsigned threads) {
    const unsigned bits = static_cast<unsigned>(reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_BITS);
    return is_mailable(handle) && threads >> (bits >> MPIX_HANDLE_TAKERS_SHIFT) != 0;
}

// A line holds eight packed bytes, four and four, each beside the low half of the epoch: {data, epoch, data, epoch}. A
// 64-bit word is stored whole (PTX ISA, "Memory Consistency Model": vector accesses are modelled as accesses of their
// elements), and nothing more is needed.
constexpr uint64_t line_bytes = 16;
MPIX_FN uint64_t lines_of(uint64_t bytes) { return (bytes + line_payload - 1) / line_payload; }

// A group of so many threads is faster with a fence where each would have more lines than these to store.
constexpr uint64_t most_lines_per_thread = 4;

MPIX_FN void store_line(char *box, uint64_t line, uint64_t epoch, uint64_t payload) {
    const uint64_t tag = epoch << 32;
    poke_pair(reinterpret_cast<uint64_t *>(box + line * line_bytes), tag | (payload & 0xffffffffu),
              tag | (payload >> 32));
}
// Whether what was read of a line is of this epoch; then what is in it.
MPIX_FN bool is_line_of(uint64_t low, uint64_t high, uint64_t epoch, uint64_t *payload) {
    *payload = (low & 0xffffffffu) | high << 32;
    return (static_cast<uint32_t>(low >> 32) == static_cast<uint32_t>(epoch)) &
           (static_cast<uint32_t>(high >> 32) == static_cast<uint32_t>(epoch));
}
// The same of the line itself.
MPIX_FN bool load_line(const char *box, uint64_t line, uint64_t epoch, uint64_t *payload) {
    uint64_t low, high;
    peek_pair(reinterpret_cast<const uint64_t *>(box + line * line_bytes), &low, &high);
    return is_line_of(low, high, epoch, payload);
}

// Who of a group does anything for so many lines: those that have one, the first, who leads, and the last, who tells of it; the others
// take their word. Of a warp all, who would wait for each other.
MPIX_FN bool is_busy(unsigned rank, unsigned threads, unsigned lines) {
    return threads <= 32 || rank == 0 || rank == threads - 1 || rank < lines;
}

// Threads that take no part have not loaded `mailbox`, so it may be null; C++ does not allow an offset to that.
MPIX_FN char *mailbox_of(char *mailbox, uint64_t partition, uint64_t bytes) {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(mailbox) + partition * lines_of(bytes) * line_bytes);
}
MPIX_FN uint64_t least_mailing_threads(uint64_t bytes) {
    return (lines_of(bytes) + most_lines_per_thread - 1) / most_lines_per_thread;
}

// This member's lines of a partition with gaps, the first of them with packed byte `at`.
MPIX_COLD_FN void gather_lines(const spread from, char *box, uint64_t epoch, unsigned at, unsigned bytes,
                               unsigned threads) {
    const unsigned halved = static_cast<unsigned>(halvings(from.places));
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (; at < bytes; at += threads * unsigned{line_payload}) {
        const unsigned left = bytes - at < line_payload ? bytes - at : unsigned{line_payload};
        store_line(box, at / line_payload, epoch, gather_pieces(from.memory, from.place(at), halved, left));
    }
}
// This member's lines of partition p, whose epoch open_word says; at any alignment, and with Gaps from where the pieces are.
template <bool Gaps>
MPIX_COLD_FN void store_lines(const mpix_prequest *r, int p, unsigned rank, unsigned threads) {
    const uint64_t epoch = peek(&r->open_word) >> 1, bytes = r->partition_bytes, lines = lines_of(bytes);
    const spread s = spread_of(r->buffer, r->places, static_cast<uint64_t>(p) * bytes);
    char *const box = mailbox_of(peek_pointer(&r->mailbox), static_cast<uint64_t>(p), bytes);
    if constexpr (Gaps)
        if (s.places != nullptr)
            return gather_lines(s, box, epoch, rank * unsigned{line_payload}, static_cast<unsigned>(bytes), threads);
    const char *const from = s.memory;
    const bool words = in_words(from, bytes);
    for (uint64_t i = rank; i < lines; i += threads)
        store_line(box, i, epoch,
                   words ? load_word<uint64_t>(from + i * line_payload) : load_ragged(from, i * line_payload, bytes));
}

// Whether partitions of a send's epoch `epoch`, whose gate is open, may go by the mailbox. One thread.
MPIX_FN bool may_mail(const mpix_prequest *r, uint64_t epoch) {
    return peek_pointer(&r->mailbox) != nullptr && peek(&r->open_word) == 2 * epoch + 1;
}

// Who takes what out of a mailbox; behind the flags, so that whoever has read where these are knows both of one match.
MPIX_FN uint64_t *taken_of(uint64_t *flags, uint64_t senders) { return flags + senders + 1; }

// What a group waits for: partitions of the sender's, as their receiver sees them. All members alike. What is small in 32 bits,
// for every kernel that waits pays for the registers.
struct awaited {
    unsigned first, count, senders;  // the sender's partitions: those, and all
    unsigned bytes;                  // of one of them, where there is a mailbox, or they may be offered
    uint64_t epoch;
    uint64_t *flags;    // of all, and behind them the whole message's: MPIX_GATE_NEVER if nothing will come any more
    char *mailbox;      // or null
    bool sole;          // see waiters
    uint64_t deadline;  // by now_ns; ~0: none

    // As mpix_prequest.taken, of this match: that field may be another's by now, or null.
    MPIX_FN uint64_t *taken() const { return taken_of(flags, senders); }
    MPIX_FN bool late() const { return deadline != ~uint64_t{0} && now_ns() >= deadline; }
    // Or the match was undone: no flag here will ever be set.
    MPIX_FN bool over(const mpix_prequest *r) const {
        return peek(&flags[senders]) == MPIX_GATE_NEVER || peek_pointer(&r->flags) != flags || late();
    }
    MPIX_FN char *box(unsigned i) const { return mailbox_of(mailbox, i, bytes); }
    MPIX_FN unsigned lines() const { return static_cast<unsigned>(lines_of(bytes)); }
};

enum class letter { taken, flagged, missing };

// Copy this member's lines of a partition out, as they come, until the time is over or the flag says that the partition
// came another way: then none of its lines ever come, and what its sender published with the flag is visible.
MPIX_FN letter take_lines(const mpix_prequest *r, const awaited &w, unsigned i, const spread &to, unsigned rank,
                          unsigned threads) {
    const char *const box = w.box(i);
    const unsigned lines = w.lines();
    constexpr unsigned each = 2;
    for (unsigned k = rank; k < lines; k += each * threads) {
        uint64_t payload[each] = {};
        for (unsigned polls = 1;; ++polls) {
            const uint64_t flag = peek(&w.flags[i]);
            bool there = true;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (unsigned n = 0; n < each; ++n)
                if (k + n * threads < lines) there &= load_line(box, k + n * threads, w.epoch, &payload[n]);
            if (there) break;
            if (flag >= w.epoch) {
                acquire_peeked(&w.flags[i]);
                return letter::flagged;
            }
            if (polls % 64 == 0 && w.over(r)) return letter::missing;
        }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (unsigned n = 0; n < each; ++n)
            if (k + n * threads < lines) store_payload(to, (k + n * threads) * line_payload, w.bytes, payload[n]);
    }
    return letter::taken;
}
MPIX_FN bool lines_are_there(const awaited &w, unsigned i, unsigned rank, unsigned threads) {
    const char *const box = w.box(i);
    uint64_t payload;
    for (unsigned k = rank; k < w.lines(); k += threads)
        if (!load_line(box, k, w.epoch, &payload)) return false;
    return true;
}

// Whether one who has found `before` where he raised taken[i] to his claim has it. One thread, before a barrier.
MPIX_FN bool has_claimed(const awaited &w, unsigned i, uint64_t before) {
    // It was given back: what that group has copied comes before what this one copies. Pairs with claim_gpu in take_letter.
    if (before == 2 * w.epoch - 2) acquire_peeked(w.taken() + i);
    return before < 2 * w.epoch - 1;
}

// A partition is in the user's buffer. One thread, behind a barrier of the group that has copied it.
MPIX_FN void tell_taken(uint64_t *flag, uint64_t *told, uint64_t epoch, bool sole) {
    // What all members stored, before the flag. Pairs with reached in all_flagged, of other groups of this GPU; the host starts
    // work of the GPU after it has seen `told`. Without other groups the members' barriers are enough: who asks later, or reads, has
    // synchronised with this group, which takes the bytes along; that the host is told behind them is an order of time.
    if (sole)
        poke(flag, epoch);
    else
        publish_gpu(flag, epoch);
    poke(told, epoch);
}

// Partition i into the user's buffer, unless another group has set about it; whether it is there now. `once`: only if all of it
// lies in the mailbox; then what another group has set about is waited for. `claimed`: this group has already.
template <class Group>
MPIX_FN bool take_letter(const Group &group, mpix_prequest *r, const awaited &w, unsigned i, bool once, bool claimed) {
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    if (once && !agree_all(group, lines_are_there(w, i, rank, threads))) return false;
    while (!claimed) {
        claimed = agree(group, rank == 0 && has_claimed(w, i, raise_gpu(w.taken() + i, 2 * w.epoch - 1)));
        if (claimed) break;
        if (!once) return false;
        // All of it lies there, so who has set about it has nothing to wait for, and may have told its own members already that
        // the partition is there: then nobody who comes after these is to hear that it is not.
        if (agree_all(group, reached(&w.flags[i], w.epoch))) return true;
    }
    uint64_t *const told = glance_pointer(&r->told);  // read here, where nobody waits for it
    const spread to = spread_of(r->buffer, r->places, uint64_t{i} * w.bytes);
    const letter mine = take_lines(r, w, i, to, rank, threads);
    if (agree_all(group, mine == letter::taken)) {
        // By the last of them, for it has to wait for the stores, and the first ones have the most to do next.
        if (rank == threads - 1) tell_taken(&w.flags[i], told + i, w.epoch, w.sole);
        return true;
    }
    // A barrier: what the leader acquired, every member has.
    if (agree(group, rank == 0 && mine == letter::flagged)) return true;
    // Another group's to take, over what was copied, which this hands on (see has_claimed). If that is still what it is: the
    // partition may have come by its flag just now, and then the next epoch's be another group's already.
    if (rank == 0) claim_gpu(w.taken() + i, 2 * w.epoch - 1, 2 * w.epoch - 2);
    return false;
}

// Whether all the awaited are in the user's buffer; the members look at the flags side by side, so many times before the
// barrier, which takes as long as a look.
template <class Group>
MPIX_FN bool all_flagged(const Group &group, const awaited &w, unsigned looks) {
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    bool mine = true;
    for (unsigned n = rank; mine && n < w.count; n += threads) {
        unsigned left = looks;
        do mine = reached(&w.flags[w.first + n], w.epoch);
        while (!mine && --left != 0);
    }
    return agree_all(group, mine);
}

// Wait until all of them are there, taking out of the mailbox what nobody else does; false: that was over before. Of a message
// with a mailbox a partition here has bytes of two of the sender's at most. Groups begin with different ones. `claimed`: this
// group has set about the one.
template <class Group>
MPIX_FN bool await_all(const Group &group, mpix_prequest *r, const awaited &w, bool once, bool claimed) {
#ifdef __CUDA_ARCH__
    unsigned next = w.count == 1 ? 0 : blockIdx.x % w.count;
#else
    unsigned next = 0;
#endif
    const unsigned looks = w.mailbox == nullptr && !once ? 64 : 1;
    for (unsigned round = 1;; ++round) {
        if (w.mailbox != nullptr) {
            if (take_letter(group, r, w, w.first + next, once, claimed) && w.count == 1) return true;
            claimed = false;
            if (++next == w.count) next = 0;
        }
        if (all_flagged(group, w, looks)) return true;
        if (once && round >= w.count) return false;
        if (round % (looks > 1 ? 1 : 16) == 0 && agree(group, group.thread_rank() == 0 && w.over(r))) return false;
    }
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_MAILBOX_CUH
