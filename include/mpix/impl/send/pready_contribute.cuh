// SPDX-License-Identifier: BSD-3-Clause
//
// Contributions to a partition that several groups write. Either calls are counted, and the last one is a Pready; or
// bytes are counted, and each group moves its own share.
#ifndef MPIX_IMPL_SEND_PREADY_CONTRIBUTE_CUH
#define MPIX_IMPL_SEND_PREADY_CONTRIBUTE_CUH

#include <mpix/impl/send/pready.cuh>

namespace mpix::detail {

MPIX_FN uint64_t *partition_contributions(mpix_prequest *r) { return partition_states(r) + r->partitions; }
MPIX_FN uint64_t *partition_contributed(mpix_prequest *r) { return partition_contributions(r) + r->partitions; }
MPIX_FN uint64_t *partition_late(mpix_prequest *r) { return partition_contributed(r) + r->partitions; }

using share_mover = group_mover<false, MPIX_CALL_PREADY_CONTRIBUTE>;
MPIX_FN int refuse_share(mpix_prequest *r, mpix_cause cause, int partition) {
    return keep_error(r, MPIX_CALL_PREADY_CONTRIBUTE, cause, partition);
}

// What to do with a share, before anything of it is moved. One thread.
MPIX_FN admitted admit_share(mpix_prequest *r, int p, uint64_t begin, uint64_t bytes) {
    const uint64_t all = r->partition_bytes;
    admitted a = admit<MPIX_CALL_PREADY_CONTRIBUTE>(r, p);
    if (a.what != admission::refused && (begin > all || bytes > all - begin))
        a = {admission::refused, refuse_share(r, MPIX_CAUSE_SHARE_BEYOND, p), a.epoch};
    return a;
}

// The same for a share of no bytes. Refused with MPI_SUCCESS: nothing is to be done. The others may have ended the
// epoch, so only the arguments can be wrong. If the partition has no bytes either, the first such share of an epoch is
// all of it.
MPIX_COLD_FN admitted admit_empty_share(mpix_prequest *r, int p, uint64_t begin) {
    admitted a{admission::refused, MPI_SUCCESS, 0};
    const bool mine = head_is(r->head, MPIX_KIND_SEND);
    if (!mine || p < 0 || p >= r->partitions || begin > r->partition_bytes) {
        a.code = refuse_share(r,
                              !mine                         ? wrong_handle(r->head)
                              : p < 0 || p >= r->partitions ? MPIX_CAUSE_INDEX
                                                            : MPIX_CAUSE_SHARE_BEYOND,
                              p);
        return a;
    }
    if (r->partition_bytes != 0) return a;
    a = admit<MPIX_CALL_NONE>(r, p);
    if (a.what == admission::refused || load_relaxed(partition_states(r) + p) >= a.epoch ||
        fetch_max_relaxed_gpu(partition_late(r) + p, a.epoch) >= a.epoch)
        return {admission::refused, MPI_SUCCESS, 0};
    return a;
}

// Counts a share, which was stored at the receiver if it was admitted now. The caller of the last one tells the
// receiver. True: the partition is complete, and has to be moved as a whole. One thread, after a barrier of the group.
//
// A fence before the count, and one after the last caller's, chain the callers: what each group stored, and the bytes
// that it has not stored, come before what the last caller does then. Pairs with itself; the flag as in
// publish_partition.
MPIX_FN bool count_share(mpix_prequest *r, int p, uint64_t bytes, uint64_t *flags, admitted &a) {
    const uint64_t all = r->partition_bytes, end = a.epoch * all;
    uint64_t *const state = partition_states(r) + p, *const contributed = partition_contributed(r) + p,
                    *const late = partition_late(r) + p;
    // A caller that comes with the others finds the partition not ready: for that, this share must be counted, and its
    // count comes after the fence.
    const bool ready_already = load_relaxed(state) >= a.epoch;
    if (a.what != admission::now) store_relaxed(late, a.epoch);
    // Epochs without shares were not counted. It comes before the addition, being an exchange of the same word.
    fetch_max_relaxed_gpu(contributed, end - all);
    fence_acq_rel();  // pairs: A7
    if (ready_already) {
        a = {admission::refused, refuse_share(r, MPIX_CAUSE_READY, p), a.epoch};
        return false;
    }
    const uint64_t before = fetch_add_relaxed_gpu(contributed, bytes), after = before + bytes;
    if (after < end) return false;
#if defined(MPIX_CHECK)
    forget_shares(r, p);
#endif
    if (after > end) {
        // More bytes than the partition has. It is marked ready, so that the epoch ends, with this error; the excess
        // must not count in the next epoch.
        fetch_add_relaxed_gpu(contributed, before < end ? end - after : 0 - bytes);
        a.code = refuse_share(r, MPIX_CAUSE_SHARES, p);
        if (before >= end) {
            a.what = admission::refused;
            return false;
        }
    }
    fence_acq_rel();  // pairs: A7
    if (a.what != admission::now || load_relaxed(late) == a.epoch) {
        if (a.what == admission::now) a.what = admission::later;
        return true;
    }
    if (fetch_max_relaxed_gpu(state, a.epoch) >= a.epoch) {
        a.code = refuse_share(r, MPIX_CAUSE_READY, p);
        return false;
    }
    store_release_after_fence(&arrival_flags(flags)[p], a.epoch);  // pairs: A1
    count_ready<false>(r, a.epoch);
    return false;
}

// A share that failed, or the last one of a partition that has to be moved as a whole.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_COLD_FN int end_share(const Group &group, int p, mpix_prequest *r, admitted a, bool whole) {
    if (!broadcast_bool(group, whole)) return broadcast_code(group, a.code);
#if MPIX_ON_GPU
    return put_off(group, p, r, a, share_mover{});  // returns a.code
#else
    const int code = ready_by_leader(group, p, r, false, share_mover{});
    return broadcast_code(group, a.code != MPI_SUCCESS ? a.code : code);
#endif
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int contribute_share(const Group &group, int p, mpix_prequest *r, uint64_t begin, uint64_t bytes) {
    const bool leader = group.thread_rank() == 0;
    uint64_t *flags = nullptr;
#if MPIX_ON_GPU
    outgoing o{r->buffer, r->partition_bytes, load_pointer_weak(&r->landing), load_pointer_weak(&r->flags)};
#endif
    group.sync();  // what looks at the epoch is behind it, as in store_direct
    admitted a{admission::refused, MPI_SUCCESS, 0};
    if (leader) {
        a = bytes == 0 ? admit_empty_share(r, p, begin) : admit_share(r, p, begin, bytes);
#if MPIX_ON_GPU
        if (a.what == admission::now && has_layouts(o.flags != nullptr ? o.flags : load_pointer(&r->flags)))
            a.what = admission::later;
#else
        if (a.what == admission::now) a.what = admission::later;
#endif
    }
#if MPIX_ON_GPU
    // A barrier: all members have the admission, and what it acquired.
    if (broadcast_bool(group, a.what == admission::now)) {
        if (o.landing == nullptr || o.flags == nullptr) {  // they came meanwhile
            o.landing = load_pointer(&r->landing);
            o.flags = load_pointer(&r->flags);
        }
        const uint64_t at = static_cast<uint64_t>(p) * o.partition_bytes + begin;
        group_copy(group, o.landing + at, o.buffer + at, bytes);
        group.sync();  // the stores are behind the leader's fence
        flags = o.flags;
    }
#endif
#if defined(MPIX_CHECK)
    const bool overlaps = leader && a.what != admission::refused && overlaps_others(r, p, begin, bytes);
#endif
    const bool whole = leader && a.what != admission::refused && count_share(r, p, bytes, flags, a);
#if defined(MPIX_CHECK)
    if (overlaps) a.code = refuse_share(r, MPIX_CAUSE_OVERLAP, p);
#endif
    // A barrier: the group that moves the whole has what its leader acquired.
    if (broadcast_bool(group, !whole && a.code == MPI_SUCCESS)) return MPI_SUCCESS;
    return end_share(group, p, r, a, whole);
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq) {
    mpix_prequest *const r = detail::request_of(preq);
    const bool countable =
        r != nullptr && detail::head_is(r->head, MPIX_KIND_SEND) && partition >= 0 && partition < r->partitions;
#if defined(MPIX_CHECK)
    if (countable) {
        // Without this, only the last contributor would be told that the request is not active, and nobody of a call
        // too many, which would count in the next epoch.
        int code = MPI_SUCCESS;
        if (group.thread_rank() == 0) {
            const detail::epoch_now now = detail::epoch_of(r, detail::ask_of_send(r).word);
            const bool ready = detail::load_relaxed(detail::partition_states(r) + partition) >= now.number;
            if (!now.active || ready)
                code = detail::refuse_share(r, now.active ? MPIX_CAUSE_READY : MPIX_CAUSE_INACTIVE, partition);
        }
        if (code = detail::broadcast_code(group, code); code != MPI_SUCCESS) return code;
    }
#endif
    if (countable && r->contributors > 1) {
        // The leader has the members' writes, and the counter chains them to the last contributor.
        group.sync();
        bool last = false;
        if (group.thread_rank() == 0)
            // pairs: A8
            last =
                (detail::fetch_add_acq_rel_gpu(detail::partition_contributions(r) + partition) + 1) % r->contributors ==
                0;
        if (!detail::broadcast_bool(group, last)) return MPI_SUCCESS;
    }
    return detail::ready(group, partition, preq, detail::share_mover{});  // also says what is wrong with bad arguments
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq, uint64_t begin, uint64_t bytes) {
    if (preq == nullptr) return MPI_ERR_REQUEST;
    return detail::contribute_share(group, partition, detail::request_of(preq), begin, bytes);
}

}  // namespace mpix

#endif  // MPIX_IMPL_SEND_PREADY_CONTRIBUTE_CUH
