// SPDX-License-Identifier: BSD-3-Clause
//
// One thread's look at a partition of a receive, and its wait. Arrival is tracked per partition of the *sender*. A
// partition of ours has arrived when all of the sender's partitions that overlap it have.
#ifndef MPIX_IMPL_RECV_POLL_CUH
#define MPIX_IMPL_RECV_POLL_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/give_way.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/errors.cuh>
#include <mpix/impl/epoch/host_epoch.cuh>
#include <mpix/impl/group/group.cuh>

#if !defined(__CUDA_ARCH__)
#include <unistd.h>
#endif

namespace mpix::detail {

// The sender's partitions first..last (both included) that hold bytes of our partition j.
struct overlap {
    uint64_t first, last;
};

MPIX_FN overlap sender_partitions(const mpix_prequest *r, int j, uint64_t senders) {
    const uint64_t mine = static_cast<uint64_t>(r->partitions), at = static_cast<uint64_t>(j);
    if (senders == mine) return {at, at};
    if (r->partition_bytes == 0) return {0, senders - 1};  // an empty message: all of them
    // Byte ranges, in units of total / (mine * senders), which divide both sides' partitions.
    return {at * senders / mine, ((at + 1) * senders - 1) / mine};
}

// What a receive looks like right now.
enum class arrival {
    vacuous,   // null request or peer, or nothing will ever come: the answer is "true"
    inactive,  // answer() decides what that means
    absent,
    present,  // the flags are there
    refused
};

struct looked {
    arrival what;
    int code;  // of a refusal
    // A matched, active receive: the epoch looked at, and where its arrival shows. An inactive one: the last epoch.
    uint64_t epoch;
    const uint64_t *flags;
    overlap range;
};

// Pairs with the sender's conclude_direct and count_share, and on the host with publish_partition.
MPIX_FN bool flags_are_there(const looked &l) {
    for (uint64_t i = l.range.first; i <= l.range.last; ++i)
        if (!reached_acquire(&l.flags[i], l.epoch)) return false;  // pairs: A1, N1
    return true;
}

#if MPIX_ON_GPU && defined(MPIX_CHECK)
// Identifies the caller's kernel launch. 32 bits suffice: concurrent and successive launches differ, except repeated
// launches of a CUDA graph.
MPIX_FN uint32_t launch_number() {
#ifdef __CUDA_ARCH__
    uint64_t grid;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
    return static_cast<uint32_t>(grid);
#else
    return 1;
#endif
}

// The number of the first launch that read the host's words in `epoch`, which may be the caller's own. Relaxed: only
// the number itself is used.
MPIX_FN uint32_t first_asker(mpix_prequest *r, uint64_t epoch) {
    const uint32_t me = launch_number();
    uint64_t before = load_relaxed(&r->asker);
    while (static_cast<int32_t>(static_cast<uint32_t>(epoch) - static_cast<uint32_t>(before >> 32)) > 0)
        if (compare_exchange_acq_rel_gpu(&r->asker, &before, epoch << 32 | me)) return me;  // pairs: C8
    return static_cast<uint32_t>(before);
}
#endif

// Reads the host's words of a receive, and notes for all what they say of its epoch. `Notes`: the caller is a kernel of
// the user. One thread.
template <bool Notes>
MPIX_FN host_says ask_of_receive(mpix_prequest *r) {
    return read_host(r, [&](const host_says &now) {
        const uint64_t epoch = epoch_of(r, now.word).number;
        if ((now.word & 1) == 0 || now.matched() == MPIX_NEVER) return;
        if (epoch == load_relaxed(&r->seen_epoch) && now.matched() == load_relaxed(&r->seen_matched))
            return;  // others know this already
#if MPIX_ON_GPU && defined(MPIX_CHECK)
        if constexpr (Notes) first_asker(r, epoch);
#endif
        fetch_max_relaxed_gpu(&r->seen_epoch, epoch);  // only forward: a slow thread may come after a later epoch's
        // pairs: C5
        store_release_gpu(&r->seen_matched,
                          now.matched());  // hands the acquire on; pairs with load_acquire_gpu in look
    });
}

// Fills in l.epoch and l.flags from the host's word. False: l.what is the answer.
template <bool Notes>
MPIX_COLD_FN bool look_at_host(mpix_prequest *r, looked &l, uint64_t &senders) {
    const host_says says = ask_of_receive<Notes>(r);
    // An epoch that a kernel has waited for, and not followed by another one, can still be asked for.
    const bool active = (says.word & 1) != 0;
    l.epoch = epoch_of(r, says.word).number;
    if (!active || says.matched() == MPIX_NEVER) {
        l.what = active ? arrival::vacuous : arrival::inactive;
        return false;
    }
    senders = load_relaxed(&r->peer_partitions);
    l.flags = load_pointer(&r->flags);
    if (says.matched() != 0 && senders != 0 && l.flags != nullptr) return true;
    l.epoch = 0;
    return false;
}

// Whether `epoch`, which was read from seen_epoch, is the last one that was started. `whole`: the whole message's flag,
// read after it.
MPIX_FN bool is_current(const mpix_prequest *r, uint64_t epoch, uint64_t whole) {
    return whole < epoch || (whole != MPIX_NEVER && load_relaxed(&r->started_epoch) == epoch);
}

// One look at partition j by one thread.
//
// `seen_epoch` may be old, since nobody tells the executor when the host starts an epoch; then the last epoch's flag
// would be mistaken for this one's. But the host can start another epoch only after the whole message of seen_epoch has
// arrived, and then flags[senders] says so. While it does not, seen_epoch is the running epoch; once it does, the
// host's word is read. Unless a kernel has started that epoch: then the host cannot start another before it has taken
// started_epoch back (see is_current).
template <bool Notes>
MPIX_FN looked look(mpix_prequest *r, int j) {
    looked l{arrival::absent, MPI_SUCCESS, 0, nullptr, {0, 0}};
    uint64_t senders = load_relaxed(&r->peer_partitions);
    l.flags = load_pointer(&r->flags);
    l.epoch = load_relaxed(&r->seen_epoch);
#if MPIX_ON_GPU
    // After the first epoch the route is final, and known to be. (An acquire would drop from the first-level cache what
    // the next call needs.)
    const uint64_t matched =
        l.epoch > 1 ? load_relaxed(&r->seen_matched) : load_acquire_gpu(&r->seen_matched);  // pairs: C5
#else
    const uint64_t matched = load_acquire_gpu(&r->seen_matched);  // pairs: C5
#endif
    // Without senders or flags, the request is not matched yet, or the match was undone.
    bool known = l.epoch != 0 && matched != 0 && senders != 0 && l.flags != nullptr;
    bool first = false;
    if (known) {
        l.range = sender_partitions(r, j, senders);
        // Two loads that are under way together.
        const uint64_t whole = load_relaxed(&l.flags[senders]);
        first = reached_acquire(&l.flags[l.range.first], l.epoch);  // pairs: A1, A3, B2, N1
        known = is_current(r, l.epoch, whole);
    }
    if (!known) {
        if (!look_at_host<Notes>(r, l, senders)) return l;
        l.range = sender_partitions(r, j, senders);
        first = reached_acquire(&l.flags[l.range.first], l.epoch);  // pairs: A1, A3, B2, N1
    }
#if MPIX_ON_GPU
    if (l.range.first == l.range.last && first) l.what = arrival::present;  // for several partitions see wants_all
#else
    if (first && flags_are_there(l)) l.what = arrival::present;
    // A match may have been undone, and another made, between our loads; whoever set the flags of the new one knew its
    // route. (A GPU's loads are issued together, and each change of a route there is a copy that takes microseconds.)
    if (l.what == arrival::present &&
        (load_pointer(&r->flags) != l.flags || load_relaxed(&r->peer_partitions) != senders))
        l.what = arrival::absent;
#endif
    return l;
}

// An inactive request. parrived answers true, as in MPI.
//
// wait_arrived fails if MPI_Start was forgotten, since the buffer holds the last epoch's bytes. But the call may also
// be late: the host may complete an epoch as soon as its bytes are there, before a kernel of that epoch makes its call.
//
// On host threads the two can be told apart if the thread that made the request inactive has launched them afterwards.
// A kernel does not know when it was launched. So it fails only for a request that was never started, and with
// MPIX_CHECK in every launch except the first that looked for the last epoch.
MPIX_FN bool may_be_late(mpix_prequest *r, uint64_t epoch) {
    if (epoch == 0) return false;
#if !MPIX_ON_GPU
    // Both were written before the epoch word that says "inactive", which the caller has acquired.
    return launched.by != load_relaxed(&r->inactive_by) || launched.at < load_relaxed(&r->inactive_since);
#elif defined(MPIX_CHECK)
    return first_asker(r, epoch) == launch_number();
#else
    (void)r;
    return true;
#endif
}

template <mpix_device_call Call>
MPIX_COLD_FN void answer(mpix_prequest *r, int j, looked &l) {
    if (l.what != arrival::inactive) return;
    l.what = arrival::vacuous;
    if (Call != MPIX_CALL_WAIT_ARRIVED || may_be_late(r, l.epoch)) return;
    l.what = arrival::refused;
    l.code = refuse<Call>(r, MPIX_CAUSE_INACTIVE, j);
}

// Checks the arguments, then looks. One thread.
template <mpix_device_call Call>
MPIX_FN looked examine(mpix_prequest *r, int j) {
    looked l{arrival::vacuous, MPI_SUCCESS, 0, nullptr, {0, 0}};
    if (r == nullptr) return l;
    const bool mine = head_is(r->head, MPIX_KIND_RECV);
    if (!mine || j < 0 || j >= r->partitions) {
        l.what = arrival::refused;
        l.code = refuse<Call>(r, mine ? MPIX_CAUSE_INDEX : wrong_handle(r->head), j);
        return l;
    }
    if (head_null_peer(r->head)) return l;
    l = look<Call != MPIX_CALL_NONE>(r, j);
    answer<Call>(r, j, l);
    return l;
}

// Called between two looks of a host thread: the writer may need this core. Yielding is not enough if many threads
// yield to each other, so a thread that has waited long sleeps, for a small part of the time that has passed; and so it
// does where yields are slow. A GPU thread continues at once.
MPIX_FN void pause_waiting(bool long_already) {
#if !defined(__CUDA_ARCH__)
    if (!long_already && try_yield()) return;
    usleep(50);
#else
    (void)long_already;
#endif
}
constexpr uint64_t long_wait_ns = 1000000;

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

}  // namespace mpix::detail

#endif  // MPIX_IMPL_RECV_POLL_CUH
