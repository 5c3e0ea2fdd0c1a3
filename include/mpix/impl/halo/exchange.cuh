// SPDX-License-Identifier: BSD-3-Clause
//
// The exchanges of <mpix/halo.cuh>: each is an epoch of the requests of one set. Sets take turns, so that an exchange's
// clear-to-send is there before it is needed.
#ifndef MPIX_IMPL_HALO_EXCHANGE_CUH
#define MPIX_IMPL_HALO_EXCHANGE_CUH

#include <mpix/detail/order.h>
#include <mpix/device.cuh>
#include <mpix/halo/device_exchange.hpp>

#include <mpix/impl/group/group.cuh>
#include <mpix/impl/group/warps.cuh>
#include <mpix/impl/halo/copy.cuh>
#include <mpix/impl/recv/poll.cuh>

namespace mpix::halo {
namespace detail {

// Exchanges have numbers that no activation repeats, so no word from begun_at on is ever set back. (The host sets the
// others to 0 when an activation starts.)
MPIX_FN std::uint64_t number_of(const device_exchange &x, std::int64_t step) {
    return static_cast<std::uint64_t>(x.done_ + step + 1);
}
// Most programs have a power of two, and a division takes a tenth of a microsecond.
MPIX_FN int set_of(const device_exchange &x, std::int64_t step) {
    return static_cast<int>((x.sets_ & (x.sets_ - 1)) == 0 ? step & (x.sets_ - 1) : step % x.sets_);
}
// The receives, then the sends.
MPIX_FN const MPIX_Prequest *requests_of(const device_exchange &x, int set) {
    return x.requests_ + set * (x.receives_ + x.sends_);
}
// What the group that has begun an exchange knows of a message's epoch, for the calls of other groups.
template <class Handle>
struct stored_handle {
    std::uint64_t number;  // of the exchange
    Handle handle;
};
MPIX_FN stored_handle<prepared_receive> *receive_handles_of(const device_exchange &x, int set) {
    return static_cast<stored_handle<prepared_receive> *>(x.receive_handles_) + set * x.receives_;
}
MPIX_FN stored_handle<prepared_send> *send_handles_of(const device_exchange &x, int set) {
    return static_cast<stored_handle<prepared_send> *>(x.send_handles_) + set * x.sends_;
}

MPIX_FN std::byte *messages_of(const device_exchange &x, int set) { return x.messages_ + set * x.set_bytes_; }

MPIX_FN std::uint64_t *arrivals_of(const device_exchange &x) { return x.words_ + device_exchange::arrivals_at; }
MPIX_FN std::uint64_t *failed_of(const device_exchange &x) { return x.words_ + device_exchange::failed_at; }
MPIX_FN std::uint64_t *begun_of(const device_exchange &x, int set) {
    return x.words_ + device_exchange::begun_at + set;
}
// Each set has claims of its own: exchanges of other sets may be under way.
MPIX_FN std::uint64_t *claimed_of(const device_exchange &x, std::int64_t step, int claim) {
    return x.words_ + device_exchange::begun_at + x.sets_ + 2 * (set_of(x, step) * x.claims_ + claim);
}
MPIX_FN std::uint64_t *filled_of(const device_exchange &x, std::int64_t step, int claim) {
    return claimed_of(x, step, claim) + 1;
}

// It orders no data.
MPIX_FN bool has_failed(const device_exchange &x) { return mpix::detail::load_relaxed(failed_of(x)) != 0; }

// Looks until `reached` says so: MPI_SUCCESS; MPI_ERR_OTHER if a call has failed before; MPI_ERR_PENDING if timeout_ns
// went by first. One thread.
template <class Reached>
MPIX_FN int look_until(const device_exchange &x, std::uint64_t timeout_ns, const Reached &reached) {
    if (timeout_ns == default_timeout && x.stall_ns_ != 0) timeout_ns = x.stall_ns_;
    std::uint64_t begin = 0;  // not asked for before the first looks, since that takes as long as one
    bool long_already = false;
    for (unsigned looks = 1; !reached(); ++looks) {
        if (looks % 32 == 0 || timeout_ns == 0 || (!MPIX_ON_GPU && long_already)) {
            if (has_failed(x)) return MPI_ERR_OTHER;
            if (timeout_ns != default_timeout || !MPIX_ON_GPU) {
                const std::uint64_t now = mpix::detail::now_ns();
                if (begin == 0) begin = now;
                if (now - begin >= timeout_ns) return MPI_ERR_PENDING;
                long_already = now - begin >= mpix::detail::long_wait_ns;
            }
        }
        mpix::detail::pause_waiting(long_already);
    }
    return MPI_SUCCESS;
}

// Tells the other groups and the host that a call has failed in this step, and returns its code. Records nothing if the
// caller may repeat the wait.
template <class Group>
MPIX_FN int record_failure(const Group &group, const device_exchange &x, int code, std::uint64_t which,
                           std::int64_t step, bool may_be_repeated = false) {
    if (!may_be_repeated && group.thread_rank() == 0 && mpix::detail::cas_relaxed_gpu(failed_of(x), 0, which))
        mpix::detail::store_relaxed(x.words_ + device_exchange::failed_step_at, static_cast<std::uint64_t>(step));
    return code;
}
MPIX_FN std::uint64_t number_of_parcel(int parcel) {
    return device_exchange::first_parcel + static_cast<std::uint64_t>(parcel);
}

// Whether the caller may repeat a wait that has ended so.
MPIX_FN bool may_repeat(int code, std::uint64_t timeout_ns) {
    return code == MPI_ERR_PENDING && timeout_ns != default_timeout;
}

// Whether next() has begun an exchange; the first `sets` of an activation are begun by the host. One thread.
MPIX_FN bool has_begun(const device_exchange &x, std::int64_t step) {
    if (step < x.sets_) return true;
    return mpix::detail::reached_acquire(begun_of(x, set_of(x, step)), number_of(x, step));  // pairs: X1
}
// What the leader has seen of it; other members have seen nothing.
struct begin_seen {
    bool failed, begun;
};
// A first look, under way together with loads that the caller has begun.
template <class Group>
MPIX_FN begin_seen look_at_begin(const Group &group, const device_exchange &x, std::int64_t step) {
    if (group.thread_rank() != 0) return {false, false};
    const bool failed = has_failed(x);  // first, so that both loads are under way together
    return {failed, has_begun(x, step)};
}
// Until an exchange has begun. Returns as look_until. It is a barrier of the group.
template <class Group>
MPIX_FN int await_begin(const Group &group, const device_exchange &x, std::int64_t step, std::uint64_t timeout_ns,
                        const begin_seen &seen) {
    int code = MPI_SUCCESS;
    if (group.thread_rank() == 0) {
        if (!seen.begun) code = look_until(x, timeout_ns, [&] { return has_begun(x, step); });
        if (seen.failed) code = MPI_ERR_OTHER;
    }
    if (mpix::detail::broadcast_bool(group, code == MPI_SUCCESS)) return MPI_SUCCESS;
    code = mpix::detail::broadcast_code(group, code);
    return code == MPI_ERR_OTHER
               ? code
               : record_failure(group, x, code, device_exchange::next_missing, step, may_repeat(code, timeout_ns));
}

#if MPIX_ON_GPU
// Whether a handle can be brought from an epoch to the next one without a look.
MPIX_FN bool can_follow(const prepared_receive &receive) { return receive.state.epoch != 0; }
MPIX_FN bool can_follow(const prepared_send &send) {
    return send.state.epoch != 0 && send.state.clear_to_send != nullptr;
}
// Brings a handle up to exchange `number`, which has just begun: from its set's exchange before, or anew. One thread.
MPIX_FN void follow(stored_handle<prepared_receive> &known, const device_exchange &x, MPIX_Prequest request,
                    std::uint64_t number) {
    if (known.number + static_cast<std::uint64_t>(x.sets_) == number && can_follow(known.handle))
        follow_epoch(known.handle);
    else
        known.handle = prepare_receive(this_thread(), request);
    known.number = number;
}
MPIX_FN void follow(stored_handle<prepared_send> &known, const device_exchange &x, MPIX_Prequest request,
                    std::uint64_t number) {
    if (known.number + static_cast<std::uint64_t>(x.sets_) == number && can_follow(known.handle))
        follow_epoch(known.handle);
    else
        known.handle = prepare_send(this_thread(), request);
    known.number = number;
}
#endif

// Calls act(handle) with what is known of a message's epoch, or with its request if nothing is: the host has begun the
// exchange, or the handle knows no epoch.
template <class Handle, class Act>
MPIX_FN int by_handle([[maybe_unused]] const device_exchange &x, [[maybe_unused]] const stored_handle<Handle> *stored,
                      MPIX_Prequest request, [[maybe_unused]] std::int64_t step, const Act &act) {
#if MPIX_ON_GPU
    const stored_handle<Handle> &mine = *stored;
    if (mine.number == number_of(x, step) && mine.handle.state.epoch != 0) return act(mine.handle);
#endif
    return act(request);
}

// All partitions of a parcel. `receive`: a request or a handle.
template <class Group, class Receive>
MPIX_APART_FN int await_parcel(const Group &group, const device_parcel &p, const Receive &receive,
                               std::uint64_t timeout_ns) {
    for (int k = p.first; k <= p.last; ++k)
        if (const int code = wait_arrived(group, receive, k, timeout_ns); code != MPI_SUCCESS) return code;
    return MPI_SUCCESS;
}
template <class Group, class Send>
MPIX_APART_FN int ready_parcel(const Group &group, const device_parcel &p, const Send &send) {
    for (int k = p.first; k <= p.last; ++k)
        if (const int code = pready(group, k, send); code != MPI_SUCCESS) return code;
    return MPI_SUCCESS;
}

// Whether this group is to fill ghost cells that others read as well. Relaxed: who claims them has seen itself that
// they have come.
template <class Group>
MPIX_FN bool claim_ghosts(const Group &group, const device_exchange &x, std::int64_t step, int claim) {
    if (claim < 0) return true;
    const std::uint64_t number = number_of(x, step);
    bool first = false;
    if (group.thread_rank() == 0)
        first = mpix::detail::fetch_max_relaxed_gpu(claimed_of(x, step, claim), number) < number;
    return mpix::detail::broadcast_bool(group, first);
}

// Calls each(members, copy) for those of the copies in a table of which wanted(number) is true, the same for all
// members of the group: these are all its threads, or a warp of them.
template <class Group, class Wanted, class Each>
MPIX_FN void for_each_copy(const Group &group, const device_copy *table, const device_copies &copies,
                           const Wanted &wanted, const Each &each) {
    for (int k = copies.begin; k < copies.small; ++k)
        if (wanted(k)) each(group, table[k]);
    if (copies.small == copies.end) return;
    mpix::detail::by_warps(group, [&](const auto &warp, int index, int warps) {
        for (int k = copies.small + index; k < copies.end; k += warps)
            if (wanted(k)) each(warp, table[k]);
    });
}
struct every_copy {
    MPIX_FN bool operator()(int) const { return true; }
};

// The ghost cells of one copy, whose parcel has arrived, if no other group has claimed them. By some members of a
// group.
template <class Members>
MPIX_FN void fill(const Members &members, const device_exchange &x, const device_copy &c, std::int64_t step) {
    if (!claim_ghosts(members, x, step, c.claim)) return;
    if (c.message < 0)
        copy_own(members, c, x.allocation_(step));
    else
        unpack(members, c, messages_of(x, set_of(x, step)), x.allocation_(step));
    if (c.claim < 0) return;
    members.sync();  // the leader releases what all of them have stored
    if (members.thread_rank() == 0)
        mpix::detail::store_release_gpu(filled_of(x, step, c.claim), number_of(x, step));  // pairs: X2
}

// Waits for the partitions of parcels `begin` to `end` - 1 of which wanted(parcel) is true, the same for all members.
template <class Group, class Wanted>
MPIX_FN int await_parcels(const Group &group, const device_exchange &x, int begin, int end, std::int64_t step,
                          std::uint64_t timeout_ns, const Wanted &wanted) {
    for (int i = begin; i < end; ++i) {
        const device_parcel &p = x.parcels_[i];
        if (p.message < 0 || !wanted(p)) continue;
        const int set = set_of(x, step);
        const int code = by_handle(x, receive_handles_of(x, set) + p.message, requests_of(x, set)[p.message], step,
                                   [&](const auto &receive) { return await_parcel(group, p, receive, timeout_ns); });
        if (code != MPI_SUCCESS)
            return record_failure(group, x, code, number_of_parcel(i), step, may_repeat(code, timeout_ns));
    }
    return MPI_SUCCESS;
}

// Waits until the ghost cells of one copy are filled. Another group may have claimed them. Returns as look_until. One
// thread.
MPIX_FN int await_filled(const device_exchange &x, int copy, std::int64_t step, std::uint64_t timeout_ns) {
    const int claim = x.copies_[copy].claim;
    if (claim < 0) return MPI_SUCCESS;
    return look_until(x, timeout_ns, [&] {
        // pairs: X2
        return mpix::detail::reached_acquire(filled_of(x, step, claim), number_of(x, step));
    });
}
// The same for copies `begin` to `end` - 1 of which wanted(number) is true. It is a barrier, behind which all members
// may read what any of them, or another group, has filled.
template <class Group, class Wanted>
MPIX_FN int await_all_filled(const Group &group, const device_exchange &x, int begin, int end, std::int64_t step,
                             std::uint64_t timeout_ns, const Wanted &wanted) {
    const int threads = static_cast<int>(group.num_threads());
    int code = MPI_SUCCESS;
    for (int k = begin + static_cast<int>(group.thread_rank()); k < end && code == MPI_SUCCESS; k += threads)
        if (wanted(k)) code = await_filled(x, k, step, timeout_ns);
    if (mpix::detail::vote_all(group, code == MPI_SUCCESS)) return MPI_SUCCESS;
    // Any member may know which copy it is. The leader looks once more.
    int missing = begin;
    code = MPI_SUCCESS;
    if (group.thread_rank() == 0)
        for (; missing < end; ++missing)
            if (wanted(missing) && (code = await_filled(x, missing, step, 0)) != MPI_SUCCESS) break;
    code = mpix::detail::broadcast_code(group, code);
    if (code == MPI_SUCCESS || code == MPI_ERR_OTHER) return code;
    return record_failure(group, x, code, group.thread_rank() == 0 ? number_of_parcel(x.copies_[missing].parcel) : 0,
                          step, may_repeat(code, timeout_ns));
}

// Whether stencils of cells of a box read some of these ghost cells: of the box's 26 directions, each as deep as the
// radius. (A point beyond the domain's last cell travels with that of the cell.)
MPIX_FN bool reads(const device_exchange &x, const box &cells, const device_ghosts &ghosts) {
    const device_reach &reach = x.reach_[ghosts.field];
    std::int64_t needed[3]
                       [3];  // along each axis, for steps -1, 0, 1: how deep the nearest of them is; -1: none is there
    for (int a = 0; a < 3; ++a) {
        if (cells.lo[a] >= ghosts.near.hi[a] || cells.hi[a] <= ghosts.near.lo[a]) return false;
        const std::int64_t lo = cells.lo[a], hi = cells.hi[a];
        const std::int64_t from = ghosts.points.lo[a], to = ghosts.points.hi[a];
        needed[a][0] = from >= lo ? -1 : to >= lo ? 1 : lo - to + 1;
        needed[a][1] = to <= lo || from >= hi ? -1 : 0;
        needed[a][2] = to <= hi ? -1 : from <= hi ? 1 : from - hi + 1;
    }
    for (int number = 0; number < directions; ++number) {
        const std::int64_t along[] = {needed[0][number % 3], needed[1][number / 3 % 3], needed[2][number / 9]};
        bool is = number != no_direction && reach.depth[number] > 0;
        for (int a = 0; a < 3; ++a) is = is && along[a] >= 0 && along[a] <= reach.depth[number];
        if (is) return true;
    }
    return false;
}

#if MPIX_ON_GPU && !defined(MPIX_CHECK)
// Sends a parcel by store(send), which writes it to the receiver, if it is one partition that may be stored now, and
// marks it ready. False: nothing is done, because it may not, or because store() returned false.
template <class Group, class Store>
MPIX_FN bool send_by_store(const Group &group, const device_exchange &x, const device_parcel &p, std::int64_t step,
                           int &code, const Store &store) {
    const stored_handle<prepared_send> &known = send_handles_of(x, set_of(x, step))[p.message];
    if (p.first != p.last || known.number != number_of(x, step)) return false;
    const mpix::detail::send_state &send = known.handle.state;
    if (!mpix::detail::landing_is_open(group, p.first, known.handle.request, send) || !store(send)) return false;
    code = mpix::detail::conclude_stored<true, MPIX_CALL_PREADY>(
        group, p.first, mpix::detail::request_of(known.handle.request), send, {send.epoch, false, false},
        static_cast<unsigned>(group.thread_rank()), static_cast<unsigned>(group.num_threads()));
    return true;
}

// Packs a parcel where the receiver's message lies. False: nothing is done.
template <class Group>
MPIX_FN bool pack_into_landing(const Group &group, const device_exchange &x, const device_parcel &p, std::int64_t step,
                               const mpix::detail::send_state &send) {
    // The message lies there as in the send buffer; words need the same alignment.
    const std::int64_t away =
        reinterpret_cast<std::intptr_t>(send.landing) - reinterpret_cast<std::intptr_t>(send.buffer);
    if (away % 16 != 0) return false;
    for_each_copy(group, x.copies_, p.copies, every_copy{}, [&](const auto &members, const auto &c) {
        pack(members, c, x.allocation_(step), messages_of(x, set_of(x, step)) + away);
    });
    return true;
}
#endif

// Packs a parcel into the send buffer, and marks its partitions ready.
template <class Group>
MPIX_FN int send_by_buffer(const Group &group, const device_exchange &x, const device_parcel &p, std::int64_t step) {
    const int set = set_of(x, step);
    for_each_copy(group, x.copies_, p.copies, every_copy{}, [&](const auto &members, const auto &c) {
        pack(members, c, x.allocation_(step), messages_of(x, set));
    });
    return by_handle(x, send_handles_of(x, set) + p.message, requests_of(x, set)[x.receives_ + p.message], step,
                     [&](const auto &send) { return ready_parcel(group, p, send); });
}

// Packs and sends parcels `begin`, begin + stride, ... before `end`, all of which are to be sent.
template <class Group>
MPIX_FN int send_parcels(const Group &group, const device_exchange &x, int begin, int end, int stride,
                         std::int64_t step) {
    for (int i = begin; i < end; i += stride) {
        const device_parcel &p = x.parcels_[i];
        int code = MPI_SUCCESS;
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
        if (send_by_store(group, x, p, step, code, [&](const mpix::detail::send_state &send) {
                return pack_into_landing(group, x, p, step, send);
            })) {
            if (code != MPI_SUCCESS) return record_failure(group, x, code, number_of_parcel(i), step);
            continue;
        }
#endif
        code = send_by_buffer(group, x, p, step);
        if (code != MPI_SUCCESS) return record_failure(group, x, code, number_of_parcel(i), step);
    }
    return MPI_SUCCESS;
}

}  // namespace detail

template <class Group>
MPIX_FN int send(const Group &group, const device_exchange &x, int tile, std::int64_t step) {
    if (x.version_ != MPIX_ABI_VERSION) return MPI_ERR_REQUEST;
    if (step >= x.steps_) return MPI_SUCCESS;
    const detail::device_tile &t = x.tiles_[tile];
    const int begin = t.sends_begin, end = t.sends_end;
    const detail::begin_seen seen = detail::look_at_begin(group, x, step);
    if (begin == end) return MPI_SUCCESS;
    if (const int code = detail::await_begin(group, x, step, default_timeout, seen); code != MPI_SUCCESS) return code;
    return detail::send_parcels(group, x, begin, end, 1, step);
}

template <class Group>
MPIX_FN int wait(const Group &group, const device_exchange &x, int tile, std::int64_t step, std::uint64_t timeout_ns) {
    if (x.version_ != MPIX_ABI_VERSION) return MPI_ERR_REQUEST;
    if (step >= x.steps_) return MPI_SUCCESS;
    const detail::device_tile &t = x.tiles_[tile];
    const detail::device_copies ghosts = t.ghosts;
    const int waits = t.waits_begin, waits_end = t.waits_end;
    const bool shared = t.has_claims != 0;
    const detail::begin_seen seen = detail::look_at_begin(group, x, step);
    if (ghosts.begin == ghosts.end) return MPI_SUCCESS;
    if (const int code = detail::await_begin(group, x, step, timeout_ns, seen); code != MPI_SUCCESS) return code;
    if (const int code = detail::await_parcels(group, x, waits, waits_end, step, timeout_ns,
                                               [](const detail::device_parcel &) { return true; });
        code != MPI_SUCCESS)
        return code;
    detail::for_each_copy(group, x.copies_, ghosts, detail::every_copy{},
                          [&](const auto &members, const auto &c) { detail::fill(members, x, c, step); });
    return detail::await_all_filled(group, x, shared ? ghosts.begin : ghosts.end, ghosts.end, step, timeout_ns,
                                    detail::every_copy{});
}

template <class Group>
MPIX_FN int wait(const Group &group, const device_exchange &x, const box &cells, std::int64_t step,
                 std::uint64_t timeout_ns) {
    if (x.version_ != MPIX_ABI_VERSION) return MPI_ERR_REQUEST;
    if (step >= x.steps_ || cells.empty()) return MPI_SUCCESS;
    if (x.tiles_count_ == 0) return MPI_SUCCESS;  // as in sync_blocks
    if (!x.box_waits_) return detail::record_failure(group, x, MPI_ERR_ARG, device_exchange::no_box_waits, step);
    const auto wanted = [&](int copy) { return detail::reads(x, cells, x.ghosts_[copy - x.received_copies_]); };
    int first = x.received_copies_;
    while (first < x.received_copies_end_ && !wanted(first)) ++first;
    if (first == x.received_copies_end_) return MPI_SUCCESS;
    const detail::begin_seen seen = detail::look_at_begin(group, x, step);
    if (const int code = detail::await_begin(group, x, step, timeout_ns, seen); code != MPI_SUCCESS) return code;
    const int code = detail::await_parcels(group, x, x.received_begin_, x.received_end_, step, timeout_ns,
                                           [&](const detail::device_parcel &p) {
                                               int k = p.copies.begin;
                                               while (k < p.copies.end && !wanted(k)) ++k;
                                               return k < p.copies.end;
                                           });
    if (code != MPI_SUCCESS) return code;
    for (int i = x.received_begin_; i < x.received_end_; ++i)
        detail::for_each_copy(group, x.copies_, x.parcels_[i].copies, wanted,
                              [&](const auto &members, const auto &c) { detail::fill(members, x, c, step); });
    return detail::await_all_filled(group, x, first, x.received_copies_end_, step, timeout_ns, wanted);
}

}  // namespace mpix::halo

#endif  // MPIX_IMPL_HALO_EXCHANGE_CUH
