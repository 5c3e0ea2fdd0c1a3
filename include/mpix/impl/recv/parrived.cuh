// SPDX-License-Identifier: BSD-3-Clause
//
// parrived and wait_arrived: has a partition of a receive arrived?
#ifndef MPIX_IMPL_RECV_PARRIVED_CUH
#define MPIX_IMPL_RECV_PARRIVED_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/slot_ring.cuh>
#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/inline/take.cuh>
#include <mpix/impl/pack/typed_copy.cuh>
#include <mpix/impl/recv/poll.cuh>
#include <mpix/impl/rget/rget.cuh>
#include <mpix/impl/send/pready.cuh>

#if !defined(__CUDA_ARCH__)
#include <sched.h>
#include <unistd.h>
#endif

namespace mpix::detail {

// Called between two looks of a host thread: the writer may need this core. Yielding is not enough if many threads
// yield to each other, so a thread that has waited long sleeps, for a small part of the time that has passed. A GPU
// thread continues at once.
MPIX_FN void pause_waiting(bool long_already) {
#if !defined(__CUDA_ARCH__)
    if (long_already)
        usleep(50);
    else
        sched_yield();
#else
    (void)long_already;
#endif
}
constexpr uint64_t long_wait_ns = 1000000;

// Called by a host thread after it has polled without success. It yields the core now and then, since the data may
// depend on another thread there. On an idle machine, a sched_yield every 20 us takes 1 to 2 percent of the time.
MPIX_FN void polled_in_vain() {
#if !defined(__CUDA_ARCH__)
    constexpr unsigned looks_at_once = 16;
    constexpr uint64_t yield_period_ns = 20000;
    static thread_local unsigned looks = 0;
    static thread_local uint64_t yielded = 0;
    if (++looks % looks_at_once != 0 || now_ns() - yielded < yield_period_ns) return;
    sched_yield();
    yielded = now_ns();
#endif
}

// Whether all members of the group should wait for what is missing: its epoch is running.
MPIX_FN bool wants_all(const looked &l) {
#if MPIX_ON_GPU
    return l.what == arrival::absent && l.epoch != 0;
#else
    (void)l;
    return false;
#endif
}

// Looks until the answer is not "absent", or the deadline has passed, or all members should wait. One thread.
template <mpix_device_call Call>
MPIX_FN void await(mpix_prequest *r, int j, uint64_t limit_ns, bool once, looked &l) {
    const uint64_t start = now_ns();
    for (;;) {
        // The flags alone, for a while; then the whole look again, in case the match was undone.
        for (unsigned polls = 0; l.epoch != 0 && polls < 64; ++polls) {
            if (flags_are_there(l)) {
                l.what = arrival::present;
                return;
            }
            if (once) break;
        }
        l = look<Call != MPIX_CALL_NONE>(r, j);
        answer<Call>(r, j, l);
        if (l.what != arrival::absent || wants_all(l)) return;
        const uint64_t waited = now_ns() - start;
        if (once || (limit_ns != 0 && waited >= limit_ns)) {
            l.what = arrival::refused;
            l.code = MPI_ERR_PENDING;
            return;
        }
        pause_waiting(waited > long_wait_ns);
    }
}

// How a group of threads takes a sender's partition out of the landing. The host passes its own taker, which knows
// datatypes by their plans.
struct group_taker {
    static constexpr mpix_device_call call =
        MPIX_CALL_PARRIVED;  // NONE: the caller reports its errors itself, and is no kernel of the user
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
    template <class Group>
    MPIX_FN void operator()(const Group &group, const mpix_prequest *r, uint64_t offset, const char *from,
                            uint64_t bytes) const {
        if (const mpix_layouts *const sides = load_pointer(&r->layouts); sides != nullptr)
            move_share({r->buffer, sides->to}, {const_cast<char *>(from) - offset, nullptr},
                       static_cast<int64_t>(offset), static_cast<int64_t>(bytes),
                       static_cast<int64_t>(group.thread_rank()), static_cast<int64_t>(group.num_threads()));
        else
            group_copy(group, r->buffer + offset, from, bytes);
    }
};

struct library_taker : group_taker {
    static constexpr mpix_device_call call = MPIX_CALL_NONE;
};

// Copies sender partition i out of the landing, if its flag is set and no other group has copied it, or is copying it.
// `epoch` counts for the leader only.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN void take(const Group &group, mpix_prequest *r, uint64_t i, uint64_t epoch, const Taker &copy) {
    const bool leader = group.thread_rank() == 0;
    bool mine = false;
    uint64_t *const taken = load_pointer(&r->taken) + i;
    // pairs: A1, N1
    if (leader && load_relaxed(taken) < 2 * epoch - 1 && load_acquire(&load_pointer(&r->flags)[i]) >= epoch)
        mine = cas_acq_rel_gpu(taken, 2 * epoch - 2, 2 * epoch - 1);  // pairs: F2
    if (!broadcast_bool(group, mine)) return;
    const uint64_t total = static_cast<uint64_t>(r->partitions) * r->partition_bytes;
    const uint64_t bytes = total / load_relaxed(&r->peer_partitions);
    const char *from = load_pointer(&r->landing);
    if (const uint64_t slots = load_relaxed(&r->slots); slots > 1)
        from += static_cast<uint64_t>(broadcast_code(group, static_cast<int>(slot_of(epoch, slots)))) * total;
    copy(group, r, i * bytes, from + i * bytes, bytes);
    group.sync();                                     // all members' parts are in place before the leader says so
    if (leader) store_release_gpu(taken, 2 * epoch);  // pairs with load_acquire_gpu in taken_all; pairs: F1
}

MPIX_FN bool taken_all(const mpix_prequest *r, overlap range, uint64_t epoch) {
    for (uint64_t i = range.first; i <= range.last; ++i)
        if (load_acquire_gpu(&load_pointer(&r->taken)[i]) < 2 * epoch) return false;  // pairs: F1
    return true;
}

// Copies the bytes of partition j, whose flags are all set, to the user's buffer. False: another group is still copying
// a part of it.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool take_partition(const Group &group, mpix_prequest *r, int j, uint64_t epoch, const Taker &copy) {
    const overlap range = sender_partitions(r, j, load_relaxed(&r->peer_partitions));
    for (uint64_t i = range.first; i <= range.last; ++i) take(group, r, i, epoch, copy);
    return broadcast_bool(group, group.thread_rank() == 0 && taken_all(r, range, epoch));
}

enum class waited { there, late, unknown, absent };

// Partition j by all members; see await_all. `looked`: the leader has just found it missing. Otherwise the members look
// themselves whether its epoch is running; the answer is "unknown" if one of them cannot tell without the host (see
// look), and in the first epoch, in which the route is not final. `offers`: if the partition has to be waited for, do
// not wait, but fill this in and return "absent".
template <class Group>
MPIX_FN waited await_together(const Group &group, mpix_prequest *r, int j, waiters who, bool looked, uint64_t deadline,
                              bool once, awaited *offers = nullptr) {
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
                   before = claims ? fetch_max_relaxed_gpu(w.taken() + w.first, 2 * w.epoch - 1) : ~uint64_t{0};
    known = again == w.epoch && whole < w.epoch;
    const bool set = flag >= w.epoch && w.count <= threads;
    if (looks && set) fence_acquire(&w.flags[w.first + rank]);  // pairs: A1, A3, B2
    // A barrier: all members have what any of them acquired. Pairs with the sender's publish_partition.
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
    if (offers != nullptr) {
        *offers = w;
        return waited::absent;
    }
    if (await_all(group, r, w, once, claimed)) return waited::there;
    return once || broadcast_bool(group, group.thread_rank() == 0 && w.late()) ? waited::late : waited::unknown;
}

// One answer for the whole group, from the leader's look. Only the leader may decide how many barriers follow, since a
// route may come while the members look.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool conclude(const Group &group, mpix_prequest *r, int j, const looked &l, const Taker &copy) {
    // A barrier: all members have what the leader acquired.
    if (!broadcast_bool(group, l.what == arrival::present || l.what == arrival::vacuous)) return false;
#if MPIX_ON_GPU
    (void)r, (void)j, (void)copy;
    return true;  // to a GPU messages come in the user's buffer itself
#else
    if (broadcast_bool(group, l.what == arrival::vacuous)) return true;
    // Without a landing it has come to the user's buffer itself. (A thread that has seen a flag sees the route by which
    // it came.)
    if (broadcast_bool(group, load_pointer(&r->landing) == nullptr)) return true;
    return take_partition(group, r, j, l.epoch, copy);
#endif
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
            await<Call>(r, j, by_default ? r->stall_ns : timeout_ns, timeout_ns == 0, l);
        }
        if (by_default && l.code == MPI_ERR_PENDING) keep_error(r, Call, MPIX_CAUSE_DEADLINE, j);
    }
    // A barrier: all members have what the leader acquired. On a GPU, messages come to the user's buffer itself.
    if (broadcast_bool(group, l.what == arrival::present || l.what == arrival::vacuous)) return MPI_SUCCESS;
    if (broadcast_bool(group, leader && wants_all(l))) return together;
    return broadcast_code(group, l.code);
}

// The time at which a wait ends.
MPIX_FN uint64_t deadline_of(const mpix_prequest *r, uint64_t timeout_ns) {
    const uint64_t limit_ns = timeout_ns == default_timeout ? r->stall_ns : timeout_ns, now = now_ns();
    return limit_ns != 0 && limit_ns < ~uint64_t{0} - now ? now + limit_ns : ~uint64_t{0};  // the clock may not wrap
}

// Fills in what is needed of a partition that has to be waited for ("absent"). If the epoch is not known to be running,
// the host is asked first.
template <class Group>
MPIX_COLD_FN waited look_together(const Group &group, reading &s, bool ask_first) {
    if (ask_first) {
        looked l{arrival::absent, MPI_SUCCESS, 0, nullptr, {0, 0}};
        uint64_t senders;
        const bool exists =
            s.r->head == receive_head && static_cast<unsigned>(s.partition) < static_cast<unsigned>(s.r->partitions);
        if (!broadcast_bool(group, group.thread_rank() == 0 && exists && look_at_host<true>(s.r, l, senders)))
            return waited::unknown;
    }
    const waited now =
        await_together(group, s.r, s.partition, waiters::no_inline_buffer, ask_first, s.w.deadline, false, &s.w);
    if (now == waited::absent) ask_for(group, s);
    return now;
}
// Waits until all is there, reading what is offered, or until the deadline.
template <class Group>
MPIX_FN waited await_rts(const Group &group, reading &s) {
    found next;
    while ((next = find_rts(group, s)) == found::offered) {
        if (!read_rts(group, s)) return waited::unknown;
        if (s.w.count == 1) return waited::there;
    }
    if (next == found::all) return waited::there;
    if (!broadcast_bool(group, group.thread_rank() == 0 && s.w.late())) return waited::unknown;
    refuse_rts(group, s);
    return waited::late;
}
// As await_together, from the beginning of a wait that may be offered partitions. Does not handle what is unknown then.
template <class Group>
MPIX_FN waited await_reading(const Group &group, mpix_prequest *r, int j, uint64_t deadline) {
    reading s;
    s.r = r;
    s.partition = j;
    s.w.deadline = deadline;
    waited now = look_together(group, s, false);
    if (now == waited::unknown) now = look_together(group, s, true);
    return now == waited::absent ? await_rts(group, s) : now;
}
#endif

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool arrived(const Group &group, MPIX_Prequest handle, int j, const Taker &copy) {
    mpix_prequest *const r = request_of(handle);
#if MPIX_ON_GPU
    (void)copy;
    const waiters who = waiters_of(handle);
    for (bool asked = false;; asked = true) {
        if (r != nullptr)
            if (const waited w = await_together(group, r, j, who, asked, ~uint64_t{0}, true); w != waited::unknown)
                return w == waited::there;
        if (const int code = ask<Taker::call>(group, r, j, 0, false); code != together) return code == MPI_SUCCESS;
    }
#else
    looked l{arrival::refused, MPI_SUCCESS, 0, nullptr, {0, 0}};
    if (group.thread_rank() == 0) l = examine<Taker::call>(r, j);
    return conclude(group, r, j, l, copy);
#endif
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN bool parrived(const Group &group, MPIX_Prequest preq, int partition) {
    const bool there = detail::arrived(group, preq, partition, detail::group_taker{});
    if (!there) detail::polled_in_vain();
    return there;
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait_arrived(const Group &group, MPIX_Prequest preq, int partition, uint64_t timeout_ns) {
    using detail::arrival;
    mpix_prequest *const r = detail::request_of(preq);
#if MPIX_ON_GPU
    const detail::waiters who = detail::waiters_of(preq);
    // Most waits end while this looks for a while.
    if (detail::waits_inline_fast(preq, static_cast<unsigned>(group.num_threads())) && timeout_ns != 0 &&
        detail::wait_inline_fast(group, r, partition, who == detail::waiters::sole))
        return MPI_SUCCESS;
    bool asked = false, late = false;
    const uint64_t deadline = r == nullptr ? 0 : detail::deadline_of(r, timeout_ns);
    if (timeout_ns != 0 && detail::reads_rts(group, preq, r, 0)) {
        const detail::waited w = detail::await_reading(group, r, partition, deadline);
        if (w == detail::waited::there) return MPI_SUCCESS;
        late = w == detail::waited::late;
    }
    for (;;) {
        if (r != nullptr && !late) {
            const detail::waited w = detail::await_together(group, r, partition, who, asked, deadline, timeout_ns == 0);
            if (w == detail::waited::there) return MPI_SUCCESS;
            late = w == detail::waited::late;
        }
        const int code = detail::ask<MPIX_CALL_WAIT_ARRIVED>(group, r, partition, timeout_ns, late);
        if (code != detail::together) return code;
        asked = true;
    }
#else
    const bool leader = group.thread_rank() == 0;
    detail::looked l{arrival::refused, MPI_SUCCESS, 0, nullptr, {0, 0}};
    if (leader) l = detail::examine<MPIX_CALL_WAIT_ARRIVED>(r, partition);
    uint64_t since = 0;
    for (unsigned round = 0;; ++round) {
        if (leader && l.what == arrival::absent) {
            const bool by_default = timeout_ns == default_timeout;
            detail::await<MPIX_CALL_WAIT_ARRIVED>(r, partition, by_default ? r->stall_ns : timeout_ns, timeout_ns == 0,
                                                  l);
            if (by_default && l.code == MPI_ERR_PENDING)
                detail::keep_error(r, MPIX_CALL_WAIT_ARRIVED, MPIX_CAUSE_DEADLINE, partition);
        }
        if (detail::conclude(group, r, partition, l, detail::group_taker{})) return MPI_SUCCESS;
        if (const int code = detail::broadcast_code(group, l.code); code != MPI_SUCCESS) return code;
        // Another group is copying the partition out; look again until the deadline.
        if (leader) {
            const bool by_default = timeout_ns == default_timeout;
            const uint64_t now = detail::now_ns(), limit_ns = by_default ? r->stall_ns : timeout_ns;
            if (round == 0) since = now;
            l.what = arrival::absent;
            if (timeout_ns == 0 || (limit_ns != 0 && now - since >= limit_ns)) {
                l.what = arrival::refused;
                l.code = MPI_ERR_PENDING;
                if (by_default) detail::keep_error(r, MPIX_CALL_WAIT_ARRIVED, MPIX_CAUSE_DEADLINE, partition);
            }
        }
        detail::pause_waiting(round > 64);
    }
#endif
}

}  // namespace mpix

MPIX_FN int MPI_Parrived(MPIX_Prequest preq, int partition, int *flag) {
    if (flag == nullptr)
        return preq == nullptr ? MPI_ERR_ARG
                               : mpix::detail::keep_error(mpix::detail::request_of(preq), MPIX_CALL_PARRIVED,
                                                          MPIX_CAUSE_FLAG, partition);
    const mpix::thread_group self;
    mpix_prequest *const r = mpix::detail::request_of(preq);
    const mpix::detail::looked l = mpix::detail::examine<MPIX_CALL_PARRIVED>(r, partition);
    if (preq == nullptr) {
        *flag = 1;
        return MPI_SUCCESS;
    }
#if MPIX_ON_GPU
    if (mpix::detail::wants_all(l) && (mpix::detail::is_inline_capable(preq) || l.range.first != l.range.last)) {
        *flag = mpix::detail::await_together(self, r, partition, mpix::detail::waiters_of(preq), true, ~uint64_t{0},
                                             true) == mpix::detail::waited::there;
        return MPI_SUCCESS;
    }
#endif
    *flag = mpix::detail::conclude(self, r, partition, l, mpix::detail::group_taker{});
    if (!*flag) mpix::detail::polled_in_vain();
    return l.code;
}

#endif  // MPIX_IMPL_RECV_PARRIVED_CUH
