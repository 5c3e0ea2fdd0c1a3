// SPDX-License-Identifier: BSD-3-Clause
//
// Parrived: has a partition of a receive arrived? Arrival is tracked per partition of the *sender*; a
// partition of ours has arrived when all of the sender's that overlap it have.
#ifndef MPIX_DEVICE_ARRIVED_CUH
#define MPIX_DEVICE_ARRIVED_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/device/copy.cuh>
#include <mpix/device/group.cuh>
#include <mpix/device/ready.cuh>

#if !defined(__CUDA_ARCH__)
#include <sched.h>
#endif

namespace mpix::detail {

// The sender's partitions first..last (both included) that hold bytes of our partition j.
struct overlap {
    uint64_t first, last;
};

MPIX_FN overlap sender_partitions(const mpix_prequest *r, int j, uint64_t senders) {
    const uint64_t mine = static_cast<uint64_t>(r->partitions), at = static_cast<uint64_t>(j);
    if (senders == mine) return {at, at};
    if (r->partition_bytes == 0) return {0, senders - 1};  // empty message: nothing to tell them apart by
    // Byte ranges, in units of total / (mine * senders), which divide both sides' partitions.
    return {at * senders / mine, ((at + 1) * senders - 1) / mine};
}

// What a receive looks like right now.
enum class arrival {
    vacuous,  // inactive, null or erroneous in a way that answers "true"
    absent,
    present,  // the flags are there
    refused
};

struct looked {
    arrival what;
    int code;        // of a refusal
    uint64_t epoch;  // the epoch looked at; 0 = not known yet
};

// One look at partition j by one thread. `epoch` != 0: the caller has read the epoch from the host during
// this very call, so it need not be found out again.
//
// Otherwise `seen_epoch` may be old, for nobody tells the executor when the host starts an epoch, and then
// last epoch's flag would pass for this one's. But the host can only have started another epoch after the
// whole message of seen_epoch had arrived, and then flags[senders] says so. While it does not, seen_epoch
// is the running epoch; once it does, we read the host's word.
MPIX_FN looked look(mpix_prequest *r, int j, uint64_t epoch) {
    looked l{arrival::absent, MPI_SUCCESS, epoch};
    uint64_t senders = peek(&r->peer_partitions);
    uint64_t *flags = peek_pointer(&r->flags);
    const bool routed = senders != 0 && flags != nullptr;  // else not matched yet, or the match was undone
    if (l.epoch == 0 || !routed) {
        l.epoch = peek(&r->seen_epoch);
        const uint64_t matched = observe_gpu(&r->seen_gate);
        if (l.epoch == 0 || matched == 0 || !routed || peek(&flags[senders]) >= l.epoch) {
            uint64_t word, gate;
            observe_pair(&r->words->epoch, &word, &gate);  // gate acquires the route that the host wrote
            poke(&r->seen_epoch, word >> 1);
            publish_gpu(&r->seen_gate, gate);
            if ((word & 1) == 0) {
                l.what = arrival::vacuous;
                return l;
            }
            if (gate == 0) {  // not matched yet
                l.epoch = 0;
                return l;
            }
            l.epoch = word >> 1;
            senders = peek(&r->peer_partitions);
            flags = peek_pointer(&r->flags);
            if (senders == 0 || flags == nullptr) return l;  // undone since we read the gate
        }
    }
    const overlap range = sender_partitions(r, j, senders);
    for (uint64_t i = range.first; i <= range.last; ++i)
        if (observe(&flags[i]) < l.epoch) return l;  // observe_arrival: pairs with the sender's publish_partition
    l.what = arrival::present;
    return l;
}

// Arguments first, then a look. One thread.
MPIX_FN looked examine(mpix_prequest *r, int j) {
    if (r == nullptr) return {arrival::vacuous, MPI_SUCCESS, 0};
    if (r->kind != MPIX_KIND_RECV || r->abi != MPIX_ABI_VERSION)
        return {arrival::refused, keep_error(r, MPI_ERR_REQUEST, j), 0};
    if (j < 0 || j >= r->partitions) return {arrival::refused, keep_error(r, MPI_ERR_ARG, j), 0};
    if (r->null_peer) return {arrival::vacuous, MPI_SUCCESS, 0};
    return look(r, j, 0);
}

// How a sender's partition gets from the landing to a contiguous user's buffer; the host passes its own
// for other layouts.
struct contiguous_taker {
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
    template <class Group>
    MPIX_FN void operator()(const Group &group, const mpix_prequest *r, uint64_t offset, const char *from,
                            uint64_t bytes) const {
        group_copy(group, r->buffer + offset, from, bytes);
    }
};

// Copy sender partition i out of the landing, if its flag is there and nobody else has or does.
// `epoch` counts for the leader only.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN void take(const Group &group, mpix_prequest *r, uint64_t i, uint64_t epoch, const Taker &copy) {
    const bool leader = group.thread_rank() == 0;
    bool mine = false;
    if (leader && peek(&r->taken[i]) < 2 * epoch - 1 && observe(&r->flags[i]) >= epoch)
        mine = claim_gpu(&r->taken[i], 2 * epoch - 2, 2 * epoch - 1);
    if (!agree(group, mine)) return;
    const uint64_t total = static_cast<uint64_t>(r->partitions) * r->partition_bytes;
    const uint64_t bytes = total / peek(&r->peer_partitions);
    const char *from = r->landing;
    if (peek(&r->slots) == 2 && agree(group, (epoch & 1) != 0)) from += total;
    copy(group, r, i * bytes, from + i * bytes, bytes);
    group.sync();  // all members' parts are in place before the leader says so
    if (leader) {
        publish_gpu(&r->taken[i], 2 * epoch);  // pairs with observe_gpu in taken_all
        count_up_gpu(&r->taken_count);
    }
}

MPIX_FN bool taken_all(const mpix_prequest *r, overlap range, uint64_t epoch) {
    for (uint64_t i = range.first; i <= range.last; ++i)
        if (observe_gpu(&r->taken[i]) < 2 * epoch) return false;
    return true;
}

// The bytes of partition j, whose flags are all there, into the user's buffer. False: another group is
// still copying a part of it.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool take_partition(const Group &group, mpix_prequest *r, int j, uint64_t epoch, const Taker &copy) {
    const overlap range = sender_partitions(r, j, peek(&r->peer_partitions));
    for (uint64_t i = range.first; i <= range.last; ++i) take(group, r, i, epoch, copy);
    return agree(group, group.thread_rank() == 0 && taken_all(r, range, epoch));
}

// One answer for the whole group from the leader's look.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool conclude(const Group &group, mpix_prequest *r, int j, const looked &l, const Taker &copy) {
    // A barrier: what the leader acquired, every member has.
    if (!agree(group, l.what == arrival::present || l.what == arrival::vacuous)) return false;
    if (r == nullptr || peek_pointer(&r->landing) == nullptr) return true;
    if (agree(group, l.what == arrival::vacuous)) return true;
    return take_partition(group, r, j, l.epoch, copy);
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool arrived(const Group &group, mpix_prequest *r, int j, const Taker &copy) {
    looked l{arrival::refused, MPI_SUCCESS, 0};
    if (group.thread_rank() == 0) l = examine(r, j);
    return conclude(group, r, j, l, copy);
}

MPIX_FN void pause_polling(unsigned polls) {
#if !defined(__CUDA_ARCH__)
    if (polls % 64 == 63) sched_yield();  // the writer may need this core
#else
    (void)polls;
#endif
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN bool parrived(const Group &group, MPIX_Prequest preq, int partition) {
    return detail::arrived(group, preq, partition, detail::contiguous_taker{});
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait_arrived(const Group &group, MPIX_Prequest preq, int partition, uint64_t timeout_ns) {
    using detail::arrival;
    const bool leader = group.thread_rank() == 0;
    detail::looked l{arrival::refused, MPI_SUCCESS, 0};
    uint64_t start = 0;
    unsigned polls = 0;
    if (leader) l = detail::examine(preq, partition);
    for (;;) {
        if (leader && l.what == arrival::absent) {
            const uint64_t limit = timeout_ns == default_timeout ? preq->stall_ns : timeout_ns;
            if (start == 0) start = detail::now_ns();
            l.epoch = 0;  // read the host's word once, now; it holds for the rest of this call
            while ((l = detail::look(preq, partition, l.epoch)).what == arrival::absent) {
                if ((polls++ % 16) == 15 || timeout_ns == 0)
                    if ((limit != 0 || timeout_ns == 0) && detail::now_ns() - start >= limit) {
                        l.what = arrival::refused;
                        l.code = MPI_ERR_PENDING;
                        if (timeout_ns == default_timeout) detail::keep_error(preq, MPI_ERR_PENDING, partition);
                        break;
                    }
                detail::pause_polling(polls);
            }
        }
        if (detail::conclude(group, preq, partition, l, detail::contiguous_taker{})) return MPI_SUCCESS;
        if (const int code = detail::agree_code(group, l.code); code != MPI_SUCCESS) return code;
        // Another group is copying the partition out; look again.
        if (leader) l.what = arrival::absent;
        detail::pause_polling(63);
    }
}

}  // namespace mpix

MPIX_FN int MPI_Parrived(MPIX_Prequest preq, int partition, int *flag) {
    if (flag == nullptr) return preq == nullptr ? MPI_ERR_ARG : mpix::detail::keep_error(preq, MPI_ERR_ARG, partition);
    const mpix::thread_group self;
    const mpix::detail::looked l = mpix::detail::examine(preq, partition);
    *flag = mpix::detail::conclude(self, preq, partition, l, mpix::detail::contiguous_taker{});
    return l.code;
}

#endif  // MPIX_DEVICE_ARRIVED_CUH
