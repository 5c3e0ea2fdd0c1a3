// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels do of a halo exchange in the order of a stream. Groups of threads share out what a rank sends, and what
// it receives, parcel by parcel. On a GPU each function is a kernel of its own; the host's thread calls them one after
// the other, as a single group.
//
// The kernels find the step of their exchange in memory, so a graph of them may run any number of times.
#ifndef MPIX_DEVICE_HALO_STREAM_EXCHANGE_CUH
#define MPIX_DEVICE_HALO_STREAM_EXCHANGE_CUH

#include <mpix/halo.cuh>

#include "device/halo/stream_args.h"

namespace mpix::halo {

// Changed by the last group of a finish only, and read by later kernels of the stream.
MPIX_FN std::int64_t next_step(const stream_exchange_args &o) {
    return static_cast<std::int64_t>(mpix::detail::load_relaxed(o.words + stream_exchange_args::next_at));
}

// The exchange as <mpix/halo.cuh> sees it, with phase_ such that allocation_(step) is o.phase: swap() decides here, not
// the step's number.
MPIX_FN device_exchange in_phase(const stream_exchange_args &o, std::int64_t step) {
    device_exchange x = o.x;
    x.phase_ = static_cast<std::int32_t>((o.phase + step) & 1);
    return x;
}

// What follows is for an exchange of which no call had failed when the kernel began. It has begun: a finish before it
// in the stream has seen to that, or the host. Errors are kept with the exchange, for the host.

// Fills the ghost cells of a parcel that is there. Nobody else does.
template <class Group>
MPIX_FN void fill_parcel(const Group &group, const device_exchange &x, int parcel, std::int64_t step) {
    detail::for_each_copy(group, x.copies_, x.parcels_[parcel].copies, detail::every_copy{},
                          [&](const auto &members, const auto &c) { detail::fill(members, x, c, step); });
}

// Tells the neighbours that send to this rank that the ghost cells of this exchange may be written: kernels that read
// them came before in the stream. No neighbour can miss the word: the next one is written after finish() has received
// from all.
template <class Group>
MPIX_FN void send_clear_to_store(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                                 std::int64_t step) {
    const auto count = static_cast<unsigned>(o.direct.peers_count);
    for (auto i = static_cast<unsigned>(group.thread_rank()); i < count;
         i += static_cast<unsigned>(group.num_threads()))
        mpix::detail::store_release(o.direct.peers_clear_to_store[i],
                                    clear_to_store(detail::number_of(x, step), o.phase));  // pairs: X5
}

#if MPIX_ON_GPU && !defined(MPIX_CHECK)
// Whether a receiver's ghost cells may be written, and are in the allocation that is used here, too. Looks several
// times: packing costs the receiver a copy.
template <class Group>
MPIX_FN bool has_clear_to_store(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                                int message, std::int64_t step, int looks) {
    const std::uint64_t wanted = clear_to_store(detail::number_of(x, step), o.phase);
    bool clear = false;
    if (group.thread_rank() == 0)
        for (; looks > 0 && !clear; --looks)
            clear = mpix::detail::load_acquire(o.direct.clear_to_store + message) == wanted;  // pairs: X5
    return mpix::detail::broadcast_bool(group, clear);
}

// Stores a parcel directly into the neighbour's ghost cells. False: nothing is done.
template <class Group>
MPIX_FN bool store_directly(const Group &group, const stream_exchange_args &o, const device_exchange &x, int parcel,
                            std::int64_t step, int &looks) {
    if (o.direct.sends == nullptr) return false;
    const direct_send &d = o.direct.sends[parcel];
    if (d.copies.begin == d.copies.end) return false;
    if (!has_clear_to_store(group, o, x, d.message, step, looks)) {
        looks = 1;  // it is late for the other parcels, too
        return false;
    }
    detail::for_each_copy(group, o.direct.copies, d.copies, detail::every_copy{},
                          [&](const auto &members, const auto &c) { detail::copy_own(members, c, o.phase); });
    // The parcel's flag comes behind it.
    if (group.thread_rank() == 0) mpix::detail::store_relaxed(d.direct_number, detail::number_of(x, step));
    return true;
}
#endif

// By the shortest way that is possible. looks: at the receiver's clear-to-store.
template <class Group>
MPIX_FN int send_parcel(const Group &group, [[maybe_unused]] const stream_exchange_args &o, const device_exchange &x,
                        int parcel, std::int64_t step, [[maybe_unused]] int &looks) {
    const detail::device_parcel &p = x.parcels_[parcel];
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    int code = MPI_SUCCESS;
    if (detail::send_by_store(group, x, p, step, code, [&](const mpix::detail::send_state &send) {
            return store_directly(group, o, x, parcel, step, looks) ||
                   detail::pack_into_landing(group, x, p, step, send);
        }))
        return code;
#endif
    return detail::send_by_buffer(group, x, p, step);
}

// How the groups divide the parcels of a call.
//
// With enough groups (one_each) a group sends or copies at most one parcel, and the last groups receive one each. If
// there are groups to spare, those that receive do nothing else.
//
// Otherwise half of the groups send, and more if the others would have nothing to do. The rest begin with the copies,
// and the senders join them afterwards, so memory and links are busy at the same time. At the end the groups from
// first_receiver on receive. Only these wait for neighbours.
struct work_split {
    bool one_each;       // a group's index says which parcels it has
    int senders;         // groups 0 to senders - 1 send
    int first_receiver;  // groups from this one to the last receive
};
MPIX_FN work_split split_work(int sends, int copies, int receives, int groups, int most_receivers) {
    if (sends + copies <= groups && receives <= groups && receives <= most_receivers)
        return {true, sends, groups - receives};
    const int half = groups / 2 > 1 ? groups / 2 : 1, spare = groups - copies - receives;
    const int most_senders = spare > half ? spare : half;
    return {false, sends < most_senders ? sends : most_senders, groups > most_receivers ? groups - most_receivers : 0};
}

// Sends the parcels that one of `groups` groups has.
template <class Group>
MPIX_FN void send_share(const Group &group, const stream_exchange_args &o, const device_exchange &x, std::int64_t step,
                        int index, int groups) {
    int looks = 8;  // some microseconds
    for (int i = index; i < sends_end(x); i += groups)
        if (const int code = send_parcel(group, o, x, i, step, looks); code != MPI_SUCCESS) {
            (void)detail::record_failure(group, x, code, detail::number_of_parcel(i), step);
            return;
        }
}

// Comes first in start and run: the senders send, and another group, if there is one, sends clear-to-store.
template <class Group>
MPIX_FN void begin_in_order(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                            std::int64_t step, int index, int groups, const work_split &split) {
    if (index == (split.senders < groups ? split.senders : 0)) send_clear_to_store(group, o, x, step);
    if (index < split.senders) send_share(group, o, x, step, index, split.senders);
}

// Sends, and copies own cells to own ghost cells.
//
// Scheduler(counter, count, first, preassigned): dynamic scheduling of `count` parcels over the groups. take() returns
// the index of the group's next parcel, or `count` if none is left. The group's first parcel is `first`, unless that is
// negative; all others come from the counter, which stands for `preassigned` when it is 0.
template <class Scheduler, class Group>
MPIX_FN void start_in_order(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                            std::int64_t step, int index, int groups) {
    const int sends = sends_end(x), copies = o.own_end - sends;
    const work_split split = split_work(sends, copies, 0, groups, groups);
    begin_in_order(group, o, x, step, index, groups, split);
    const int first = index - split.senders;
    if (split.one_each) {
        if (first >= 0 && first < copies) fill_parcel(group, x, sends + first, step);
        return;
    }
    Scheduler copies_left(o.words + stream_exchange_args::own_taken_at, copies, first, groups - split.senders);
    for (int i = copies_left.take(); i < copies; i = copies_left.take()) fill_parcel(group, x, sends + i, step);
}

// Whether the sender of a parcel that has arrived has stored it into the ghost cells.
MPIX_FN bool came_directly(const stream_exchange_args &o, const device_exchange &x, int parcel, std::int64_t step) {
    return o.direct.received_directly != nullptr &&
           mpix::detail::load_relaxed(o.direct.received_directly + (parcel - o.own_end)) == detail::number_of(x, step);
}

// Waits for a parcel, and puts it into the fields. False: a call has failed.
template <class Group>
MPIX_FN bool receive_parcel(const Group &group, const stream_exchange_args &o, const device_exchange &x, int i,
                            std::int64_t step) {
    const auto all = [](const detail::device_parcel &) { return true; };
    if (detail::await_parcels(group, x, i, i + 1, step, default_timeout, all) != MPI_SUCCESS) return false;
    if (!came_directly(o, x, i, step))
        fill_parcel(group, x, i, step);
    else if (group.thread_rank() == 0)
        mpix::detail::increment_relaxed_gpu(o.words + stream_exchange_args::direct_at);
    return true;
}
// The group's share of the messages.
template <class Group>
MPIX_FN void receive_in_order(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                              std::int64_t step, int index, int groups) {
    for (int i = o.own_end + index; i < x.received_end_; i += groups)
        if (!receive_parcel(group, o, x, i, step)) return;
}

// Group 0 ends the exchange before this one, and begins the next exchange of its set. It may, because the finish before
// has waited for all of that exchange. The other groups wait for this exchange and unpack it.
//
// With three sets a neighbour that also sends to this rank finds clear-to-send at once, however long other work in the
// streams takes. It starts the exchange that is begun here two starts later. Before that it has finished an exchange
// that this rank starts after this finish.
template <class Group>
MPIX_FN void finish_in_order(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                             std::int64_t step, int index, int groups) {
    if (index != 0)
        receive_in_order(group, o, x, step, index - 1, groups - 1);
    else if (step > 0)
        (void)next(group, x, step - 1);
}

// start_in_order and finish_in_order in one kernel. No group that sends waits before it has sent, so neighbours get
// what they wait for. The other groups copy own cells meanwhile.
template <class Scheduler, class Group>
MPIX_FN void run_in_order(const Group &group, const stream_exchange_args &o, const device_exchange &x,
                          std::int64_t step, int index, int groups) {
    if (index == 0) {
        if (step > 0) (void)next(group, x, step - 1);
        return;
    }
    --index, --groups;
    const int sends = sends_end(x), copies = o.own_end - sends, receives = x.received_end_ - o.own_end;
    const work_split split = split_work(sends, copies, receives, groups, o.most_receivers);
    begin_in_order(group, o, x, step, index, groups, split);
    const int first = index - split.senders;
    int received = index >= split.first_receiver ? index - split.first_receiver : receives;
    if (split.one_each) {
        if (first >= 0 && first < copies) fill_parcel(group, x, sends + first, step);
        if (received < receives) (void)receive_parcel(group, o, x, o.own_end + received, step);
        return;
    }
    Scheduler copies_left(o.words + stream_exchange_args::own_taken_at, copies, first, groups - split.senders);
    for (int i = copies_left.take(); i < copies; i = copies_left.take()) fill_parcel(group, x, sends + i, step);
    for (; received < receives; received += groups - split.first_receiver)
        if (!receive_parcel(group, o, x, o.own_end + received, step)) return;
}

// Ends an exchange: what each group of a finish, or run, does last, also after a failure.
template <class Group>
MPIX_FN void end_in_order(const Group &group, const stream_exchange_args &o, std::int64_t step, int groups) {
    group.sync();  // all members have read the step
    if (group.thread_rank() != 0) return;
    // Each group has read the step before it adds itself, so the last one may change it. Pairs with the others'
    // additions.
    const auto all = static_cast<std::uint64_t>(groups);
    if (mpix::detail::fetch_add_acq_rel_gpu(o.words + stream_exchange_args::ended_at) + 1 < all) return;  // pairs: X4
    mpix::detail::store_relaxed(o.words + stream_exchange_args::ended_at, 0);
    mpix::detail::store_relaxed(o.words + stream_exchange_args::own_taken_at, 0);
    mpix::detail::store_relaxed(o.words + stream_exchange_args::next_at, static_cast<std::uint64_t>(step + 1));
}

// Calls move(parcel, its request) for the group's share of all that is sent, or of all that is received, in the
// exchanges that have begun and that nobody has started. Ends early after a failure, which is kept for the host.
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

// Both together end the exchanges that have begun, and that nobody has started: the first sends whatever the messages
// hold, and the second waits for the same from the neighbours. Nothing of the fields is read or written. All groups
// send before any waits: a group that does not run yet may be the one for which a neighbour waits.
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
