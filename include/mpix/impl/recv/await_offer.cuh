// SPDX-License-Identifier: BSD-3-Clause
//
// Rget beside an inline buffer. A partition that a block would send inline may be offered by a lone thread. Only the
// group that has claimed it may ask for the offer, and only if nobody had claimed it before in that epoch: then the
// others leave packets and offer alone. Whoever has asked answers: it has read the partition, has seen that it came
// another way, or refuses it.
#ifndef MPIX_IMPL_RECV_AWAIT_OFFER_CUH
#define MPIX_IMPL_RECV_AWAIT_OFFER_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/give_way.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/recv/together.cuh>
#include <mpix/impl/rget/rget.cuh>

#if MPIX_ON_GPU
namespace mpix::detail {

// What a member has seen of a partition.
enum class sight {
    neither,
    packets,  // its own are there
    flag,     // it came another way
    offer,
    over,  // nothing will come
    late   // the time is over
};

// What wait_inline_fast leaves of a wait: what it has not found, or its group has asked.
constexpr int keep_waiting = -3, has_asked = -4;
// A question, as a member knows it. The epoch is right in the leader and the last member.
struct claimed_question {
    uint64_t epoch;
    sight seen;
    bool asked;  // by this member
    // Whether this member has found the epoch running. If one has not, members have seen different epochs, of which one has
    // just begun, and the question is taken back.
    bool runs;
};

// Whether a group of so many threads may ask for an offer.
MPIX_FN bool has_time_to_read(unsigned threads, uint64_t timeout_ns) {
    return threads >= least_reading_threads && timeout_ns >= least_reading_ns;
}

// Whoever has asked reads nothing any more. Another group may take out what comes inline, but may not ask. One thread.
MPIX_COLD_FN void refuse_claimed(mpix_prequest *r, unsigned at, uint64_t epoch) {
    uint64_t *const wanted = load_pointer(&r->wanted), *const answers = load_pointer(&r->answers),
                    *const flags = load_pointer(&r->flags);
    const uint64_t senders = load_relaxed(&r->peer_partitions);
    if (wanted == nullptr || answers == nullptr || flags == nullptr) return;  // the match was undone
    store_relaxed(wanted + at, 0);
    store_release(answers + at, 2 * epoch + 1);                                    // as in refuse_rts; pairs: B4
    cas_acq_rel_gpu(taken_of(flags, senders) + at, 2 * epoch - 1, 2 * epoch - 2);  // pairs: A5
}

// Whoever has asked has found the flag. There is nothing to move, should the partition be offered as well: the host may have
// marked it ready, too, which is an error. One thread.
MPIX_FN void answer_flagged(mpix_prequest *r, unsigned at, uint64_t epoch) {
    // Null after an undone match. Relaxed: nobody has read the send buffer. pairs: B3
    if (uint64_t *const answers = load_pointer(&r->answers); answers != nullptr) store_relaxed(answers + at, 2 * epoch);
}

// What a group that has asked waits for. It lies in memory, as `reading` does.
struct asked_wait {
    awaited w;  // one partition
    mpix_prequest *r;
    char *to;
    const char *from;
    uint64_t *told, *answers;
};

// Looks, by the leader, until it has seen something, or the wait is over; all members have what it has acquired then.
template <class Group>
MPIX_COLD_FN sight await_sight(const Group &group, const asked_wait &s, sight seen) {
    const awaited &w = s.w;
    const uint64_t *const flag = w.flags + w.first, *const offer = rts_of(w.flags, w.senders) + w.first;
    const bool leader = group.thread_rank() == 0;
    for (;;) {
        for (unsigned looks = 64; leader && seen == sight::neither && looks != 0; --looks) {
            uint64_t payload;
            // All under way together. The leader has the first packet.
            const uint64_t flagged = load_relaxed(flag), offered = load_relaxed(offer);
            const bool there = load_packet(w.box(w.first), 0, w.epoch, &payload);
            seen = flagged >= w.epoch   ? sight::flag
                   : offered == w.epoch ? sight::offer
                   : there              ? sight::packets
                                        : sight::neither;
        }
        if (leader && seen == sight::neither) {
            if (w.over(s.r)) seen = w.late() ? sight::late : sight::over;
            give_way();
        }
        if (leader && seen == sight::flag) fence_acquire(flag);    // pairs: A1, B2
        if (leader && seen == sight::offer) fence_acquire(offer);  // pairs: B1
        for (const sight one : {sight::offer, sight::flag, sight::packets, sight::late, sight::over})
            if (broadcast_bool(group, leader && seen == one)) return one;
    }
}

// Reads the partition out of the send buffer, and answers.
template <class Group>
MPIX_COLD_FN void read_rts(const Group &group, const asked_wait &s) {
    const awaited &w = s.w;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    reconverge(group);
    copy_from_peer(rank, threads, s.to, s.from, w.bytes);
    group.sync();  // all members' loads and stores come before it
    if (rank == threads - 1) tell_taken(w.flags + w.first, s.told, w.epoch, w.sole);
    group.sync();                                                    // whoever asks from now on finds the flag
    if (rank == threads - 1) store_release(s.answers, 2 * w.epoch);  // as in read_claimed; pairs: B3
}

// What is left of a wait after its group has asked. Unknown: it has come inline, or the epoch or the match is over.
template <class Group>
MPIX_COLD_FN waited wait_for_offer(const Group &group, MPIX_Prequest handle, int j, uint64_t deadline,
                                   const claimed_question &q) {
    mpix_prequest *const r = request_of(handle);
    const unsigned at = static_cast<unsigned>(j);
    // All these loads are under way together. With an undone match some are null; then nobody waits for an answer.
    asked_wait s{{at, 1, static_cast<unsigned>(load_relaxed(&r->peer_partitions)),
                  static_cast<unsigned>(r->partition_bytes), q.epoch, load_pointer(&r->flags),
                  load_pointer(&r->inline_buffer), waiters_of(handle) == waiters::sole, deadline},
                 r,
                 r->buffer,
                 load_pointer(&r->peer_buffer),
                 load_pointer(&r->told),
                 load_pointer(&r->answers)};
    if (!vote_all(group, q.runs)) {
        if (q.asked) refuse_claimed(r, at, q.epoch);
        return waited::unknown;
    }
    if (!vote_all(group, s.w.senders != 0 && s.w.flags != nullptr && s.w.inline_buffer != nullptr &&
                             s.from != nullptr && s.told != nullptr && s.answers != nullptr))
        return waited::unknown;
    s.to += uint64_t{at} * s.w.bytes;
    s.from += uint64_t{at} * s.w.bytes;
    s.told += at;
    s.answers += at;
    const sight seen = await_sight(group, s, q.seen);
    if (seen == sight::offer) read_rts(group, s);
    if (group.thread_rank() == 0) {
        // What has come inline the group takes out the slow way; few do after they have asked.
        if (seen == sight::late || seen == sight::packets) refuse_claimed(r, at, q.epoch);
        if (seen == sight::flag) answer_flagged(r, at, q.epoch);
    }
    return seen == sight::late                           ? waited::late
           : seen == sight::offer || seen == sight::flag ? waited::there
                                                         : waited::unknown;
}

// For a wait whose epoch is known only now: claims the partition and asks, if the sender is expected to offer it, and then
// waits. Unknown: the group has not asked; or as above.
template <class Group>
MPIX_COLD_FN waited ask_and_wait(const Group &group, MPIX_Prequest handle, int j, uint64_t timeout_ns,
                                 uint64_t deadline) {
    mpix_prequest *const r = request_of(handle);
    bool asked = false;
    if (group.thread_rank() == 0 && has_time_to_read(static_cast<unsigned>(group.num_threads()), timeout_ns)) {
        // All these loads are under way together.
        uint64_t *const wanted = load_pointer(&r->wanted), *const flags = load_pointer(&r->flags);
        const uint64_t senders = load_relaxed(&r->peer_partitions), epoch = load_relaxed(&r->seen_epoch);
        const bool whole_words = r->offsets == nullptr && in_words(r->buffer, r->partition_bytes);
        if (wanted != nullptr && flags != nullptr && load_pointer(&r->inline_buffer) != nullptr && whole_words &&
            senders == static_cast<uint64_t>(r->partitions) && epoch > 1 && epoch >> 32 == 0 &&
            expects_offers(load_relaxed(would_offer_of(flags, senders)), epoch) && load_relaxed(flags + j) < epoch) {
            uint64_t *const taken = taken_of(flags, senders) + j;
            const uint64_t before = fetch_max_relaxed_gpu(taken, 2 * epoch - 1);
            asked = before < 2 * epoch - 2;
            if (asked) store_relaxed(wanted + j, epoch);
            if (before == 2 * epoch - 2) cas_acq_rel_gpu(taken, 2 * epoch - 1, before);  // pairs: A5
        }
    }
    if (!broadcast_bool(group, asked)) return waited::unknown;
    // While nobody has answered, the epoch stays what the leader has found.
    return wait_for_offer(group, handle, j, deadline, {load_relaxed(&r->seen_epoch), sight::neither, asked, true});
}

}  // namespace mpix::detail
#endif

#endif  // MPIX_IMPL_RECV_AWAIT_OFFER_CUH
