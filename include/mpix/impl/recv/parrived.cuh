// SPDX-License-Identifier: BSD-3-Clause
//
// parrived: has a partition of a receive arrived?
#ifndef MPIX_IMPL_RECV_PARRIVED_CUH
#define MPIX_IMPL_RECV_PARRIVED_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/recv/landing.cuh>
#include <mpix/impl/recv/poll.cuh>
#include <mpix/impl/recv/together.cuh>

namespace mpix::detail {

// Called by a host thread after it has polled without success. It yields the core now and then, since the data may
// depend on another thread there. On an idle machine, a sched_yield every 20 us takes 1 to 2 percent of the time; beside
// busy processes each takes milliseconds, and the thread then polls as long as it has yielded.
MPIX_FN void yield_after_miss() {
#if !defined(__CUDA_ARCH__)
    constexpr unsigned looks_at_once = 16;
    constexpr uint64_t least_period_ns = 20000, longest_period_ns = 10000000;  // it may have been suspended meanwhile
    static thread_local unsigned looks = 0;
    static thread_local uint64_t yields_at = 0;
    if (++looks % looks_at_once != 0) return;
    const uint64_t before = now_ns();
    if (before < yields_at) return;
    sched_yield();
    const uint64_t after = now_ns(), took = after - before;
    yields_at = after + (took < least_period_ns     ? least_period_ns
                         : took > longest_period_ns ? longest_period_ns
                                                    : took);
#endif
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
    if (!there) detail::yield_after_miss();
    return there;
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
    if (!*flag) mpix::detail::yield_after_miss();
    return l.code;
}

#endif  // MPIX_IMPL_RECV_PARRIVED_CUH
