// SPDX-License-Identifier: BSD-3-Clause
//
// wait: ends an epoch inside a kernel. The host may have started that epoch, or a kernel (start.cuh).
#ifndef MPIX_IMPL_KERNEL_EPOCH_WAIT_CUH
#define MPIX_IMPL_KERNEL_EPOCH_WAIT_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/errors.cuh>
#include <mpix/impl/epoch/host_epoch.cuh>
#include <mpix/impl/epoch/residency.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/recv/poll.cuh>
#include <mpix/impl/recv/wait_arrived.cuh>
#include <mpix/impl/send/admit.cuh>

namespace mpix::detail {

// The epoch that is running as far as kernels know, else as the host says. One thread.
MPIX_COLD_FN epoch_now ask_for_epoch(mpix_prequest *r) {
    const host_says says = head_is(r->head, MPIX_KIND_SEND) ? ask_of_send(r) : ask_of_receive<true>(r);
    return epoch_of(r, says.word);
}
// What kernels know of the running epoch.
struct known_epochs {
    uint64_t seen, waited, started;
};
MPIX_FN known_epochs look_at_epochs(const mpix_prequest *r) {
    return {load_relaxed(&r->seen_epoch), load_relaxed(&r->waited_epoch), load_relaxed(&r->started_epoch)};
}
MPIX_FN epoch_now running_epoch(mpix_prequest *r, const known_epochs &k) {
    // A kernel has started it, so the host cannot have started a later one.
    if (k.seen != 0 && k.started == k.seen) return {k.seen, k.waited < k.seen};
    return ask_for_epoch(r);
}
MPIX_FN epoch_now running_epoch(mpix_prequest *r) { return running_epoch(r, look_at_epochs(r)); }

// Whether all partitions of a send's epoch are ready, and nothing reads the buffer any more. `told`: as acquired from
// told_epoch. One thread.
MPIX_FN bool is_sent(const mpix_prequest *r, uint64_t epoch, uint64_t told, bool look_at_engine) {
    const bool all_ready = told >> 1 >= epoch;
    if (all_ready && (told & 1) == 0) return true;
    return (all_ready || look_at_engine) && load_acquire(&r->words->concluded) >= epoch;  // pairs: K3
}

// Whether the flags of all partitions of a receive are set; then, to a GPU, its bytes are in the user's buffer. Lane
// `lane` of `lanes` looks at its share.
MPIX_FN bool is_flagged(const uint64_t *flags, uint64_t senders, uint64_t epoch, unsigned lane, unsigned lanes) {
    if (flags == nullptr || senders == 0) return false;
    bool set = true;
    // No look depends on another, so they are under way together.
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
    for (uint64_t i = lane; i < senders; i += lanes) set &= load_relaxed(&flags[i]) >= epoch;
#ifdef __CUDA_ARCH__
    if (set && lane < senders) fence_acquire(&flags[lane]);  // one fence is for all loads; pairs: A1, A3, B2
#else
    for (uint64_t i = lane; set && i < senders; i += lanes) fence_acquire(&flags[i]);  // pairs: A1, A3, B2
#endif
    return set;
}

// Notes that a kernel has waited for an epoch to the end. seen_epoch is raised, too, because start compares it: it may
// still be old where the host's words were not noted, since nothing more will come.
MPIX_FN void end_epoch(mpix_prequest *r, uint64_t epoch) {
    fetch_max_relaxed_gpu(&r->seen_epoch, epoch);
    store_relaxed(&r->waited_epoch, epoch);
}

// Whether these arguments of a call are a list of requests, an empty one perhaps.
MPIX_FN bool is_list(int n, const MPIX_Prequest requests[]) { return n == 0 || (n > 0 && requests != nullptr); }

// What a thread has found out about the end of a request's epoch.
enum class epoch_end {
    over,       // nothing is left to wait for
    missing,    // it may be over soon
    by_groups,  // partitions have to be taken by a group that waits for them
    refused
};

// One look by one of `lanes` threads that look at a request side by side. `now` is set if the handle is a request's.
MPIX_FN epoch_end look_at_end(mpix_prequest *r, unsigned lane, unsigned lanes, bool look_at_engine, epoch_now &now) {
    // All these loads are under way together.
    const uint64_t head = r->head;
    const known_epochs known = look_at_epochs(r);
    [[maybe_unused]] const uint64_t *const flags = load_pointer(&r->flags);
    [[maybe_unused]] const uint64_t senders = load_relaxed(&r->peer_partitions);
    const uint64_t told = load_acquire_gpu(&r->told_epoch);  // pairs: K1
    const bool sends = head_is(head, MPIX_KIND_SEND);
    if (!sends && !head_is(head, MPIX_KIND_RECV)) return epoch_end::refused;
    now = running_epoch(r, known);
#if defined(MPIX_CHECK)
    // The host has not started it, or has completed it, and no kernel has waited for it.
    if (!now.active && (now.number == 0 || load_relaxed(&r->waited_epoch) != now.number)) return epoch_end::refused;
#endif
    if (!now.active) return epoch_end::over;
    if (sends) return lane != 0 || is_sent(r, now.number, told, look_at_engine) ? epoch_end::over : epoch_end::missing;
    if (head_null_peer(head)) return epoch_end::over;
#if MPIX_ON_GPU
    if (is_flagged(flags, senders, now.number, lane, lanes)) return epoch_end::over;
    return load_pointer(&r->inline_buffer) == nullptr && load_pointer(&r->wanted) == nullptr ? epoch_end::missing
                                                                                             : epoch_end::by_groups;
#else
    (void)lanes;
    return epoch_end::by_groups;  // there may be a landing
#endif
}

// Waits for what a look has found missing, by the whole group.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_COLD_FN int wait_for_end(const Group &group, MPIX_Prequest handle, uint64_t timeout_ns) {
    mpix_prequest *const r = request_of(handle);
    const bool leader = group.thread_rank() == 0;
    const epoch_now now = leader ? running_epoch(r) : epoch_now{0, false};
    if (head_is(r->head, MPIX_KIND_RECV)) {
        for (int j = 0; j < r->partitions; ++j)
            if (const int code = wait_arrived(group, handle, j, timeout_ns); code != MPI_SUCCESS) return code;
        if (leader) end_epoch(r, now.number);
        group.sync();
        return MPI_SUCCESS;
    }
    int code = MPI_SUCCESS;
    if (leader) {
        const uint64_t since = now_ns(), limit_ns = timeout_ns == default_timeout ? default_limit_ns(r) : timeout_ns;
        // pairs: K1
        for (unsigned looks = 1; !is_sent(r, now.number, load_acquire_gpu(&r->told_epoch), looks % 64 == 0); ++looks) {
            const uint64_t waited = now_ns() - since;
            if (timeout_ns != 0 && (limit_ns == 0 || waited < limit_ns)) {
                pause_waiting(waited > long_wait_ns);
                continue;
            }
            code = MPI_ERR_PENDING;
            if (timeout_ns == default_timeout) keep_error(r, MPIX_CALL_WAIT, timed_out(), -1);
            break;
        }
        if (code == MPI_SUCCESS) end_epoch(r, now.number);
    }
    return broadcast_code(group, code);
}

// Waits for the ends that a look has not found, one request after the other. The same for all members.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class List>
MPIX_COLD_FN int wait_for_each(const Group &group, int n, const List list, uint64_t timeout_ns) {
    for (int i = 0; i < n; ++i) {
        mpix_prequest *const r = request_of(list(i));
        if (r == nullptr) continue;
        epoch_now now{0, false};
        const epoch_end end = group.thread_rank() == 0 ? look_at_end(r, 0, 1, true, now) : epoch_end::over;
        if (broadcast_bool(group, end == epoch_end::refused)) {
            const bool leader = group.thread_rank() == 0;
            const bool valid = head_is(r->head, MPIX_KIND_SEND) || head_is(r->head, MPIX_KIND_RECV);
            const mpix_cause cause = valid ? MPIX_CAUSE_INACTIVE : MPIX_CAUSE_HANDLE;
            return broadcast_code(group, leader ? refuse<MPIX_CALL_WAIT>(r, cause, -1) : 0);
        }
        if (broadcast_bool(group, end == epoch_end::missing || end == epoch_end::by_groups)) {
            if (const int code = wait_for_end(group, list(i), timeout_ns); code != MPI_SUCCESS) return code;
        } else if (group.thread_rank() == 0 && now.active) {
            end_epoch(r, now.number);
        }
    }
    group.sync();
    return MPI_SUCCESS;
}

// How often the members look side by side before they wait one by one.
constexpr unsigned looks_at_ends = 256;

// Waits for the ends of the requests list(i), i < n. Each member looks at a share of one request, or at several
// requests. After all of them are over, begin(r), which returns an error code, is called once for each request, null
// ones as well, by a member that has looked at it, the first one or the last; *now then says what the look has found.
// If some are not over after looks_at_ends looks, or a group has to take partitions, then `slow` is set instead, and
// nothing has begun.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <bool ByLast, class Group, class List, class Begin>
MPIX_FN int end_epochs(const Group &group, int n, const List &list, uint64_t timeout_ns, bool *slow, epoch_now *now,
                       const Begin &begin) {
    const int rank = static_cast<int>(group.thread_rank()), threads = static_cast<int>(group.num_threads()),
              lanes = n > 0 && n <= threads ? threads / n : 1, lane = rank % lanes, step = threads / lanes;
    group.sync();  // what looks at an epoch comes after what the members know of it, as in store_direct
    for (unsigned looks = 1;; ++looks) {
        bool over = true, soon = true;
        for (int i = rank / lanes; i < n; i += step) {
            mpix_prequest *const r = request_of(list(i));
            if (r == nullptr) continue;
            const epoch_end end =
                look_at_end(r, static_cast<unsigned>(lane), static_cast<unsigned>(lanes), looks % 64 == 0, *now);
            over &= end == epoch_end::over;
            soon &= end == epoch_end::over || end == epoch_end::missing;
        }
        // A barrier: all members have what any of them acquired.
        if (vote_all(group, over)) break;
        if (looks >= looks_at_ends || timeout_ns == 0 || !vote_all(group, soon)) {
            *slow = true;
            return wait_for_each(group, n, list, timeout_ns);
        }
    }
    int code = MPI_SUCCESS;
    for (int i = rank / lanes; lane == (ByLast ? lanes - 1 : 0) && i < n; i += step) {
        mpix_prequest *const r = request_of(list(i));
        if (r != nullptr && n > threads) *now = running_epoch(r);
        if (r != nullptr && now->active) end_epoch(r, now->number);
        if (const int bad = begin(r); bad != MPI_SUCCESS) code = bad;
    }
    return code;
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait(const Group &group, int n, const MPIX_Prequest requests[], uint64_t timeout_ns) {
    if (!detail::is_list(n, requests)) return MPI_ERR_ARG;
    bool slow;
    detail::epoch_now now{0, false};
    return detail::end_epochs<false>(
        group, n, [requests](int i) { return requests[i]; }, timeout_ns, &slow, &now,
        [](mpix_prequest *) { return MPI_SUCCESS; });
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait(const Group &group, MPIX_Prequest preq, uint64_t timeout_ns) {
    bool slow;
    detail::epoch_now now{0, false};
    return detail::end_epochs<false>(
        group, 1, [preq](int) { return preq; }, timeout_ns, &slow, &now, [](mpix_prequest *) { return MPI_SUCCESS; });
}

}  // namespace mpix

#endif  // MPIX_IMPL_KERNEL_EPOCH_WAIT_CUH
