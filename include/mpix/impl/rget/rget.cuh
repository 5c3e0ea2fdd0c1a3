// SPDX-License-Identifier: BSD-3-Clause
//
// Rget. A large partition is made ready by few threads, often by one alone. Instead of storing it, they offer it to a
// group of the receiver that waits for it. Many threads of that group read it out of the send buffer at once. In short:
// the waiting group asks (`wanted`), the sender offers (RTS, ready-to-send), the group claims the partition (`taken`),
// reads it, sets its flag, and answers (`answers`).
//
// The receiver asks first. A group that begins to wait tells the sender so (`wanted`), and only wanted partitions are
// offered. So an offer depends on a group that looks for it already. It does not depend on what the receiver's kernels
// do later, or on room for a kernel of the library. A group whose wait ends at its deadline, without the partition,
// answers for it: then no group reads it any more, and the sender's progress engine moves it. Whichever raises taken[i]
// first decides.
//
// Only from the second epoch on: before that the match may be undone, and nothing may be stored at the sender.
#ifndef MPIX_IMPL_RGET_RGET_CUH
#define MPIX_IMPL_RGET_RGET_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/give_way.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/group/words.cuh>
#include <mpix/impl/inline/packet.cuh>

namespace mpix::detail {

// Tests on the host use smaller groups.
#ifndef MPIX_LEAST_READING_THREADS
#define MPIX_LEAST_READING_THREADS 32
#endif
// Groups of fewer threads do not read, because each thread waits for its own loads. Nor do groups with more bytes for
// each thread: the copy engine takes less time.
constexpr unsigned least_reading_threads = MPIX_LEAST_READING_THREADS;
constexpr uint64_t most_read_per_thread = 1024;
// Nor groups that wait for more of the sender's partitions than these: they would read one after the other what is
// stored at the same time.
constexpr unsigned most_read_partitions = 4;
// Nor groups that wait for a shorter time, since reading takes a while.
constexpr uint64_t least_reading_ns = 1000000;

// The handle that the user gets.
inline mpix_prequest *reading_receive(mpix_prequest *r) {
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<uint64_t>(r) | MPIX_HANDLE_READS);
}
// Whether a group of so many threads may ever read partitions of a receive whose sender has `senders` partitions (0:
// not known). Such a group decides in each wait whether it asks (ask_for); a group that never does waits better another
// way.
MPIX_FN bool may_read(const mpix_prequest *r, uint64_t senders, unsigned threads) {
    const uint64_t mine = static_cast<uint64_t>(r->partitions), most = most_read_per_thread * threads;
    // It waits for one partition of ours, which is at least one of the sender's.
    return threads >= least_reading_threads && r->partition_bytes <= most && senders <= most_read_partitions * mine &&
           (senders == 0 || mine * r->partition_bytes <= most * senders);
}
// Whether a group should look for offers; the same for all members. `senders`: the sender's partitions, or 0 if not
// known. The handle of a receive that might have an inline buffer is checked for having none, but offers.
template <class Group>
MPIX_FN bool reads_rts(const Group &group, const mpix_prequest *handle, const mpix_prequest *r, uint64_t senders) {
#if MPIX_ON_GPU
    const unsigned threads = static_cast<unsigned>(group.num_threads());
    const bool inline_capable = is_inline_capable(handle);
    if (!inline_capable && (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_READS) == 0) return false;
    if (!inline_capable && senders != 0) return may_read(r, senders, threads);
    // Two loads that are under way together.
    const uint64_t theirs = senders != 0 ? senders : load_weak(&r->peer_partitions);
    const bool no_inline_buffer = load_pointer_weak(&r->wanted) != nullptr;
    // The members may have seen different values, since the route may have just come.
    return vote_all(group, may_read(r, theirs, threads) && (!inline_capable || no_inline_buffer));
#else
    (void)group, (void)handle, (void)r, (void)senders;
    return false;
#endif
}

// The words that hold the last epoch in which each of the sender's partitions was offered. They lie behind the flags
// and `taken`.
MPIX_FN uint64_t words_before_rts(uint64_t senders) { return 2 * senders + 1; }
MPIX_FN uint64_t *rts_of(uint64_t *flags, uint64_t senders) { return flags + words_before_rts(senders); }

// How much longer reading takes than stores and a flag: the latency of a load across the link, a barrier, and looks.
// Estimated from what these take on an H200, not measured as a whole.
constexpr uint64_t reading_ns = 4000;

// Whether a group of the receiver asks in this epoch for a partition of so many bytes; `least` of them are stored in
// reading_ns. `look`: the last epoch for which one has asked, as it is now.
//
// If it asked in the last epoch, in time or too late, it may be about to ask again, so the sender looks again.
// Otherwise a partition that was once stored because the question came a little late would be stored for ever: by
// storing it, a sender is late with its own question. A look takes a trip to memory, about 0.4 us. All looks together
// take at most a tenth of the time that storing the partition takes, and at most twice the time that a question takes
// if the receiver begins only now.
constexpr unsigned most_looks_for_question = 20;
template <class Look>
MPIX_FN bool is_asked_for(uint64_t epoch, uint64_t partition_bytes, uint64_t least, const Look &look) {
    if (epoch == 1) return false;  // no group asks in the first epoch
    uint64_t asked = look();
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (unsigned looks = 0; asked + 1 == epoch && looks < most_looks_for_question; ++looks) {
        if (looks * least >= partition_bytes) break;
        asked = look();
    }
    return asked == epoch;
}

// Whether a group of the receiver waits for partition p of a send, as in is_asked_for. One thread. Nothing is acquired:
// only the decision to offer depends on it.
MPIX_FN bool is_wanted(const mpix_prequest *r, int p, uint64_t epoch, uint64_t least) {
    const uint64_t *const wanted = load_pointer(&r->wanted);
    return wanted != nullptr &&
           is_asked_for(epoch, r->partition_bytes, least, [&] { return load_relaxed(wanted + p); });
}

// Copies this member's words of eight or sixteen bytes from a peer's memory; returns the position of its next word.
// Several loads are under way before the first store, as each takes a trip over the link.
template <class T, unsigned Ahead>
MPIX_FN unsigned copy_words_ahead(unsigned at, unsigned step, char *to, const char *from, unsigned bytes) {
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (; at + (Ahead - 1) * step < bytes; at += Ahead * step) {
        T word[Ahead];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (unsigned k = 0; k < Ahead; ++k) word[k] = load_word<T>(from + at + k * step);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (unsigned k = 0; k < Ahead; ++k) store_word(to + at + k * step, word[k]);
    }
    return at;
}
template <class T>
MPIX_FN void copy_words_from_peer(unsigned rank, unsigned threads, char *to, const char *from, unsigned bytes) {
    const unsigned step = threads * unsigned{sizeof(T)};
    unsigned at = copy_words_ahead<T, 4>(rank * unsigned{sizeof(T)}, step, to, from, bytes);
    at = copy_words_ahead<T, 2>(at, step, to, from, bytes);
    copy_words_ahead<T, 1>(at, step, to, from, bytes);
}
MPIX_FN void copy_from_peer(unsigned rank, unsigned threads, char *to, const char *from, unsigned bytes) {
    if (((reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from) | bytes) & 15) == 0)
        copy_words_from_peer<block16>(rank, threads, to, from, bytes);
    else
        copy_words_from_peer<uint64_t>(rank, threads, to, from, bytes);
}

// The state of a wait that may be offered partitions. It lies in memory, and is passed between functions that are not
// inlined, so that a kernel needs no more registers for them.
struct reading {
    awaited w;
    mpix_prequest *r;
    int partition;     // ours
    uint64_t *wanted;  // where the group tells the sender that it waits; null: it does not
    unsigned offered;  // the sender's partition that the group reads
    const char *from;  // the send buffer; null: a faulty peer has undone the match
};

// Tells the sender that this group waits, if it is one that reads.
template <class Group>
MPIX_FN void ask_for(const Group &group, reading &s) {
    const awaited &w = s.w;
    const unsigned threads = static_cast<unsigned>(group.num_threads());
    const bool few = w.count <= most_read_partitions && uint64_t{w.count} * w.bytes <= most_read_per_thread * threads,
               long_wait = w.deadline == ~uint64_t{0} || now_ns() + least_reading_ns <= w.deadline;
    uint64_t *const wanted = load_pointer(&s.r->wanted);  // null: nothing is offered
    s.wanted = w.epoch > 1 && few && long_wait && wanted != nullptr ? wanted + w.first : nullptr;
    if (s.wanted == nullptr) return;
    for (unsigned n = static_cast<unsigned>(group.thread_rank()); n < w.count; n += threads)
        store_relaxed(s.wanted + n, w.epoch);
}

// The group has asked, and waits no longer; the epoch is the one for which it asked, since a call does not outlive it.
// The sender is told that this group reads nothing. Partitions that other groups have claimed are answered by them. It
// makes no difference to the engine whether the offer comes before or after this.
template <class Group>
MPIX_COLD_FN void refuse_rts(const Group &group, const reading &s) {
    const awaited &w = s.w;
    if (s.wanted == nullptr) return;
    uint64_t *const wanted = load_pointer(&s.r->wanted), *const answers = load_pointer(&s.r->answers);
    if (wanted == nullptr || answers == nullptr) return;
    for (unsigned n = w.first + static_cast<unsigned>(group.thread_rank()); n < w.first + w.count;
         n += static_cast<unsigned>(group.num_threads())) {
        store_relaxed(wanted + n, 0);
        // pairs: B4
        if (load_relaxed(w.flags + n) < w.epoch &&
            fetch_max_relaxed_gpu(w.taken() + n, 2 * w.epoch - 1) < 2 * w.epoch - 1)
            store_release(answers + n, 2 * w.epoch + 1);  // all reads of the epoch before come before it
    }
}

// Waits until one of the sender's partitions is this group's to read (offered); or all are there; or the wait has ended
// before that.
enum class found { rts, all, none };
template <class Group>
MPIX_COLD_FN found find_rts(const Group &group, reading &s) {
    const awaited &w = s.w;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    uint64_t *const flags = w.flags + w.first, *const offers = rts_of(w.flags, w.senders) + w.first,
                    *const taken = w.taken() + w.first;
    for (;;) {
        // The members look side by side, for a while, as in all_flagged.
        bool there = true, offered = false;
        for (unsigned looks = 64; looks != 0; --looks) {
            there = true;
            for (unsigned n = rank; n < w.count; n += threads) {
                const uint64_t flag = load_relaxed(flags + n),
                               offer = s.wanted != nullptr ? load_relaxed(offers + n) : 0;  // under way together
                if (flag >= w.epoch) continue;
                there = false;
                offered |= offer == w.epoch && load_relaxed(taken + n) < 2 * w.epoch - 1;
            }
            if (there || offered) break;
        }
        // Pairs with conclude_direct, with the engine's flags, and with store_release_gpu in read_rts.
        for (unsigned n = rank; there && n < w.count; n += threads) fence_acquire(flags + n);  // pairs: A1, B2
        // A barrier: all members have what any of them acquired.
        if (vote_all(group, there)) return found::all;
        if (vote_all(group, !offered)) {
            if (broadcast_bool(group, rank == 0 && w.over(s.r))) return found::none;
            if (rank == 0) give_way();
            continue;
        }
        const char *const from = load_pointer(&s.r->peer_buffer);  // under way together with the claim
        for (unsigned n = 0; n < w.count; ++n) {
            bool mine = false;
            if (rank == 0 && load_relaxed(offers + n) == w.epoch) {
                mine = fetch_max_relaxed_gpu(taken + n, 2 * w.epoch - 1) < 2 * w.epoch - 1;
                // Pairs with store_release_after_fence in send_rts: the partition's bytes.
                if (mine) fence_acquire(offers + n);  // pairs: B1
            }
            // A barrier: all members have what the leader acquired.
            if (broadcast_bool(group, mine)) {
                s.offered = w.first + n;
                s.from = from;
                return found::rts;
            }
        }
    }
}

// Reads what this group has claimed out of the send buffer. False: a faulty peer has undone the match.
template <class Group>
MPIX_COLD_FN bool read_rts(const Group &group, const reading &s) {
    const char *const from = s.from;
    if (!vote_all(group, from != nullptr)) return false;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    const uint64_t at = uint64_t{s.offered} * s.w.bytes;
    reconverge(group);
    copy_from_peer(rank, threads, s.r->buffer + at, from + at, s.w.bytes);
    group.sync();  // all members' loads and stores come before it
    // By the last thread, as in take_inline. What all members have stored comes before the flag. Pairs with
    // reached_acquire and fence_acquire, in other groups of this GPU.
    if (rank == threads - 1) store_release_gpu(s.w.flags + s.offered, s.w.epoch);  // pairs: B2
    group.sync();  // whoever asks from now on finds the flag
    // All members' loads and stores, and the flag, come before the answer. After it the sender's host lets the send
    // buffer be written again, and tells the receiver's host that all is there. Pairs with load_acquire() in the
    // engine.
    if (uint64_t *const answers = load_pointer(&s.r->answers); rank == threads - 1 && answers != nullptr)
        store_release(answers + s.offered, 2 * s.w.epoch);  // pairs: B3
    return true;
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_RGET_RGET_CUH
