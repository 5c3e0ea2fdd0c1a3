// SPDX-License-Identifier: BSD-3-Clause
//
// From one step to the next, for <mpix/halo.cuh>: the barrier of a rank's groups, and next(), which begins a set's next
// exchange.
#ifndef MPIX_IMPL_HALO_STEPS_CUH
#define MPIX_IMPL_HALO_STEPS_CUH

#include <mpix/detail/order.h>
#include <mpix/device.cuh>
#include <mpix/halo/device_exchange.hpp>

#include <mpix/impl/group/group.cuh>
#include <mpix/impl/halo/exchange.cuh>
#include <mpix/impl/send/count.cuh>

namespace mpix::halo {
namespace detail {

#if MPIX_ON_GPU && !defined(MPIX_CHECK)
// After all sends of an exchange: says that a message's partitions are all ready, if send_claimed was the last one to count
// one. One thread.
MPIX_FN void end_count(const stored_handle<prepared_send> &noted, std::uint64_t number) {
    const std::uint64_t epoch = noted.handle.state.epoch;
    if (noted.number != number || epoch == 0) return;
    mpix_prequest *const r = mpix::detail::request_of(noted.handle.request);
    // Both under way together.
    const std::uint64_t counted = mpix::detail::load_relaxed(&r->ready_count),
                        told = mpix::detail::load_relaxed(&r->told_epoch);
    if (told < 2 * epoch && counted == epoch * static_cast<std::uint64_t>(r->partitions))
        mpix::detail::say_all_ready(r, epoch, true);
}
#endif

// Until so many groups have come to a barrier, all told. Returns as look_until. One thread.
MPIX_APART_FN int await_groups(const device_exchange &x, std::uint64_t all, std::int64_t step) {
    const bool failed = has_failed(x);  // under way together with the first look
    const std::uint64_t *const arrivals = arrivals_of(x);
    // pairs: X3
    const int code = look_until(x, default_timeout, [&] { return mpix::detail::reached_acquire(arrivals, all); });
    if (code == MPI_ERR_PENDING) record_failure(this_thread(), x, code, device_exchange::barrier_failed, step);
    return failed ? MPI_ERR_OTHER : code;
}

}  // namespace detail

template <class Group>
MPIX_FN int next(const Group &group, const device_exchange &x, std::int64_t step, std::uint64_t timeout_ns) {
    if (x.version_ != MPIX_ABI_VERSION) return MPI_ERR_REQUEST;
    const std::int64_t later = step + x.sets_;
    if (later >= x.steps_ || x.tiles_count_ == 0) return MPI_SUCCESS;  // the host ends it
    // Begun by another group's call, perhaps, which packets may have overtaken.
    if (const int code = detail::await_begin(group, x, step, timeout_ns, detail::look_at_begin(group, x, step));
        code != MPI_SUCCESS)
        return code;
    const int set = detail::set_of(x, step);
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    for (int i = static_cast<int>(group.thread_rank()); i < x.sends_; i += static_cast<int>(group.num_threads()))
        detail::end_count(detail::send_handles_of(x, set)[i], detail::number_of(x, step));
#endif
    const int code = mpix::detail::next_listed(group, x.receives_ + x.sends_, detail::requests_of(x, set), timeout_ns);
    if (code != MPI_SUCCESS)
        return detail::record_failure(group, x, code, device_exchange::next_failed, step,
                                      detail::may_repeat(code, timeout_ns));
#if MPIX_ON_GPU
    group.sync();  // all members have started their requests
    const MPIX_Prequest *const requests = detail::requests_of(x, set);
    const int threads = static_cast<int>(group.num_threads());
    for (int i = static_cast<int>(group.thread_rank()); i < x.receives_ + x.sends_; i += threads) {
        if (i < x.receives_)
            detail::follow(detail::receive_handles_of(x, set)[i], x, requests[i], detail::number_of(x, later));
        else
            detail::follow(detail::send_handles_of(x, set)[i - x.receives_], x, requests[i],
                           detail::number_of(x, later));
    }
#endif
    group.sync();  // all members have started their requests, and noted what they know
    if (group.thread_rank() == 0)
        mpix::detail::store_release_gpu(detail::begun_of(x, set), detail::number_of(x, later));  // pairs: X1
    return MPI_SUCCESS;
}

template <class Group>
MPIX_FN int run_next(const Group &group, const device_exchange &x, int groups, int first, int stride) {
    if (x.version_ != MPIX_ABI_VERSION) return MPI_ERR_REQUEST;
    if (x.tiles_count_ == 0) return MPI_SUCCESS;
    for (std::int64_t step = first; step + x.sets_ < x.steps_; step += stride) {
        // All groups have come to the barrier of step + 1, so they are done with exchange `step`.
        const std::uint64_t all = static_cast<std::uint64_t>(step + 2) * static_cast<std::uint64_t>(groups);
        int code = group.thread_rank() == 0 ? detail::await_groups(x, all, step + 1) : MPI_SUCCESS;
        code = mpix::detail::broadcast_code(group, code);
        if (code == MPI_SUCCESS) code = next(group, x, step);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

template <class Group>
MPIX_FN void sync_blocks(const Group &group, const device_exchange &x, int groups) {
    if (x.version_ != MPIX_ABI_VERSION) return;
    if (x.tiles_count_ == 0) return;  // and the words may be where this device cannot reach them
    group.sync();                     // the leader releases what all members have written
    if (group.thread_rank() == 0) {
        const auto each = static_cast<std::uint64_t>(groups);
        std::uint64_t *const arrivals = detail::arrivals_of(x);
        const std::uint64_t all = (mpix::detail::fetch_add_acq_rel_gpu(arrivals) / each + 1) * each;  // pairs: X3
        detail::await_groups(x, all, static_cast<std::int64_t>(all / each) - 1);
    }
    group.sync();
}

}  // namespace mpix::halo

#endif  // MPIX_IMPL_HALO_STEPS_CUH
