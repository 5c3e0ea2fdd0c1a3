// SPDX-License-Identifier: BSD-3-Clause
//
// Pready: marks partitions of a send ready, and moves them. One source for GPU threads, host threads that play them,
// and the host's own MPI_Pready. ready() at the end of the file is the entry. On a GPU it tries the store core first
// (store.cuh); otherwise the leader finds out by admit() what may be done.
#ifndef MPIX_IMPL_SEND_PREADY_CUH
#define MPIX_IMPL_SEND_PREADY_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/slot_ring.cuh>
#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/pack/typed_copy.cuh>
#include <mpix/impl/send/admit.cuh>
#include <mpix/impl/send/count.cuh>
#include <mpix/impl/send/store.cuh>
#include <mpix/impl/work_queue/post.cuh>

namespace mpix::detail {

// What all members of the group need of the request. None of these loads depends on another, nor on the leader's in
// admit, so together they cost one trip to memory.
struct outgoing {
    char *buffer;
    uint64_t partition_bytes;
    // The route; zero while the peer is not known.
    char *landing;
    uint64_t *flags;  // as in mpix_prequest
};

// How a group of threads moves a partition. The host passes its own mover, which knows datatypes by their plans, and
// whose caller reports errors itself. It has another one for processes that call MPI from one thread only: there no
// atomic exchange is needed, and stores to the landing need not be waited for.
//
// Gaps: on a GPU, the code that looks bytes up takes about 45 more registers, whether it runs or not. So only callers
// that ask for it get it; otherwise partitions with gaps are left to the progress engine.
//
// Waited: by the time that the leader decides, the group has waited for clear-to-send of the receiver's kernels.
template <bool Gaps, mpix_device_call Call = Gaps ? MPIX_CALL_PREADY_TYPED : MPIX_CALL_PREADY, bool Waited = false>
struct group_mover {
    static constexpr bool alone = false, waited = Waited, left_to_receiver = false;
    static constexpr mpix_device_call call = Call;
#if MPIX_ON_GPU
    static constexpr bool gaps = Gaps;
#else
    static constexpr bool gaps = true;
#endif
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
    template <class Group>
    MPIX_FN void operator()(const Group &group, const mpix_prequest *r, const outgoing &o, int p, char *landing) const {
        const uint64_t offset = static_cast<uint64_t>(p) * o.partition_bytes;
        if constexpr (gaps) {
#if MPIX_ON_GPU
            const bool found = has_layouts(o.flags);
#else
            const bool found = load_pointer(&r->layouts) != nullptr;  // the host's have been there since the export
#endif
            if (found) {
                const mpix_layouts *const sides = load_pointer(&r->layouts);
                move_share({landing, sides->to}, {o.buffer, sides->from}, static_cast<int64_t>(offset),
                           static_cast<int64_t>(o.partition_bytes), static_cast<int64_t>(group.thread_rank()),
                           static_cast<int64_t>(group.num_threads()));
                return;
            }
        }
        group_copy(group, landing + offset, o.buffer + offset, o.partition_bytes);
    }
};

// A partition that the caller does not store: null peer, posted to a queue, left to the engine, offered to the
// receiver, or refused.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_COLD_FN int put_off(const Group &group, int p, mpix_prequest *r, admitted a, const Mover &move) {
    const bool leader = group.thread_rank() == 0;
    bool by_queue = false;
    if (leader && a.what != admission::refused) {
#if MPIX_ON_GPU
        if (!claim<Mover::alone, Mover::call>(r, p, a.epoch)) a.what = admission::refused, a.code = MPI_ERR_ARG;
        constexpr bool packs = Mover::gaps;
#else
        constexpr bool packs = true;
#endif
        // pairs: C5
        by_queue = a.what == admission::later &&
                   load_acquire_gpu(&r->seen_clear_to_send) >= clear_to_send_needed(a.epoch, load_relaxed(&r->slots)) &&
                   may_post(r, packs, static_cast<uint64_t>(group.num_threads()));
        if (a.what == admission::later && !by_queue) defer(r, p, a.epoch);
#if MPIX_ON_GPU
        if (a.what == admission::rts) {
            uint64_t *const flags = load_pointer(&r->flags);  // loaded once: a faulty peer may undo the route
            fence_acq_rel();                                  // the partition's bytes; pairs: B1, G1
            if (flags != nullptr)
                send_rts(r, p, a.epoch, flags);
            else
                enter_in_ring(r, a.epoch, static_cast<uint32_t>(p));  // pairs: G1
        }
#endif
    }
    if (broadcast_bool(group, by_queue)) {
        // `postings` was not null after clear-to-send, so it stays the same.
        const mpix_posting *const ways = load_pointer(&r->postings);
        if (ways->staging != nullptr) {
            const uint64_t typed = ways->gaps != 0 ? MPIX_FLAGS_WITH_LAYOUTS : 0;
            move(group, r, {r->buffer, r->partition_bytes, nullptr, reinterpret_cast<uint64_t *>(typed)}, p,
                 ways->staging);
            group.sync();  // the leader's release covers all members' stores
        }
        if (leader && !post_partition(r, ways, p, a.epoch)) defer(r, p, a.epoch);  // the queue is full, or broken
    }
    if (leader && a.what != admission::refused) count_ready<Mover::alone>(r, a.epoch);
    return broadcast_code(group, a.code);
}

#if !MPIX_ON_GPU
// The caller's group has stored a partition in the landing: bytes before flag. Pairs with reached_acquire() in look and
// in the host's test, and with fence_acquire in await_together. One thread, after a barrier of the group.
MPIX_FN void publish_partition(uint64_t *flags, int p, uint64_t epoch) {
    fence_acq_rel();                                             // pairs: A1
    store_release_after_fence(&arrival_flags(flags)[p], epoch);  // pairs: A1
}

// Moves a partition to the landing, if that is mapped. In a single copy the leader writes it into the receiver's buffer, or it
// is left to the receiver, and stays in the send buffer until either process copies it. False: the system has refused to
// write. (Where GPUs can store, the landing is the receiver's own buffer, with one slot.)
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_FN bool store_by_host(const Group &group, const mpix_prequest *r, const outgoing &o, int p, uint64_t epoch,
                           const Mover &move) {
    char *landing = o.landing;
    if (const uint64_t slots = load_relaxed(&r->slots); slots > 1) {
        const int slot = broadcast_code(group, static_cast<int>(slot_of(epoch, slots)));
        landing += static_cast<uint64_t>(slot) * static_cast<uint64_t>(r->partitions) * o.partition_bytes;
    } else if (const mpix_far_memory *const far = load_pointer(&r->far); far != nullptr) {
        if (move.left_to_receiver) return true;
        const uint64_t offset = static_cast<uint64_t>(p) * o.partition_bytes;
        const bool written =
            group.thread_rank() == 0 && far->write(far, landing + offset, o.buffer + offset, o.partition_bytes) == 0;
        // Parrived may find this word before the flag, so it hands over the bytes, too. pairs: F1
        if (written) store_release_gpu(load_pointer(&r->taken) + p, 2 * epoch);
        return broadcast_bool(group, written);
    }
    move(group, r, o, p, landing);
    return true;
}
#endif

// The leader finds out what may be done, and then all members do it.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_FN int ready_by_leader(const Group &group, int p, mpix_prequest *r, bool inline_capable, const Mover &move) {
    const bool leader = group.thread_rank() == 0;
#if MPIX_ON_GPU
    outgoing o{r->buffer, r->partition_bytes, load_pointer_weak(&r->landing), load_pointer_weak(&r->flags)};
    const uint64_t offload_bytes =
        offload_from(r, static_cast<uint64_t>(group.num_threads()));  // under way with these loads, too
#endif
    admitted a{admission::refused, MPI_SUCCESS, 0};
    bool sent_inline = false;
    if (leader) {
        a = admit<Mover::call, Mover::waited>(r, p);
#if MPIX_ON_GPU
        if (a.what == admission::now &&
            should_offload(o.partition_bytes, offload_bytes, static_cast<uint64_t>(group.num_threads())))
            a.what = left_to(r, p, a.epoch, static_cast<uint64_t>(group.num_threads()));
        sent_inline = inline_capable && a.what == admission::now && may_send_inline(r, a.epoch) &&
                      (Mover::gaps || r->offsets == nullptr);
        if constexpr (!Mover::gaps) {
            if (a.what == admission::now && !sent_inline &&
                has_layouts(o.flags != nullptr ? o.flags : load_pointer(&r->flags)))
                a.what = admission::later;
        }
#else
        // Only the first caller touches the landing. (On a GPU see conclude_direct.)
        if (a.what != admission::refused && !claim<Mover::alone, Mover::call>(r, p, a.epoch))
            a = {admission::refused, MPI_ERR_ARG, a.epoch};
#endif
    }
    // A barrier: the leader has the members' writes to the partition, and all have the admission.
    if (!broadcast_bool(group, a.what == admission::now)) return put_off(group, p, r, a, move);
#if MPIX_ON_GPU
    if (inline_capable && broadcast_bool(group, sent_inline)) {
        store_packets<Mover::gaps>(r, p, static_cast<unsigned>(group.thread_rank()),
                                   static_cast<unsigned>(group.num_threads()));
        return conclude_inline<Mover::call>(group, p, r, a.epoch, leader);
    }
    if (o.landing == nullptr || o.flags == nullptr) {  // they came meanwhile
        o.landing = load_pointer(&r->landing);
        o.flags = load_pointer(&r->flags);
    }
    move(group, r, o, p, o.landing);
    return conclude_direct<Mover::call>(group, p, r, a.epoch, o.flags);
#else
    (void)inline_capable, (void)sent_inline;
    const outgoing o{r->buffer, r->partition_bytes, load_pointer(&r->landing), load_pointer(&r->flags)};
    // The route may have gone since the partition was admitted, as above.
    const bool there = vote_all(group, o.landing != nullptr && o.flags != nullptr);
    if (!there || !store_by_host(group, r, o, p, a.epoch, move)) {
        // The engine tries again, and Wait says why it fails.
        if (leader) {
            defer(r, p, a.epoch);
            count_ready<Mover::alone>(r, a.epoch);
        }
        return MPI_SUCCESS;
    }
    group.sync();  // the stores are behind the leader's release
    if (leader) {
        publish_partition(o.flags, p, a.epoch);
        count_ready<Mover::alone>(r, a.epoch);
    }
    return MPI_SUCCESS;
#endif
}

#if MPIX_ON_GPU
// Offers partition p to the group of the receiver that has asked for it in the open epoch: what left_to and put_off do,
// in fewer trips to memory. nobody_asks: the caller stores it; not_offered: that is not known here. One thread.
// `in_epoch`: of a handle; 0: none.
constexpr int nobody_asks = -1, not_offered = -2;
template <mpix_device_call Call>
MPIX_COLD_FN int offer(mpix_prequest *r, int p, uint64_t in_epoch) {
    // The route is final, and may come from the nearest cache.
    const uint64_t bytes = r->partition_bytes;
    const unsigned partitions = static_cast<unsigned>(r->partitions);
    const uint64_t least = load_weak(&r->rget_bytes), by_engine = load_weak(&r->copy_engine_bytes);
    const uint64_t *const wanted = load_pointer_weak(&r->wanted);
    uint64_t *const flags = load_pointer_weak(&r->flags);
    if (wanted == nullptr || flags == nullptr || static_cast<unsigned>(p) >= partitions ||
        !should_offload(bytes, least, 1))
        return not_offered;
    // Two loads that are under way together.
    uint64_t word, readied;
    load_relaxed_pair(&r->open_word, &word, &readied);
    const uint64_t look = load_relaxed(wanted + p), epoch = open_epoch(r, word, readied);
    if (epoch == 0 || (in_epoch != 0 && in_epoch != epoch)) return not_offered;
    // Asked for in the last epoch: look again (is_asked_for).
    if (look != epoch && (look + 1 != epoch || !is_wanted(r, p, epoch, least))) {
        store_relaxed(would_offer_of(arrival_flags(flags), partitions), epoch);
        return should_offload(bytes, by_engine, 1) ? not_offered : nobody_asks;
    }
    // The claim is under way during the fence, as in conclude_direct.
    const uint64_t before = fetch_max_relaxed_gpu(partition_states(r) + p, epoch);
    fence_acq_rel();  // the partition's bytes; pairs: B1, G1
    if (before >= epoch) return refuse<Call>(r, MPIX_CAUSE_READY, p);
    send_rts(r, p, epoch, flags);
    count_ready<false>(r, epoch);
    return MPI_SUCCESS;
}

// ready_by_leader for an epoch handle or a lone thread; apart, as in wait_longer_apart.
template <class Group, class Mover>
MPIX_APART_FN int ready_by_leader_apart(const Group group, int p, mpix_prequest *r, bool inline_capable,
                                        const Mover move) {
    return ready_by_leader(group, p, r, inline_capable, move);
}

// A lone thread stores partition p, for which nobody has asked. Nothing that may be offered has gaps; and its epoch is open,
// and stays so without this partition.
template <mpix_device_call Call>
MPIX_APART_FN int store_alone(int p, mpix_prequest *r, char *landing) {
    constexpr thread_group self{};
    const uint64_t bytes = r->partition_bytes, at = static_cast<uint64_t>(p) * bytes;
    group_copy(self, landing + at, r->buffer + at, bytes);
    return conclude_direct<Call>(self, p, r, load_relaxed(&r->open_word) >> 1, load_pointer_weak(&r->flags));
}

// For a lone thread with so many bytes that others move them faster: partition p is offered, or stored, or left to the
// engine. `in_epoch` as in offer.
template <class Mover>
MPIX_FN int offer_or_store(int p, mpix_prequest *r, uint64_t in_epoch, bool inline_capable, const Mover move) {
    constexpr thread_group self{};
    int code = offer<Mover::call>(r, p, in_epoch);
    // As in store: clear-to-send may be about to come.
    if (code == not_offered && await_clear_to_send(r)) code = offer<Mover::call>(r, p, in_epoch);
    if (code >= 0) return code;
    if (char *const landing = load_pointer_weak(&r->landing); code == nobody_asks && landing != nullptr)
        return store_alone<Mover::call>(p, r, landing);
    if (in_epoch != 0 && is_ready_already<Mover::call>(self, p, r, in_epoch)) return MPI_ERR_ARG;
    return ready_by_leader_apart(self, p, r, inline_capable, move);
}
#endif

// `known` is used only if Known; it is of the handle's request. For Retries see store.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <bool Known, bool Retries, class Group, class Mover>
MPIX_FN int ready(const Group &group, int p, MPIX_Prequest handle, const send_state &known, const Mover &move) {
    if (handle == nullptr) return MPI_ERR_REQUEST;
#if MPIX_ON_GPU
    // Without the host's word, if possible.
    return store<Known, Retries, Mover::call>(group, p, handle, known, [&](bool offloads) {
        mpix_prequest *const r = request_of(handle);
        const bool inline_capable = is_inline_capable(handle, group.num_threads());
        if constexpr (is_lone_thread<Group>)
            if (offloads) return offer_or_store(p, r, Known ? known.epoch : 0, inline_capable, move);
        if constexpr (Known || is_lone_thread<Group>)
            return ready_by_leader_apart(group, p, r, inline_capable, move);
        else
            return ready_by_leader(group, p, r, inline_capable, move);
    });
#else
    (void)known;
    return ready_by_leader(group, p, request_of(handle), false, move);
#endif
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <bool Retries = false, class Group, class Mover>
MPIX_FN int ready(const Group &group, int p, MPIX_Prequest handle, const Mover &move) {
    return ready<false, Retries>(group, p, handle, {}, move);
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq) {
    constexpr detail::group_mover<false, MPIX_CALL_PREADY, true> mover{};
    return detail::ready<true>(group, partition, preq, mover);
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready_typed(const Group &group, int partition, MPIX_Prequest preq) {
    return detail::ready(group, partition, preq, detail::group_mover<true>{});
}

}  // namespace mpix

MPIX_FN int MPI_Pready(int partition, MPIX_Prequest preq) { return mpix::pready(mpix::this_thread(), partition, preq); }

MPIX_FN int MPI_Pready(MPIX_Prequest preq, int partition) { return mpix::pready(mpix::this_thread(), partition, preq); }

MPIX_FN int MPI_Pready_list(int length, const int partitions[], MPIX_Prequest preq) {
    if (preq == nullptr) return MPI_ERR_REQUEST;
    if (length < 0 || (length > 0 && partitions == nullptr))
        return mpix::detail::keep_error(mpix::detail::request_of(preq), MPIX_CALL_PREADY_LIST, MPIX_CAUSE_LIST, -1);
    constexpr mpix::detail::group_mover<false, MPIX_CALL_PREADY_LIST> mover{};
    for (int i = 0; i < length; ++i)
        if (const int code = mpix::detail::ready(mpix::this_thread(), partitions[i], preq, mover); code != MPI_SUCCESS)
            return code;
    return MPI_SUCCESS;
}

#endif  // MPIX_IMPL_SEND_PREADY_CUH
