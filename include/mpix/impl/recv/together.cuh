// SPDX-License-Identifier: BSD-3-Clause
//
// All members of a group look for a partition of a receive, or wait for it, side by side. What they know of the running
// epoch they have from an epoch handle (receive_state), or find it out together (await_together).
#ifndef MPIX_IMPL_RECV_TOGETHER_CUH
#define MPIX_IMPL_RECV_TOGETHER_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/receive_state.cuh>
#include <mpix/impl/epoch/residency.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/recv/poll.cuh>
#include <mpix/impl/rget/rget.cuh>

namespace mpix::detail {

// Whether there is a partition j, and its epoch is known; the same for all members.
MPIX_FN bool is_known(const receive_state &v, int j) { return v.epoch != 0 && static_cast<unsigned>(j) < v.partitions; }
// The sender's partitions that overlap it.
MPIX_FN overlap senders_of(MPIX_Prequest handle, const receive_state &v, int j) {
    const uint64_t at = static_cast<uint64_t>(j);
    return v.senders == v.partitions ? overlap{at, at} : sender_partitions(request_of(handle), j, v.senders);
}

// Whether all flags of a partition are set. The members look at them side by side, up to that many times.
template <class Group>
MPIX_FN bool flagged(const Group &group, MPIX_Prequest handle, const receive_state &v, int j, unsigned looks) {
    if (!is_known(v, j)) return false;
    const overlap range = senders_of(handle, v, j);
    const uint64_t rank = static_cast<uint64_t>(group.thread_rank()), count = range.last - range.first + 1;
    bool set = count <= static_cast<uint64_t>(group.num_threads());
    // Pairs with conclude_direct, count_share and tell_taken; the barrier hands it on to the other members.
    if (set && rank < count) do {
            set = reached_acquire(&v.flags[range.first + rank], v.epoch);  // pairs: A1, A3, B2
        } while (!set && --looks != 0);
    return vote_all(group, set);
}

enum class waited { there, late, unknown, absent };

// Partition j by all members; see await_all. `looked`: the leader has just found it missing. Otherwise the members look
// themselves whether its epoch is running; the answer is "unknown" if one of them cannot tell without the host (see
// look), and in the first epoch, in which the route is not final. `out`: if the partition has to be waited for, and the
// sender might offer it, do not wait, but fill this in and return "absent".
template <class Group>
MPIX_FN waited await_together(const Group &group, mpix_prequest *r, int j, waiters who, bool looked, uint64_t deadline,
                              bool once, rget_question question = rget_question::none, awaited *out = nullptr) {
    const bool inline_capable = who != waiters::no_inline_buffer;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    // All these loads are under way together.
    const uint64_t head = r->head, mine = static_cast<uint64_t>(r->partitions), bytes = r->partition_bytes;
    const uint64_t senders = load_relaxed(&r->peer_partitions);
    awaited w;
    // While j is missing, this stays the same.
    w.epoch = load_relaxed(&r->seen_epoch);
    w.flags = load_pointer(&r->flags);
    w.inline_buffer = inline_capable ? load_pointer(&r->inline_buffer) : nullptr;
    const bool has_offers = question == rget_question::possible && load_pointer(&r->wanted) != nullptr;
    // The user has promised one waiter for partitions of this side, and each of the sender's is taken out as a whole.
    w.sole = who == waiters::sole && senders == mine;
    w.senders = static_cast<unsigned>(senders);
    bool known = w.epoch != 0 && senders != 0 && w.flags != nullptr;
    if (!looked)
        known =
            known & (head == receive_head) & (static_cast<unsigned>(j) < static_cast<unsigned>(mine)) & (w.epoch > 1);
    overlap range{0, 0};
    if (known) range = sender_partitions(r, j, senders);
    w.first = static_cast<unsigned>(range.first);
    w.count = static_cast<unsigned>(range.last - range.first + 1);
    // All or none are inline. Packets hold half an epoch, which must not be ambiguous.
    if (!inline_capable || !vote_all(group, known && w.inline_buffer != nullptr && w.epoch >> 32 == 0)) {
        w.inline_buffer = nullptr;
        if (!vote_all(group, known)) return waited::unknown;
    }
    // Members may have read the epoch before and after another one began, or before the match was undone. All of them
    // have read it before that barrier, and it only rises: so members that find the same again have all read the same.
    // Under way together with this load are the looks at the flags, and the leader's claim on what it may find in the
    // inline buffer. The claim does no harm if the epoch turns out to be over, or the partition to be there.
    const bool looks = rank < w.count,
               claims = !looked && !once && rank == 0 && w.inline_buffer != nullptr && w.count == 1;
    const uint64_t again = load_relaxed(&r->seen_epoch), whole = looked ? 0 : load_relaxed(&w.flags[senders]),
                   flag = looks ? load_relaxed(&w.flags[w.first + rank]) : w.epoch,
                   would_offer = rank == 0 && has_offers ? load_relaxed(would_offer_of(w.flags, senders)) : 0,
                   before = claims ? fetch_max_relaxed_gpu(w.taken() + w.first, 2 * w.epoch - 1) : ~uint64_t{0};
    known = again == w.epoch && is_current(r, w.epoch, whole);
    const bool set = flag >= w.epoch && w.count <= threads;
    if (looks && set) fence_acquire(&w.flags[w.first + rank]);  // pairs: A1, A3, B2
    // A barrier: all members have what any of them acquired. Pairs with conclude_direct and count_share.
    if (vote_all(group, known && set)) return waited::there;
    const bool claimed = broadcast_bool(group, claims && has_claimed(w, w.first, before));
    if (!vote_all(group, known)) {
        if (claims && claimed)
            // pairs: A5
            cas_acq_rel_gpu(w.taken() + w.first, 2 * w.epoch - 1, 2 * w.epoch - 2);  // if that is still what it is
        return waited::unknown;
    }
    w.bytes = static_cast<unsigned>(senders == mine ? bytes : mine * bytes / senders);
    w.deadline = deadline;
    if (question == rget_question::asked ||
        (question == rget_question::possible &&
         broadcast_bool(group, rank == 0 && expects_offers(would_offer, w.epoch)))) {
        *out = w;
        return waited::absent;
    }
    if (await_all(group, r, w, once, claimed)) return waited::there;
    return once || broadcast_bool(group, group.thread_rank() == 0 && w.late()) ? waited::late : waited::unknown;
}

#if MPIX_ON_GPU
// A wait that needs more than the members see by themselves. Returns MPI_SUCCESS, an error, or "together": the
// partition's epoch is running, and all members should wait. `late`: they have waited together, as long as was allowed.
constexpr int together = -1;
template <mpix_device_call Call, class Group>
MPIX_COLD_FN int ask(const Group &group, mpix_prequest *r, int j, uint64_t timeout_ns, bool late) {
    const bool leader = group.thread_rank() == 0, by_default = timeout_ns == default_timeout;
    looked l{arrival::refused, MPI_SUCCESS, 0, nullptr, {0, 0}};
    if (leader) {
        l = examine<Call>(r, j);
        if (late && l.what == arrival::absent) {
            l.what = arrival::refused;
            l.code = MPI_ERR_PENDING;
        } else if (l.what == arrival::absent && !wants_all(l)) {
            await<Call>(r, j, by_default ? default_limit_ns(r) : timeout_ns, timeout_ns == 0, l);
        }
        if (by_default && l.code == MPI_ERR_PENDING) keep_error(r, Call, timed_out(), j);
    }
    // A barrier: all members have what the leader acquired. On a GPU, messages come to the user's buffer itself.
    if (broadcast_bool(group, l.what == arrival::present || l.what == arrival::vacuous)) return MPI_SUCCESS;
    if (broadcast_bool(group, leader && wants_all(l))) return together;
    return broadcast_code(group, l.code);
}

// The time at which a wait ends.
MPIX_FN uint64_t deadline_of(const mpix_prequest *r, uint64_t timeout_ns) {
    const uint64_t limit_ns = timeout_ns == default_timeout ? default_limit_ns(r) : timeout_ns, now = now_ns();
    return limit_ns != 0 && limit_ns < ~uint64_t{0} - now ? now + limit_ns : ~uint64_t{0};  // the clock may not wrap
}

// Fills in what is needed of a partition that has to be waited for ("absent"). If the epoch is not known to be running,
// the host is asked first.
template <class Group>
MPIX_COLD_FN waited look_together(const Group &group, reading &s, rget_question question, bool ask_first) {
    if (ask_first) {
        looked l{arrival::absent, MPI_SUCCESS, 0, nullptr, {0, 0}};
        uint64_t senders;
        const bool exists =
            s.r->head == receive_head && static_cast<unsigned>(s.partition) < static_cast<unsigned>(s.r->partitions);
        if (!broadcast_bool(group, group.thread_rank() == 0 && exists && look_at_host<true>(s.r, l, senders)))
            return waited::unknown;
    }
    const waited now = await_together(group, s.r, s.partition, waiters::no_inline_buffer, ask_first, s.w.deadline,
                                      false, question, &s.w);
    if (now == waited::absent) ask_for(group, s);
    return now;
}
// The group's last thread asks for partition j before the members meet: the leader is often still in pready, and a late
// question delays the sender. `in_epoch`: a handle's; 0: any that runs. True: it has asked, so the group must read, or
// refuse.
MPIX_COLD_FN bool ask_early(mpix_prequest *r, int j, uint64_t in_epoch, unsigned threads, uint64_t timeout_ns) {
    // All these loads are under way together.
    uint64_t *const wanted = load_pointer_weak(&r->wanted), *const flags = load_pointer_weak(&r->flags);
    const uint64_t senders = load_weak(&r->peer_partitions), mine = static_cast<uint64_t>(r->partitions),
                   limit_ns = timeout_ns == default_timeout ? default_limit_ns(r) : timeout_ns,
                   epoch = load_relaxed(&r->seen_epoch);
    if (r->head != receive_head || wanted == nullptr || load_pointer_weak(&r->inline_buffer) != nullptr ||
        flags == nullptr || senders == 0 || epoch < 2 || (in_epoch != 0 && in_epoch != epoch) ||
        static_cast<uint64_t>(j) >= mine || (limit_ns != 0 && limit_ns < least_reading_ns))
        return false;
    const overlap range = sender_partitions(r, j, senders);
    if (!reads_these(range.last - range.first + 1, mine * r->partition_bytes / senders, threads)) return false;
    // These loads, too, are under way together.
    const uint64_t whole = load_relaxed(flags + senders), would_offer = load_relaxed(would_offer_of(flags, senders)),
                   last = load_relaxed(flags + range.last);
    if (!is_current(r, epoch, whole) || !expects_offers(would_offer, epoch) || last >= epoch) return false;
    for (uint64_t i = range.first; i <= range.last; ++i) store_relaxed(wanted + i, epoch);
    return true;
}
// Waits until all is there, reading what is offered, or until the deadline.
template <class Group>
MPIX_FN waited await_rts(const Group &group, const reading &s) {
    if (!s.asks) {
        if (await_all(group, s.r, s.w, false, false)) return waited::there;
    } else {
        read_end next;
        while ((next = read_next(group, s)) == read_end::one)
            if (s.w.count == 1) return waited::there;
        if (next == read_end::all) return waited::there;
    }
    if (!broadcast_bool(group, group.thread_rank() == 0 && s.w.late())) return waited::unknown;
    refuse_rts(group, s);
    return waited::late;
}
// As await_together, from the beginning of a wait that may be offered partitions. Does not handle what is unknown then.
template <class Group>
MPIX_FN waited await_reading(const Group &group, mpix_prequest *r, int j, uint64_t deadline, rget_question question) {
    reading s;
    s.asks = question == rget_question::asked;
    s.r = r;
    s.partition = j;
    s.w.deadline = deadline;
    waited now = look_together(group, s, question, false);
    if (now == waited::unknown) now = look_together(group, s, question, true);
    return now == waited::absent ? await_rts(group, s) : now;
}
// await_reading for a handle, which knows the epoch. The group has asked.
template <class Group>
MPIX_COLD_FN waited await_asked(const Group &group, MPIX_Prequest handle, const receive_state v, int j,
                                uint64_t deadline) {
    const overlap range = senders_of(handle, v, j);
    reading s;
    s.r = request_of(handle);
    s.partition = j;
    s.w = {static_cast<unsigned>(range.first),
           static_cast<unsigned>(range.last - range.first + 1),
           v.senders,
           static_cast<unsigned>(uint64_t{v.partitions} * s.r->partition_bytes / v.senders),
           v.epoch,
           v.flags,
           nullptr,
           false,
           deadline};
    s.asks = true;
    return await_rts(group, s);
}
#endif

}  // namespace mpix::detail

#endif  // MPIX_IMPL_RECV_TOGETHER_CUH
