// SPDX-License-Identifier: BSD-3-Clause
//
// Rget. A large partition is made ready by few threads, often by one alone. Instead of storing it, they offer it to a
// group of the receiver that waits for it. Many threads of that group read it out of the send buffer at once. In short:
// the waiting group asks (`wanted`), the sender offers (RTS, ready-to-send), the group claims the partition (`taken`),
// reads it, sets its flag, and answers (`answers`). Beside an inline buffer the claim comes first (recv/await_offer.cuh).
//
// The receiver asks first. A group that begins to wait tells the sender so (`wanted`), and only wanted partitions are
// offered. It asks only if the sender has lately had something to offer, and said so (`would_offer`): without a
// question a wait is shorter. So an offer depends on a group that looks for it already. It does not depend on what the
// receiver's kernels do later, or on room for a kernel of the library. A group whose wait ends at its deadline, without
// the partition, answers for it: then no group reads it any more, and the sender's progress engine moves it. Whichever
// raises taken[i] first decides.
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
// Larger groups of the sender do not offer: they store about as fast as a block reads.
constexpr uint64_t most_offering_threads = 32;

// The handle that the user gets.
inline mpix_prequest *reading_receive(mpix_prequest *r) {
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<uint64_t>(r) | MPIX_HANDLE_READS);
}
// Whether a group of so many threads may ever read partitions of a receive of `mine` partitions, whose sender has
// `senders` (0: not known). Such a group decides in each wait whether it asks (ask_for); a group that never does waits
// better another way.
MPIX_FN bool may_read(uint64_t mine, uint64_t bytes, uint64_t senders, unsigned threads) {
    const uint64_t most = most_read_per_thread * threads;
    // It waits for one partition of ours, which is at least one of the sender's.
    return threads >= least_reading_threads && bytes <= most && senders <= most_read_partitions * mine &&
           (senders == 0 || mine * bytes <= most * senders);
}
#if MPIX_ON_GPU
// Whether the handle says that partitions may be offered. A handle that may have an inline buffer cannot tell.
MPIX_FN bool may_be_offered(const mpix_prequest *handle) {
    return is_inline_capable(handle) || (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_READS) != 0;
}
#endif
// Whether the group may read partitions; all members get the same answer.
template <class Group>
MPIX_FN bool reads_rts(const Group &group, const mpix_prequest *handle, const mpix_prequest *r) {
#if MPIX_ON_GPU
    if (!may_be_offered(handle)) return false;
    // Loads that are under way together.
    const uint64_t senders = load_weak(&r->peer_partitions);
    // With an inline buffer only a group asks that has claimed a partition there (recv/await_offer.cuh).
    const bool may_ask = load_pointer_weak(&r->wanted) != nullptr && load_pointer_weak(&r->inline_buffer) == nullptr;
    // The members may have seen different values, since the route may have just come.
    return vote_all(group, may_read(static_cast<uint64_t>(r->partitions), r->partition_bytes, senders,
                                    static_cast<unsigned>(group.num_threads())) &&
                               (!is_inline_capable(handle) || may_ask));
#else
    (void)group, (void)handle, (void)r;
    return false;
#endif
}

// The words that hold the last epoch in which each of the sender's partitions was offered. They lie behind the flags
// and `taken`.
MPIX_FN uint64_t words_before_rts(uint64_t senders) { return 2 * senders + 1; }
MPIX_FN uint64_t *rts_of(uint64_t *flags, uint64_t senders) { return flags + words_before_rts(senders); }

// Behind them: the last epoch in which the sender would have offered a partition. For some epochs after it, the
// receiver's groups ask. Without a route for reading there is no such word.
MPIX_FN uint64_t *would_offer_of(uint64_t *flags, uint64_t senders) { return rts_of(flags, senders) + senders; }
constexpr uint64_t epochs_of_asking = 8;
MPIX_FN bool expects_offers(uint64_t would_offer, uint64_t epoch) {
    return would_offer != 0 && epoch - would_offer <= epochs_of_asking;
}

// How much longer reading takes than stores and a flag: the latency of a load across the link, barriers, looks, and what has
// to be told. On two H200, 2 to 8 KiB beside an inline buffer are read in 10 us; one thread stores 2 KiB in 8, 4 KiB in 15.
constexpr uint64_t reading_ns = 7000;

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
    int partition;  // ours
    bool asks;      // the group has told the sender that it waits
};

// Whether a group of so many threads reads so many of the sender's partitions.
MPIX_FN bool reads_these(uint64_t count, uint64_t bytes_each, unsigned threads) {
    return threads >= least_reading_threads && count <= most_read_partitions &&
           count * bytes_each <= most_read_per_thread * threads;
}

// Whether the waiting group may ask for offers. asked: it has, so it must read or refuse them; claimed: and has claimed the
// partition beside an inline buffer.
enum class rget_question { none, possible, asked, claimed };

// Tells the sender that this group waits, if it is one that reads. With s.asks it has done so.
template <class Group>
MPIX_FN void ask_for(const Group &group, reading &s) {
    const awaited &w = s.w;
    const bool leader = group.thread_rank() == 0;
    bool asks = false;
    if (s.asks) return;
    if (leader && reads_these(w.count, w.bytes, static_cast<unsigned>(group.num_threads())) && w.epoch > 1 &&
        (w.deadline == ~uint64_t{0} || now_ns() + least_reading_ns <= w.deadline)) {
        uint64_t *const wanted = load_pointer(&s.r->wanted);  // null: nothing is offered
        asks = wanted != nullptr;
        for (unsigned n = 0; asks && n < w.count; ++n) store_relaxed(wanted + w.first + n, w.epoch);
    }
    s.asks = broadcast_bool(group, asks);
}

// The group has asked, and waits no longer; the epoch is the one for which it asked, since a call does not outlive it.
// The sender is told that this group reads nothing. Partitions that other groups have claimed are answered by them. It
// makes no difference to the engine whether the offer comes before or after this.
template <class Group>
MPIX_COLD_FN void refuse_rts(const Group &group, const reading &s) {
    const awaited &w = s.w;
    if (!s.asks) return;
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

// Reads partition w.first + n, which this group has claimed, out of the send buffer.
template <class Group>
MPIX_FN void read_claimed(const Group &group, const reading &s, unsigned n, char *to, const char *from,
                          uint64_t *answers) {
    const awaited &w = s.w;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads()), i = w.first + n;
    const uint64_t at = uint64_t{i} * w.bytes;
    reconverge(group);
    copy_from_peer(rank, threads, to + at, from + at, w.bytes);
    group.sync();  // all members' loads and stores come before it
    // By the last thread, as in take_inline. What all members have stored comes before the flag. Pairs with
    // reached_acquire and fence_acquire, in other groups of this GPU.
    if (rank == threads - 1) store_release_gpu(w.flags + i, w.epoch);  // pairs: B2
    group.sync();                                                      // whoever asks from now on finds the flag
    // All members' loads and stores, and the flag, come before the answer. After it the sender's host lets the send
    // buffer be written again, and tells the receiver's host that all is there. Pairs with load_acquire() in the
    // engine.
    if (rank == threads - 1 && answers != nullptr) store_release(answers + i, 2 * w.epoch);  // pairs: B3
}

// Waits until this group has read one offered partition (one), or all partitions are there (all), or the wait is over
// (over). The group has asked.
enum class read_end { one, all, over };
template <class Group>
MPIX_COLD_FN read_end read_next(const Group &group, const reading &s) {
    const awaited &w = s.w;
    const unsigned rank = static_cast<unsigned>(group.thread_rank());
    uint64_t *const flags = w.flags + w.first, *const offers = rts_of(w.flags, w.senders) + w.first,
                    *const taken = w.taken() + w.first;
    // Loaded before the wait: between an offer and the reading each trip to memory counts.
    const char *const from = load_pointer(&s.r->peer_buffer);
    char *const to = s.r->buffer;
    uint64_t *const answers = load_pointer(&s.r->answers);
    constexpr unsigned nobody = ~0u;
    for (;;) {
        // Only the leader looks: there are at most most_read_partitions flags.
        bool there = false;
        unsigned mine = nobody;
        for (unsigned looks = 64; rank == 0 && looks != 0 && !there && mine == nobody; --looks) {
            there = true;
            for (unsigned n = 0; n < w.count && mine == nobody; ++n) {
                // All three are under way together.
                const uint64_t flag = load_relaxed(flags + n), offer = load_relaxed(offers + n),
                               claimed = load_relaxed(taken + n);
                if (flag >= w.epoch) continue;
                there = false;
                if (offer != w.epoch || claimed >= 2 * w.epoch - 1) continue;
                // Under way together with the claim: a faulty peer may have undone the match since.
                const char *const still = load_pointer(&s.r->peer_buffer);
                if (fetch_max_relaxed_gpu(taken + n, 2 * w.epoch - 1) < 2 * w.epoch - 1 && still == from &&
                    from != nullptr) {
                    // Pairs with the release of the offer in send_rts: the partition's bytes.
                    fence_acquire(offers + n);  // pairs: B1
                    mine = n;
                }
            }
        }
        for (unsigned n = 0; n < w.count; ++n) {
            // A barrier: all members have what the leader acquired.
            if (!broadcast_bool(group, mine == n)) continue;
            read_claimed(group, s, n, to, from, answers);
            return read_end::one;
        }
        // Pairs with conclude_direct, with the engine's flags, and with store_release_gpu in read_claimed.
        for (unsigned n = 0; there && n < w.count; ++n) fence_acquire(flags + n);  // pairs: A1, B2
        // A barrier, as above.
        if (broadcast_bool(group, there)) return read_end::all;
        if (broadcast_bool(group, rank == 0 && w.over(s.r))) return read_end::over;
        if (rank == 0) give_way();
    }
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_RGET_RGET_CUH
