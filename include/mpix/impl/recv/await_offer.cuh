// SPDX-License-Identifier: BSD-3-Clause
//
// Rget beside an inline buffer. A partition that a block would send inline may be offered by a lone thread. Only the
// group that has claimed it may ask for the offer, and only if nobody had claimed it before in that epoch: then the
// others leave packets and offer alone. Whoever has asked answers: it has read the partition, refuses it, or has seen that
// it came another way. (What has come in packets is not offered.)
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

// What a member has seen of a partition: its own packets; the flag, which says that the partition came another way; that
// it is offered; or that the wait is over, because its time is (late) or there is nothing to wait for any more (over).
enum class sight { neither, packets, flag, offer, over, late };

// Asks for partition `at`, which the caller's group has claimed, if the sender is expected to offer it, and tells whether
// it has. One thread.
MPIX_COLD_FN bool ask_for_claimed(mpix_prequest *r, unsigned at, uint64_t epoch, uint64_t would_offer,
                                  uint64_t timeout_ns) {
    const uint64_t limit_ns = timeout_ns == default_timeout ? default_limit_ns(r) : timeout_ns;
    // All these loads are under way together. The route is final.
    uint64_t *const wanted = load_pointer(&r->wanted), *const flags = load_pointer(&r->flags);
    const uint64_t seen = load_relaxed(&r->seen_epoch);
    if (wanted == nullptr || flags == nullptr || !expects_offers(would_offer, epoch) || seen != epoch ||
        (limit_ns != 0 && limit_ns < least_reading_ns))
        return false;
    if (load_relaxed(flags + at) >= epoch) return false;  // of an epoch, too, that a handle knows, and that is over
    store_relaxed(wanted + at, epoch);
    return true;
}

// Whoever has asked reads nothing any more. Another group may take out what comes inline, but may not ask. One thread.
MPIX_COLD_FN void refuse_claimed(mpix_prequest *r, unsigned at, uint64_t epoch) {
    store_relaxed(load_pointer(&r->wanted) + at, 0);
    store_release(load_pointer(&r->answers) + at, 2 * epoch + 1);  // as in refuse_rts; pairs: B4
    // pairs: A5
    cas_acq_rel_gpu(taken_of(load_pointer(&r->flags), load_relaxed(&r->peer_partitions)) + at, 2 * epoch - 1,
                    2 * epoch - 2);
}

// One look, by the leader: it has the first packet.
MPIX_FN sight look_at_claimed(const awaited &w, const uint64_t *offer) {
    uint64_t payload;
    // All under way together.
    const uint64_t flag = load_relaxed(w.flags + w.first), offered = load_relaxed(offer);
    const bool there = load_packet(w.box(w.first), 0, w.epoch, &payload);
    return flag >= w.epoch ? sight::flag : offered == w.epoch ? sight::offer : there ? sight::packets : sight::neither;
}

// Waits until partition `at` is there, taking it out or reading it, or until the wait is over. The group has claimed it,
// and asked. `epoch`: as those members know it that have a packet, or are the last. `seen`: what the leader has seen
// already.
template <class Group>
MPIX_COLD_FN waited await_offer(const Group &group, mpix_prequest *r, unsigned at, uint64_t epoch, bool sole,
                                sight seen, uint64_t timeout_ns) {
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    const bool leader = rank == 0, last = rank == threads - 1;
    if (!leader) seen = sight::neither;
    // The route is final, and may come from the nearest cache.
    const uint64_t bytes = r->partition_bytes, senders = load_weak(&r->peer_partitions);
    uint64_t *const flags = load_pointer_weak(&r->flags), *const told = load_pointer_weak(&r->told),
                    *const answers = load_pointer_weak(&r->answers);
    const char *const from = load_pointer_weak(&r->peer_buffer);
    awaited w{at,          1,     static_cast<unsigned>(senders),       static_cast<unsigned>(bytes),
              epoch,       flags, load_pointer_weak(&r->inline_buffer), sole,
              ~uint64_t{0}};
    uint64_t *const offer = rts_of(flags, senders) + at;
    bool timed = false;
    for (;;) {
        if (leader) {
            for (unsigned looks = 64; seen == sight::neither && looks != 0; --looks) seen = look_at_claimed(w, offer);
            if (seen == sight::neither) {
                if (!timed) w.deadline = deadline_of(r, timeout_ns);
                timed = true;
                if (w.over(r)) seen = w.late() ? sight::late : sight::over;
                give_way();
            }
            if (seen == sight::flag) fence_acquire(flags + at);  // pairs: A1, B2
            if (seen == sight::offer) {
                // Under way together with the fence: a faulty peer may have undone the match since.
                const char *const still = load_pointer(&r->peer_buffer);
                fence_acquire(offer);  // pairs: B1
                if (still != from || from == nullptr) seen = sight::over;
            }
        }
        // A barrier: all members have what the leader acquired.
        if (broadcast_bool(group, seen == sight::offer)) {
            reconverge(group);
            copy_from_peer(rank, threads, r->buffer + at * bytes, from + at * bytes, static_cast<unsigned>(bytes));
            group.sync();
            if (last) {
                fence_acq_rel();  // all members' loads and stores come before all that is told; pairs: B2, B3
                store_release_after_fence(flags + at, epoch);        // pairs: B2
                store_relaxed(told + at, epoch);                     // the host looks at it only after `complete`
                store_release_after_fence(answers + at, 2 * epoch);  // as in read_claimed; pairs: B3
            }
            group.sync();  // whoever asks from now on finds the flag
            return waited::there;
        }
        if (broadcast_bool(group, seen == sight::packets)) {
            seen = sight::neither;
            const packed_view to = packed_view_of(r->buffer, r->offsets, uint64_t{at} * bytes);
            if (!vote_all(group, take_packets(r, w, at, to, rank, threads) == inline_result::taken)) continue;
            if (last) tell_taken(flags + at, told + at, epoch, sole);
            return waited::there;
        }
        if (broadcast_bool(group, seen == sight::neither)) continue;
        if (seen == sight::late) refuse_claimed(r, at, epoch);
        // It is there, so there is nothing to move, should it be offered as well: the host may have marked it ready, too, which
        // is an error. Relaxed: nobody has read the send buffer.
        if (seen == sight::flag) store_relaxed(answers + at, 2 * epoch);
        if (broadcast_bool(group, seen == sight::flag)) return waited::there;
        return broadcast_bool(group, seen == sight::late) ? waited::late : waited::unknown;
    }
}

}  // namespace mpix::detail
#endif

#endif  // MPIX_IMPL_RECV_AWAIT_OFFER_CUH
