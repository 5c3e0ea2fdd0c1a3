// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels do of a halo exchange in the order of a stream. Groups of threads share out a rank's tiles. On a GPU each function
// is a kernel of its own; the host's thread calls them one after the other, as a single group.
//
// The kernels find the number of their exchange in memory, so a graph of them may run any number of times.
#ifndef MPIX_DEVICE_HALO_EXCHANGE_IN_ORDER_CUH
#define MPIX_DEVICE_HALO_EXCHANGE_IN_ORDER_CUH

#include <mpix/halo.cuh>

#include "device/halo/launch.h"

namespace mpix::halo {

// Changed by the last group of a finish only, and read by later kernels of the stream.
MPIX_FN std::int64_t next_step(const ordered_exchange &o) {
    return static_cast<std::int64_t>(mpix::detail::load_relaxed(o.words + ordered_exchange::next_at));
}

// The exchange as the functions of <mpix/halo.cuh> see it, with the allocations of this phase.
MPIX_FN device_exchange in_phase(const ordered_exchange &o, std::int64_t step) {
    device_exchange x = o.x;
    x.phase_ = static_cast<std::int32_t>((o.phase + step) & 1);
    return x;
}

// Sends. Errors are kept with the exchange, for the host.
template <class Group>
MPIX_FN void start_in_order(const Group &group, const device_exchange &x, std::int64_t step, int index, int groups) {
    for (int i = index; i < x.boundary_tiles(); i += groups)
        if (send(group, x, x.tile_boundary_first(i), step) != MPI_SUCCESS) return;
}

// Waits, by all groups but the last. That one begins the next exchange meanwhile: the neighbours then have clear-to-send before
// they need it. The exchange that it ends for this was waited for by an earlier finish.
template <class Group>
MPIX_FN void finish_in_order(const Group &group, const ordered_exchange &o, const device_exchange &x, std::int64_t step,
                             int index, int groups) {
    if (index == groups - 1) {
        if (step + 1 >= x.sets_) (void)next(group, x, step + 1 - x.sets_);
    } else {
        for (int i = index; i < x.boundary_tiles(); i += groups - 1)
            if (wait(group, x, x.tile_boundary_first(i), step) != MPI_SUCCESS) break;
    }
    group.sync();  // all members have read the number
    if (group.thread_rank() != 0) return;
    // Each group has read the number before it adds itself, so the last one may change it. Pairs with the others' additions.
    const auto all = static_cast<std::uint64_t>(groups);
    if (mpix::detail::fetch_add_acq_rel_gpu(o.words + ordered_exchange::ended_at) + 1 < all) return;  // pairs: X4
    mpix::detail::store_relaxed(o.words + ordered_exchange::ended_at, 0);
    mpix::detail::store_relaxed(o.words + ordered_exchange::next_at, static_cast<std::uint64_t>(step + 1));
}

// Ends the exchanges that have begun, and that nobody has started: sends whatever the messages hold, and waits for the same from
// the neighbours. Nothing of the fields is read or written.
template <class Group>
MPIX_FN void drain_in_order(const Group &group, const device_exchange &x, std::int64_t step, int index, int groups) {
    // The host has begun as many as there are sets, and each finish one more.
    const std::int64_t begun = step + 1 > x.sets_ ? step + 1 : x.sets_;
    for (std::int64_t s = step; s < begun; ++s) {
        const MPIX_Prequest *const requests = detail::requests_of(x, detail::set_of(x, s));
        for (int i = index; i < x.boundary_tiles(); i += groups) {
            const detail::device_tile &t = x.tiles_[x.tile_boundary_first(i)];
            for (int k = t.sends; k < t.sends_end; ++k) {
                const detail::device_parcel &p = x.parcels_[k];
                for (int part = p.first; part <= p.last; ++part)
                    if (const int code = pready(group, part, requests[x.receives_ + p.message]); code != MPI_SUCCESS) {
                        detail::record_failure(group, x, code, detail::number_of_parcel(k), s);
                        return;
                    }
            }
        }
    }
    for (std::int64_t s = step; s < begun; ++s) {
        const MPIX_Prequest *const requests = detail::requests_of(x, detail::set_of(x, s));
        for (int i = index; i < x.boundary_tiles(); i += groups) {
            const detail::device_tile &t = x.tiles_[x.tile_boundary_first(i)];
            for (int k = t.waits; k < t.waits_end; ++k) {
                const detail::device_parcel &p = x.parcels_[k];
                if (p.message < 0) continue;
                const int code = detail::await_parcel(group, p, requests[p.message], default_timeout);
                if (code == MPI_SUCCESS) continue;
                detail::record_failure(group, x, code, detail::number_of_parcel(k), s);
                return;
            }
        }
    }
}

}  // namespace mpix::halo

#endif  // MPIX_DEVICE_HALO_EXCHANGE_IN_ORDER_CUH
