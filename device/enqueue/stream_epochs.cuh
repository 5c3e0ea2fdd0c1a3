// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels of MPIX_*_enqueue do, beyond the public device functions. Host threads run it in tests.
#ifndef MPIX_DEVICE_ENQUEUE_STREAM_EPOCHS_CUH
#define MPIX_DEVICE_ENQUEUE_STREAM_EPOCHS_CUH

#include <mpi.h>
#include <mpix/device.cuh>

namespace mpix::gpu {

// The epoch that the host's MPI_Start has started is the stream's first, so nothing is left to do for it. Otherwise
// begins the next epoch. One thread.
MPIX_FN int start_in_order(mpix_prequest *r) {
    if (r != nullptr && (detail::head_is(r->head, MPIX_KIND_SEND) || detail::head_is(r->head, MPIX_KIND_RECV))) {
        const detail::epoch_now now = detail::running_epoch(r);
        if (now.active && detail::load_relaxed(&r->started_epoch) != now.number) return MPI_SUCCESS;
    }
    return detail::start_one(r);
}

// MPI_Start of each request of a list.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int start_all_in_order(const Group &group, int n, const MPIX_Prequest requests[]) {
    const int rank = static_cast<int>(group.thread_rank()), threads = static_cast<int>(group.num_threads());
    int code = MPI_SUCCESS;
    for (int i = rank; i < n && code == MPI_SUCCESS; i += threads)
        code = start_in_order(detail::request_of(requests[i]));
    return detail::vote_all(group, code == MPI_SUCCESS) ? MPI_SUCCESS : MPI_ERR_REQUEST;
}

// Whether a wait for the running epoch has timed out before.
MPIX_FN bool has_timed_out(mpix_prequest *r) {
    if (r == nullptr || !(detail::head_is(r->head, MPIX_KIND_SEND) || detail::head_is(r->head, MPIX_KIND_RECV)))
        return false;
    const uint64_t epoch = detail::load_relaxed(&r->seen_epoch);
    if (epoch == 0 || detail::load_relaxed(&r->error) != 2 * epoch + 1) return false;
    // Relaxed: an earlier kernel of this stream has written it, or an earlier one of another stream may have.
    const uint64_t error = detail::load_relaxed(&r->words->error);
    return (error >> 48 & 0xff) >= MPIX_CAUSE_DEADLINE;
}

// MPI_Wait of each request of a list. After a timeout, the same graph may be launched many more times before the host
// gets to see the error; they must not all wait as long.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait_for_all_in_order(const Group &group, int n, const MPIX_Prequest requests[]) {
    const int rank = static_cast<int>(group.thread_rank()), threads = static_cast<int>(group.num_threads());
    bool in_time = true;
    for (int i = rank; i < n; i += threads) in_time &= !has_timed_out(detail::request_of(requests[i]));
    return wait(group, n, requests, detail::vote_all(group, in_time) ? default_timeout : 0);
}

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_ENQUEUE_STREAM_EPOCHS_CUH
