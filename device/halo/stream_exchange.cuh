// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels do of a halo exchange in the order of a stream. Groups of threads share out what a rank sends, and what it
// receives, parcel by parcel. On a GPU each function is a kernel of its own; the host's thread calls them one after the other, as
// a single group.
//
// The kernels find the step of their exchange in memory, so a graph of them may run any number of times.
#ifndef MPIX_DEVICE_HALO_STREAM_EXCHANGE_CUH
#define MPIX_DEVICE_HALO_STREAM_EXCHANGE_CUH

#include <mpix/halo.cuh>

#include "device/halo/launch.h"

namespace mpix::halo {

// Changed by the last group of a finish only, and read by later kernels of the stream.
MPIX_FN std::int64_t next_step(const stream_exchange_args &o) {
    return static_cast<std::int64_t>(mpix::detail::load_relaxed(o.words + stream_exchange_args::next_at));
}

// The exchange as the functions of <mpix/halo.cuh> see it, with the allocations of this phase.
MPIX_FN device_exchange in_phase(const stream_exchange_args &o, std::int64_t step) {
    device_exchange x = o.x;
    x.phase_ = static_cast<std::int32_t>((o.phase + step) & 1);
    return x;
}

// Sends. Errors are kept with the exchange, for the host.
template <class Group>
MPIX_FN void start_in_order(const Group &group, const device_exchange &x, std::int64_t step, int index, int groups) {
    const detail::begin_seen seen = detail::look_at_begin(group, x, step);
    if (detail::await_begin(group, x, step, default_timeout, seen) != MPI_SUCCESS) return;
    (void)detail::send_parcels(group, x, index, sends_end(x), groups, step);
}

// Waits for a parcel, and puts it into the fields. Nobody else does.
template <class Group>
MPIX_FN int receive(const Group &group, const device_exchange &x, int parcel, std::int64_t step) {
    const auto all = [](const detail::device_parcel &) { return true; };
    const int code = detail::await_parcels(group, x, parcel, parcel + 1, step, default_timeout, all);
    if (code != MPI_SUCCESS) return code;
    detail::for_each_copy(group, x, x.parcels_[parcel].copies, detail::every_copy{},
                          [&](const auto &members, const auto &c) { detail::fill(members, x, c, step); });
    return MPI_SUCCESS;
}

// Group 0 ends the exchange before this one, and begins the next exchange of its set. It may, because the finish before has waited
// for all of that exchange. The other groups wait for this exchange and unpack it.
//
// With three sets a neighbour that also sends to this rank finds clear-to-send at once, however long other work in the streams
// takes. It starts the exchange that is begun here two starts later. Before that it has finished an exchange that this rank starts
// after this finish.
template <class Group>
MPIX_FN void finish_in_order(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                             std::int64_t step, int index, int groups) {
    if (index == 0) {
        if (step > 0) (void)next(group, x, step - 1);
    } else if (detail::await_begin(group, x, step, default_timeout, detail::look_at_begin(group, x, step)) ==
               MPI_SUCCESS) {
        for (int i = x.received_begin_ + index - 1; i < x.received_end_; i += groups - 1)
            if (receive(group, x, i, step) != MPI_SUCCESS) break;
    }
    group.sync();  // all members have read the step
    if (group.thread_rank() != 0) return;
    // Each group has read the step before it adds itself, so the last one may change it. Pairs with the others' additions.
    const auto all = static_cast<std::uint64_t>(groups);
    if (mpix::detail::fetch_add_acq_rel_gpu(o.words + stream_exchange_args::ended_at) + 1 < all) return;  // pairs: X4
    mpix::detail::store_relaxed(o.words + stream_exchange_args::ended_at, 0);
    mpix::detail::store_relaxed(o.words + stream_exchange_args::next_at, static_cast<std::uint64_t>(step + 1));
}

// Calls move(parcel, its request) for the group's share of all that is sent, or of all that is received, in the exchanges that have
// begun and that nobody has started. Ends early after a failure, which is kept for the host.
template <class Group, class Move>
MPIX_FN void move_parcels(const Group &group, const device_exchange &x, std::int64_t step, int index, int groups,
                          bool are_sent, const Move &move) {
    // The host has begun as many as there are sets, and each finish but the first one more.
    const std::int64_t begun = x.sets_ + (step > 1 ? step - 1 : 0);
    for (std::int64_t s = step; s < begun; ++s) {
        const MPIX_Prequest *const requests =
            detail::requests_of(x, detail::set_of(x, s)) + (are_sent ? x.receives_ : 0);
        const int end = are_sent ? sends_end(x) : x.received_end_;
        for (int i = (are_sent ? 0 : x.received_begin_) + index; i < end; i += groups) {
            // One thread looks, so that all members go the same way.
            if (mpix::detail::broadcast_bool(group, group.thread_rank() == 0 && detail::has_failed(x))) return;
            const detail::device_parcel &p = x.parcels_[i];
            if (p.message < 0) continue;  // own cells
            const int code = move(p, requests[p.message]);
            if (code == MPI_SUCCESS) continue;
            detail::record_failure(group, x, code, detail::number_of_parcel(i), s);
            return;
        }
    }
}

// Both together end the exchanges that have begun, and that nobody has started: the first sends whatever the messages hold, and
// the second waits for the same from the neighbours. Nothing of the fields is read or written. All groups send before any waits:
// a group that does not run yet may be the one for which a neighbour waits.
template <class Group>
MPIX_FN void drain_sends_in_order(const Group &group, const device_exchange &x, std::int64_t step, int index,
                                  int groups) {
    move_parcels(group, x, step, index, groups, true, [&](const detail::device_parcel &p, MPIX_Prequest request) {
        return detail::ready_parcel(group, p, request);
    });
}
template <class Group>
MPIX_FN void drain_receives_in_order(const Group &group, const device_exchange &x, std::int64_t step, int index,
                                     int groups) {
    move_parcels(group, x, step, index, groups, false, [&](const detail::device_parcel &p, MPIX_Prequest request) {
        return detail::await_parcel(group, p, request, default_timeout);
    });
}

}  // namespace mpix::halo

#endif  // MPIX_DEVICE_HALO_STREAM_EXCHANGE_CUH
