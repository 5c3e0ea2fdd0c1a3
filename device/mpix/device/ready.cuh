// SPDX-License-Identifier: BSD-3-Clause
//
// Pready: mark partitions of a send ready, and move them. One source for GPU threads, host threads that
// play them, and the host's own MPI_Pready.
#ifndef MPIX_DEVICE_READY_CUH
#define MPIX_DEVICE_READY_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/device/copy.cuh>
#include <mpix/device/group.cuh>

namespace mpix::detail {

MPIX_FN bool head_is(uint64_t head, mpix_kind kind) {
    return (head & ~uint64_t{MPIX_HEAD_NULL_PEER}) == (uint64_t{MPIX_ABI_VERSION} | static_cast<uint64_t>(kind) << 32);
}
MPIX_FN bool head_null_peer(uint64_t head) { return (head & MPIX_HEAD_NULL_PEER) != 0; }

MPIX_FN uint64_t *partition_states(mpix_prequest *r) { return reinterpret_cast<uint64_t *>(r + 1); }
MPIX_FN uint64_t *partition_contributions(mpix_prequest *r) { return partition_states(r) + r->partitions; }

// Keep the first error of an epoch where the host's Wait finds it. A null request can keep nothing.
MPIX_FN int keep_error(mpix_prequest *r, int error_class, int partition) {
    // The epoch whose Wait will raise it, from the host itself: seen_epoch may be an earlier one's, and then
    // an error of that one would pass for the first of this.
    const uint64_t word = observe(&r->words->epoch);
    const uint64_t stamp = (word >> 1) + ((word & 1) == 0);
    if (swap_gpu(&r->error, stamp) != stamp)
        publish(&r->words->error, static_cast<uint64_t>(error_class) << 32 | static_cast<uint32_t>(partition + 1));
    return error_class;
}

// The clear-to-send that a send of `epoch` needs. With two slots the landing still has room for one
// epoch more than the receiver has finished; the first epoch always waits for the receiver's first
// Start, because until then its request may still be freed and the match undone.
MPIX_FN uint64_t gate_needed(uint64_t epoch, uint64_t slots) { return slots == 2 && epoch > 1 ? epoch - 1 : epoch; }

// What a caller of Pready needs of the request, read in one go: these loads do not depend on each other, so
// together they cost one trip to memory, and none is left for the moment when the bytes or the flag wait for it.
struct outgoing {
    char *buffer;
    uint64_t partition_bytes;
    int partitions;
    // The route; zero while the peer is not known.
    char *landing;
    uint64_t *flags;
    uint64_t slots;
};

MPIX_FN void read_route(const mpix_prequest *r, outgoing &out) {
    out.landing = peek_pointer(&r->landing);
    out.flags = peek_pointer(&r->flags);
    out.slots = peek(&r->slots);
}

enum class admission { refused, now, later, nothing };

struct admitted {
    admission what;
    int code;  // of a refusal
    uint64_t epoch;
    uint64_t previous;  // the partition's state before; equal to `epoch`: it was ready already
};

// Decide what becomes of partition p, and claim it. One thread.
//
// `seen_epoch` may be old, for nobody tells the executor when the host starts an epoch. But the host can only
// start another one after all partitions of seen_epoch were readied, and the counters say whether they were.
// While they were not, seen_epoch is the running epoch; once they were, we read the host's word.
MPIX_FN admitted admit(mpix_prequest *r, int p, const outgoing &o) {
    admitted a{admission::refused, MPI_SUCCESS, 0, 0};
    const uint64_t head = peek(&r->head);
    const uint64_t readied = peek(&r->ready_count) + peek(&r->host_count);
    a.epoch = peek(&r->seen_epoch);
    // Acquires what the receiver did before its Start, by way of the thread that read the host's word:
    // our stores to the landing must not come before it.
    uint64_t gate = observe_gpu(&r->seen_gate);
    const bool mine = head_is(head, MPIX_KIND_SEND), null_peer = head_null_peer(head);
    if (!mine || p < 0 || p >= o.partitions) {
        a.code = keep_error(r, mine ? MPI_ERR_ARG : MPI_ERR_REQUEST, p);
        return a;
    }
    uint64_t *const state = partition_states(r) + p;
    uint64_t slots = o.slots;
    if (readied >= a.epoch * static_cast<uint64_t>(o.partitions) || gate < gate_needed(a.epoch, slots)) {
        uint64_t word;
        observe_pair(&r->words->epoch, &word, &gate);
        a.epoch = word >> 1;
        poke(&r->seen_epoch, a.epoch);
        publish_gpu(&r->seen_gate, gate);  // hands the acquire on, see above
        const bool active = (word & 1) != 0;
        if (!active || peek(state) == a.epoch) {
            a.code = keep_error(r, active ? MPI_ERR_ARG : MPI_ERR_REQUEST, p);
            return a;
        }
        slots = peek(&r->slots);
    }
    a.previous = swap_gpu(state, a.epoch);
#if !defined(__CUDA_ARCH__)
    // The answer is here at once, so none but the first caller touches the landing. (On a GPU it travels while
    // the bytes move, see ready.)
    if (a.previous == a.epoch) {
        a.code = keep_error(r, MPI_ERR_ARG, p);
        return a;
    }
#endif
    if (null_peer)
        a.what = admission::nothing;
    else if (gate >= gate_needed(a.epoch, slots) && (o.landing != nullptr || peek_pointer(&r->landing) != nullptr))
        a.what = admission::now;
    else
        a.what = admission::later;
    return a;
}

// Count one partition as readied. The counter chains all callers (see count_up_gpu), so the last one of
// the epoch may speak for all: if all partitions were moved on the spot it tells the receiver and the
// sender's host that the message is complete, otherwise the sender's progress engine does, after the rest.
MPIX_FN void settle(mpix_prequest *r, uint64_t epoch) {
    const uint64_t readied = count_up_gpu(&r->ready_count) + 1 + peek(&r->host_count);
    if (readied != epoch * static_cast<uint64_t>(r->partitions)) return;
    // Orders all partitions' bytes and flags, chained to us by the counter, before the words below.
    // Pairs with observe() in the host's completion test and in the receiver's parrived.
    release_to_system();
    if (!head_null_peer(r->head) && peek(&r->defer_epoch) != epoch) {
        publish_after_fence(&peek_pointer(&r->flags)[r->partitions], epoch);  // the whole message's
        // Not before that flag: it lets the receiver's host start the next epoch, and look() counts on the
        // flag then. A release of its own, since the two words are in different memories.
        publish(peek_pointer(&r->peer_complete), epoch);
    }
    publish_after_fence(&r->words->all_ready, epoch);
}

// Hand partition p over to the progress engine, for good. The caller has synchronised its group.
MPIX_FN void defer(mpix_prequest *r, int p, uint64_t epoch) {
    const uint64_t place = count_up_gpu(&r->defer_count) % static_cast<uint64_t>(r->partitions);
    poke(&r->defer_epoch, epoch);
    // The partition's bytes reach whoever reads this ring entry. Pairs with observe() in the engine.
    release_to_system();
    publish_after_fence(&r->ring[place], epoch << 32 | static_cast<uint32_t>(p));
}

// How contiguous partitions are moved; the host passes its own mover for other layouts.
struct contiguous_mover {
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
    template <class Group>
    MPIX_FN void operator()(const Group &group, const outgoing &o, int p, char *landing) const {
        const uint64_t offset = static_cast<uint64_t>(p) * o.partition_bytes;
        group_copy(group, landing + offset, o.buffer + offset, o.partition_bytes);
    }
};

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_FN int ready(const Group &group, int p, mpix_prequest *r, const Mover &move) {
    if (r == nullptr) return MPI_ERR_REQUEST;
    const bool leader = group.thread_rank() == 0;
    outgoing o{r->buffer, r->partition_bytes, r->partitions, nullptr, nullptr, 0};
    read_route(r, o);
    admitted a{admission::refused, MPI_SUCCESS, 0, 0};
    if (leader) a = admit(r, p, o);
    // A barrier: the members' writes to the partition are the leader's, and the admission everybody's.
    if (agree(group, a.what == admission::now)) {
        if (o.landing == nullptr || o.flags == nullptr || o.slots == 0) read_route(r, o);  // it came meanwhile
        char *landing = o.landing;
        if (o.slots == 2 && agree(group, (a.epoch & 1) != 0))
            landing += static_cast<uint64_t>(o.partitions) * o.partition_bytes;
        move(group, o, p, landing);
        // A barrier again: all members' stores are behind the leader's fence. It also carries the answer
        // of the claim, which travelled while the bytes were moving.
        if (agree(group, a.previous == a.epoch)) {
            if (leader) keep_error(r, MPI_ERR_ARG, p);
            return MPI_ERR_ARG;
        }
        if (leader) {
            // publish_partition: bytes before flag. Pairs with observe() in look and in the host's test.
            release_to_system();
            publish_after_fence(&o.flags[p], a.epoch);
            settle(r, a.epoch);
        }
        return MPI_SUCCESS;
    }
    if (leader && a.what != admission::refused) {
        if (a.previous == a.epoch) {
            a.code = keep_error(r, MPI_ERR_ARG, p);
        } else {
            if (a.what == admission::later) defer(r, p, a.epoch);
            settle(r, a.epoch);
        }
    }
    return agree_code(group, a.code);
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq) {
    return detail::ready(group, partition, preq, detail::contiguous_mover{});
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready_range(const Group &group, int low, int high, MPIX_Prequest preq) {
    if (preq == nullptr) return MPI_ERR_REQUEST;
    if (low < 0 || high < low || high >= preq->partitions) {
        if (group.thread_rank() == 0) detail::keep_error(preq, MPI_ERR_ARG, low < 0 ? low : high);
        return MPI_ERR_ARG;
    }
    for (int p = low; p <= high; ++p)
        if (const int code = pready(group, p, preq); code != MPI_SUCCESS) return code;
    return MPI_SUCCESS;
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready_contribute(const Group &group, int partition, MPIX_Prequest preq) {
    const bool countable = preq != nullptr && detail::head_is(preq->head, MPIX_KIND_SEND) && partition >= 0 &&
                           partition < preq->partitions;
    if (countable && preq->contributors > 1) {
        // The members' writes are the leader's, which the counter chains to the last contributor's.
        group.sync();
        bool last = false;
        if (group.thread_rank() == 0)
            last =
                (detail::count_up_gpu(detail::partition_contributions(preq) + partition) + 1) % preq->contributors == 0;
        if (!detail::agree(group, last)) return MPI_SUCCESS;
    }
    return pready(group, partition, preq);  // also says what is wrong with bad arguments
}

}  // namespace mpix

MPIX_FN int MPI_Pready(int partition, MPIX_Prequest preq) { return mpix::pready(mpix::this_thread(), partition, preq); }

MPIX_FN int MPI_Pready(MPIX_Prequest preq, int partition) { return mpix::pready(mpix::this_thread(), partition, preq); }

MPIX_FN int MPI_Pready_range(int low, int high, MPIX_Prequest preq) {
    return mpix::pready_range(mpix::this_thread(), low, high, preq);
}

MPIX_FN int MPI_Pready_list(int length, const int partitions[], MPIX_Prequest preq) {
    if (preq == nullptr) return MPI_ERR_REQUEST;
    if (length < 0 || (length > 0 && partitions == nullptr)) return mpix::detail::keep_error(preq, MPI_ERR_ARG, -1);
    for (int i = 0; i < length; ++i)
        if (const int code = MPI_Pready(partitions[i], preq); code != MPI_SUCCESS) return code;
    return MPI_SUCCESS;
}

#endif  // MPIX_DEVICE_READY_CUH
