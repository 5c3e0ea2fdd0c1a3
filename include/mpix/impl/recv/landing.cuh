// SPDX-License-Identifier: BSD-3-Clause
//
// Copies the sender's partitions out of a receive's landing, for receives whose user buffer the sender does not reach; or
// out of the send buffer, in the sender's own memory (`far`).
#ifndef MPIX_IMPL_RECV_LANDING_CUH
#define MPIX_IMPL_RECV_LANDING_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/slot_ring.cuh>
#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/pack/typed_copy.cuh>
#include <mpix/impl/recv/poll.cuh>

namespace mpix::detail {

// How a group of threads takes a sender's partition out of the landing. The host passes its own taker, which knows
// datatypes by their plans.
struct group_taker {
    static constexpr mpix_device_call call =
        MPIX_CALL_PARRIVED;  // NONE: the caller reports its errors itself, and is no kernel of the user
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
    template <class Group>
    MPIX_FN void operator()(const Group &group, const mpix_prequest *r, uint64_t offset, const char *from,
                            uint64_t bytes) const {
        if (const mpix_layouts *const sides = load_pointer(&r->layouts); sides != nullptr)
            move_share({r->buffer, sides->to}, {const_cast<char *>(from) - offset, nullptr},
                       static_cast<int64_t>(offset), static_cast<int64_t>(bytes),
                       static_cast<int64_t>(group.thread_rank()), static_cast<int64_t>(group.num_threads()));
        else
            group_copy(group, r->buffer + offset, from, bytes);
    }
#if !MPIX_ON_GPU
    // In a single copy, by one thread. False: the system has refused that.
    static bool read(const mpix_far_memory *far, char *to, const char *from, uint64_t bytes) {
        return far->read(far, to, from, bytes) == 0;
    }
#endif
};

struct library_taker : group_taker {
    static constexpr mpix_device_call call = MPIX_CALL_NONE;
};

// Copies a sender's partition to the user's buffer, out of the landing, or with `far` out of the send buffer. False: the
// system has refused the read.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool copy_to_user(const Group &group, mpix_prequest *r, const mpix_far_memory *far, uint64_t offset,
                          const char *from, uint64_t bytes, const Taker &copy) {
#if !MPIX_ON_GPU
    if (far != nullptr)
        return broadcast_bool(group, group.thread_rank() == 0 && copy.read(far, r->buffer + offset, from, bytes));
#else
    (void)far;
#endif
    copy(group, r, offset, from, bytes);
    group.sync();  // all members' parts are in place before the leader says so
    return true;
}

// Claims a sender partition, for the caller to copy. False: another has claimed it, or in a single copy, a write of an
// earlier epoch has failed. Without that the state may be older: the host's receive copies whole messages without it.
MPIX_FN bool claim_to_take(uint64_t *taken, uint64_t epoch, bool single_copy) {
    const uint64_t seen = single_copy ? 2 * epoch - 2 : load_relaxed(taken);
    return seen < 2 * epoch - 1 && cas_acq_rel_gpu(taken, seen, 2 * epoch - 1);  // pairs: F2
}

// Copies sender partition i to the user's buffer, if its flag is set and nobody else has copied it, or is copying it.
// `epoch` counts for the leader only. What cannot be read stays the sender's to write; its Wait says why that fails.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN void take(const Group &group, mpix_prequest *r, uint64_t i, uint64_t epoch, const Taker &copy) {
    const bool leader = group.thread_rank() == 0;
    bool mine = false;
    uint64_t *const taken = load_pointer(&r->taken) + i;
    // pairs: A1, N1
    if (leader && load_relaxed(taken) < 2 * epoch - 1 && load_acquire(&load_pointer(&r->flags)[i]) >= epoch)
        mine = claim_to_take(taken, epoch, load_pointer(&r->far) != nullptr);
    if (!broadcast_bool(group, mine)) return;
    const uint64_t total = static_cast<uint64_t>(r->partitions) * r->partition_bytes;
    const uint64_t bytes = total / load_relaxed(&r->peer_partitions);
    // In this order: a faulty peer may undo the match meanwhile, and an address in its memory must not be taken for ours.
    const mpix_far_memory *const far = load_pointer(&r->far);
    const char *from = load_pointer(&r->landing);
    if (const uint64_t slots = load_relaxed(&r->slots); slots > 1)
        from += static_cast<uint64_t>(broadcast_code(group, static_cast<int>(slot_of(epoch, slots)))) * total;
    const bool copied = copy_to_user(group, r, far, i * bytes, from + i * bytes, bytes, copy);
    // pairs with load_acquire_gpu in taken_all; pairs: F1
    if (leader) store_release_gpu(taken, copied ? 2 * epoch : 2 * epoch - 2);
}

MPIX_FN bool taken_all(const mpix_prequest *r, overlap range, uint64_t epoch) {
    for (uint64_t i = range.first; i <= range.last; ++i)
        if (load_acquire_gpu(&load_pointer(&r->taken)[i]) < 2 * epoch) return false;  // pairs: F1
    return true;
}

// Copies the bytes of partition j, whose flags are all set, to the user's buffer. False: somebody else is still copying
// a part of it.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Taker>
MPIX_FN bool take_partition(const Group &group, mpix_prequest *r, int j, uint64_t epoch, const Taker &copy) {
    const overlap range = sender_partitions(r, j, load_relaxed(&r->peer_partitions));
    for (uint64_t i = range.first; i <= range.last; ++i) take(group, r, i, epoch, copy);
    return broadcast_bool(group, group.thread_rank() == 0 && taken_all(r, range, epoch));
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_RECV_LANDING_CUH
