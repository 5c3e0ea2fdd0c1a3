// SPDX-License-Identifier: BSD-3-Clause
//
// start: begins the next epoch inside a kernel, after wait. The host takes no part: it finds the last epoch's number in
// words->kernel_epoch, when it next looks.
//
// The receiver's start gives clear-to-send to the sender's GPU (kernel_clear_to_send) and, for what the sender's
// progress engine moves, to its host. The sender's start only changes its own numbers.
#ifndef MPIX_IMPL_KERNEL_EPOCH_START_CUH
#define MPIX_IMPL_KERNEL_EPOCH_START_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/errors.cuh>
#include <mpix/impl/epoch/host_epoch.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/kernel_epoch/wait.cuh>
#include <mpix/impl/send/admit.cuh>

namespace mpix::detail {

// Begins epoch `epoch`; the one before is over. One thread, which calls tell_begin afterwards. The caller's group
// synchronises behind this call.
MPIX_FN void begin_epoch(mpix_prequest *r, uint64_t epoch, bool sends) {
    store_relaxed(&r->started_epoch, epoch);
    store_relaxed(&r->seen_epoch, epoch);
    // Of a send, before another group can start a later one. Relaxed: it hands over no other memory.
    if (sends) store_relaxed(&r->words->kernel_epoch, epoch);
}

// Whom a receive's start tells. Loaded before the fence, behind which nobody then waits for it.
struct start_targets {
    uint64_t *for_kernels, *for_engine;
    bool inline_buffer;
};
MPIX_FN start_targets targets_of(const mpix_prequest *r) {
    return {load_pointer(&r->kernel_clear_to_send), load_pointer(&r->peer_clear_to_send),
            load_pointer(&r->inline_buffer) != nullptr};
}
// Gives clear-to-send for the epoch of a receive that has begun, and tells the host.
MPIX_FN void give_clear_to_send(mpix_prequest *r, uint64_t epoch, const start_targets &to) {
    // The buffer, and the inline buffer, may be overwritten from here on. What was read comes first.
    fence_acq_rel();  // pairs: C2, K2, K4
    // pairs: K2
    if (to.for_kernels != nullptr) store_release_after_fence(to.for_kernels, 2 * epoch + to.inline_buffer);
    if (to.for_engine != nullptr) store_release_after_fence(to.for_engine, epoch);  // pairs: C2
    store_release_after_fence(&r->words->kernel_epoch, epoch);                      // pairs: K4
}

// Of a receive, gives clear-to-send for the epoch that has begun, and tells the host. Of a send, looks for
// clear-to-send. The thread of begin_epoch; no other member has to wait for it.
MPIX_FN void tell_begin(mpix_prequest *r, uint64_t epoch) {
    const start_targets to = targets_of(r);
    [[maybe_unused]] const char *const landing = load_pointer(&r->landing);
    if (!head_is(r->head, MPIX_KIND_SEND)) return give_clear_to_send(r, epoch, to);
#if MPIX_ON_GPU
    look_at_kernel_clear_to_send(r, epoch, {to.for_kernels, landing, to.inline_buffer});
#endif
}

// Starts the next epoch. One thread.
MPIX_COLD_FN int start_one(mpix_prequest *r) {
    if (r == nullptr) return MPI_ERR_REQUEST;
    if (!head_is(r->head, MPIX_KIND_SEND) && !head_is(r->head, MPIX_KIND_RECV))
        return keep_error(r, MPIX_CALL_START, MPIX_CAUSE_HANDLE, -1);
    const uint64_t epoch = load_relaxed(&r->seen_epoch);
    // An epoch that a kernel started runs until the host resets started_epoch. Whether one that the host started still
    // runs, only the host's word says.
    const auto runs = [&] {
        return load_relaxed(&r->started_epoch) == epoch ||
               load_acquire(&r->words->epoch) == 2 * epoch + 1;  // pairs: C1
    };
    if (epoch == 0 || load_relaxed(&r->waited_epoch) != epoch || !runs()) {
        const epoch_now now = running_epoch(r);
        // Completed by the host, or never started by it; or not waited for.
        return keep_error(r, MPIX_CALL_START, now.active ? MPIX_CAUSE_ACTIVE : MPIX_CAUSE_INACTIVE, -1);
    }
    begin_epoch(r, epoch + 1, head_is(r->head, MPIX_KIND_SEND));
    tell_begin(r, epoch + 1);
    return MPI_SUCCESS;
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class List>
MPIX_FN int start_all(const Group &group, int n, const List &list) {
    const int rank = static_cast<int>(group.thread_rank()), threads = static_cast<int>(group.num_threads());
    group.sync();  // the members have read what they wanted of the epoch before
    int code = MPI_SUCCESS;
    for (int i = rank; i < n && code == MPI_SUCCESS; i += threads) code = start_one(request_of(list(i)));
    return vote_all(group, code == MPI_SUCCESS) ? MPI_SUCCESS : MPI_ERR_REQUEST;  // a barrier: all see the new epochs
}

// wait and start of each request of a list. What the look at its end has found out, start need not look up again. If the
// list is one request, *begun becomes its new epoch, for all members, or 0: not known.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class List>
MPIX_FN int next_all(const Group &group, int n, const List &list, uint64_t timeout_ns, uint64_t *begun) {
    const bool few = n <= static_cast<int>(group.num_threads());  // a member begins one epoch at most
    bool slow = false;
    epoch_now now{0, false};
    mpix_prequest *mine = nullptr;
    const int code = end_epochs<true>(group, n, list, timeout_ns, &slow, &now, [&](mpix_prequest *r) {
        if (r == nullptr || !now.active) return start_one(r);
        begin_epoch(r, now.number + 1, head_is(r->head, MPIX_KIND_SEND));
        if (few)
            mine = r;
        else
            tell_begin(r, now.number + 1);
        return static_cast<int>(MPI_SUCCESS);
    });
    *begun = 0;
    if (slow) return code != MPI_SUCCESS ? code : start_all(group, n, list);
    const bool good = vote_all(group, code == MPI_SUCCESS);  // a barrier: all see the new epochs
    // Behind the barrier: the fence there takes as long as the way to the peer and back.
    if (mine != nullptr) tell_begin(mine, now.number + 1);
    if (n == 1 && now.active) *begun = now.number + 1;
    return good ? MPI_SUCCESS : MPI_ERR_REQUEST;
}

// `requests` is a list of `n`.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_listed(const Group &group, int n, const MPIX_Prequest requests[], uint64_t timeout_ns) {
    uint64_t begun;
    return next_all(
        group, n, [requests](int i) { return requests[i]; }, timeout_ns, &begun);
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int start(const Group &group, int n, const MPIX_Prequest requests[]) {
    if (!detail::is_list(n, requests)) return MPI_ERR_ARG;
    return detail::start_all(group, n, [requests](int i) { return requests[i]; });
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int start(const Group &group, MPIX_Prequest preq) {
    return detail::start_all(group, 1, [preq](int) { return preq; });
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, int n, const MPIX_Prequest requests[], uint64_t timeout_ns) {
    return detail::is_list(n, requests) ? detail::next_listed(group, n, requests, timeout_ns) : MPI_ERR_ARG;
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, MPIX_Prequest preq, uint64_t timeout_ns) {
    uint64_t begun;
    return detail::next_all(
        group, 1, [preq](int) { return preq; }, timeout_ns, &begun);
}

}  // namespace mpix

#endif  // MPIX_IMPL_KERNEL_EPOCH_START_CUH
