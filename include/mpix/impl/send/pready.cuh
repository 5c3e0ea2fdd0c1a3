// SPDX-License-Identifier: BSD-3-Clause
//
// Pready: marks partitions of a send ready, and moves them. One source for GPU threads, host threads that play them,
// and the host's own MPI_Pready. ready() at the end of the file is the entry; admit() decides whether the partition
// moves now.
#ifndef MPIX_IMPL_SEND_PREADY_CUH
#define MPIX_IMPL_SEND_PREADY_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/errors.cuh>
#include <mpix/impl/epoch/host_epoch.cuh>
#include <mpix/impl/epoch/slot_ring.cuh>
#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/inline/store.cuh>
#include <mpix/impl/pack/typed_copy.cuh>
#include <mpix/impl/rget/rget.cuh>
#include <mpix/impl/work_queue/post.cuh>

namespace mpix::detail {

MPIX_FN uint64_t *partition_states(mpix_prequest *r) { return reinterpret_cast<uint64_t *>(r + 1); }

// What all members of the group need of the request. None of these loads depends on another, nor on the leader's in
// admit, so together they cost one trip to memory.
struct outgoing {
    char *buffer;
    uint64_t partition_bytes;
    // The route; zero while the peer is not known.
    char *landing;
    uint64_t *flags;  // as in mpix_prequest
};

enum class admission { refused, now, later, offered, nothing };

struct admitted {
    admission what;
    int code;  // of a refusal
    uint64_t epoch;
};

// Reads the host's words of a send, and notes for all what they say of its epoch. One thread.
MPIX_FN host_says ask_of_send(mpix_prequest *r) {
    return read_host(r, [&](const host_says &now) {
        const uint64_t epoch = now.word >> 1;
        if ((now.word & 1) == 0) return;
        store_relaxed(&r->seen_epoch, epoch);
#if MPIX_ON_GPU
        // Once the receiver's kernels use the inline buffer, they always do.
        if (now.gate >= epoch && load_pointer(&r->landing) != nullptr)
            fetch_max_relaxed_gpu(
                &r->open_word,
                2 * epoch + (now.inline_buffer != 0 && load_pointer(&r->inline_buffer) != nullptr && epoch >> 32 == 0));
#else
        if (now.gate >= gate_needed(epoch, load_relaxed(&r->slots)) && load_pointer(&r->landing) != nullptr)
            store_release_gpu(&r->open_word, 2 * epoch);  // hands the acquire on, see admit; pairs: C6
#endif
        store_release_gpu(&r->seen_gate, now.gate);  // hands the acquire on, see admit; pairs: C5
    });
}

// What to do with partition p, by the arguments and by the host's words. One thread.
template <mpix_device_call Call>
MPIX_COLD_FN admitted admit_by_host(mpix_prequest *r, int p) {
    admitted a{admission::refused, MPI_SUCCESS, 0};
    const bool mine = head_is(r->head, MPIX_KIND_SEND);
    if (!mine || p < 0 || p >= r->partitions) {
        a.code = refuse<Call>(r, mine ? MPIX_CAUSE_INDEX : wrong_handle(r->head), p);
        return a;
    }
    const host_says says = ask_of_send(r);
    a.epoch = says.word >> 1;
    const bool active = (says.word & 1) != 0;
    if (!active || load_relaxed(partition_states(r) + p) == a.epoch) {
        a.code = refuse<Call>(r, active ? MPIX_CAUSE_READY : MPIX_CAUSE_INACTIVE, p);
        return a;
    }
    if (head_null_peer(r->head))
        a.what = admission::nothing;
    else if (says.gate >= gate_needed(a.epoch, load_relaxed(&r->slots)) && load_pointer(&r->landing) != nullptr)
        a.what = admission::now;
    else
        a.what = admission::later;
    return a;
}

// The same, usually without the host. Not in the first epoch: until the receiver has started, its request may be freed
// and the match undone, so the route has to be read after the gate.
//
// `seen_epoch` may be old, since nobody tells the executor when the host starts an epoch. But the host can start
// another one only after all partitions of seen_epoch were readied, and the counters say whether they were. While they
// were not, seen_epoch is the running epoch; once they were, the host's word is read.
template <mpix_device_call Call>
MPIX_FN admitted admit(mpix_prequest *r, int p) {
#if !MPIX_ON_GPU
    // On the host, reading the words is cheap, so this path handles only what goes to the landing. It acquires as
    // below, and acquires the route, which a faulty peer may have undone since.
    // pairs: C6
    const uint64_t open = load_acquire_gpu(&r->open_word),
                   open_now = open_epoch(r, open, load_relaxed(&r->ready_count));
    if (r->head != send_head || static_cast<unsigned>(p) >= static_cast<unsigned>(r->partitions) || open_now == 0 ||
        load_pointer(&r->landing) == nullptr)
        return admit_by_host<Call>(r, p);
    return {admission::now, MPI_SUCCESS, open_now};
#else
    const uint64_t head = r->head;
    const int partitions = r->partitions;
    const uint64_t slots = load_relaxed(&r->slots);
    const char *const landing = load_pointer(&r->landing);
    const uint64_t readied = load_relaxed(&r->ready_count);
    const uint64_t epoch = load_relaxed(&r->seen_epoch);
    // Acquires what the receiver did before its Start, through the thread that read the host's word: our stores to the
    // landing must not come before it.
    const uint64_t gate = load_acquire_gpu(&r->seen_gate);  // pairs: C5
    if (head != send_head || static_cast<unsigned>(p) >= static_cast<unsigned>(partitions) || epoch < 2 ||
        readied >= epoch * static_cast<uint64_t>(partitions) || gate < gate_needed(epoch, slots))
        return admit_by_host<Call>(r, p);
    return {landing != nullptr ? admission::now : admission::later, MPI_SUCCESS, epoch};
#endif
}

// Marks partition p ready. False, with the error kept: another caller has done so meanwhile, or the epoch is over. One
// thread. For Alone and Call see group_mover.
template <bool Alone, mpix_device_call Call>
MPIX_FN bool claim(mpix_prequest *r, int p, uint64_t epoch) {
    uint64_t *const state = partition_states(r) + p;
    if ((Alone ? fetch_max_single_writer(state, epoch) : fetch_max_relaxed_gpu(state, epoch)) < epoch) return true;
    refuse<Call>(r, MPIX_CAUSE_READY, p);
    return false;
}

// The receiver's words.inline_buffer, from the address of its words.complete.
MPIX_FN uint64_t *inline_word_beside(uint64_t *complete) {
    return complete + (offsetof(mpix_words, inline_buffer) - offsetof(mpix_words, complete)) / sizeof(uint64_t);
}

// All partitions are ready. If all were moved at once, tells the receiver and the sender's host that the message is
// complete; otherwise the sender's progress engine does, after moving the rest.
MPIX_COLD_FN void say_all_ready(mpix_prequest *r, uint64_t epoch) {
    const bool whole = !head_null_peer(r->head) && load_relaxed(&r->defer_epoch) != epoch;
    if (load_pointer(&r->postings) != nullptr) end_posting(r, epoch, whole);
    // Orders all partitions' bytes and flags, chained to us by the counter, before the words below.
    // Pairs with load_acquire() in the host's completion test and in the receiver's parrived.
    fence_acq_rel();  // pairs: D2, D3
    // Each is loaded once: a faulty peer may undo the route meanwhile.
    uint64_t *const flags = arrival_flags(load_pointer(&r->flags)), *const complete = load_pointer(&r->peer_complete);
    if (whole && flags != nullptr && complete != nullptr) {
        if (load_relaxed(&r->open_word) == 2 * epoch + 1)
            store_relaxed(inline_word_beside(complete), epoch);   // released by the store of `complete`
        store_release_after_fence(&flags[r->partitions], epoch);  // the whole message's; pairs: D4
        // After that flag: this word lets the receiver's host start the next epoch, and then look() relies on the flag.
        // A release of its own, since the two words are in different memories.
        store_release(complete, epoch);  // pairs: D3
    }
    store_release_after_fence(&r->words->all_ready, epoch);  // pairs: D2, D5
}

// Counts one partition as readied. The counter chains all callers (see fetch_add_acq_rel_gpu), so the last one of the
// epoch may speak for all. If the host's Pready has a share in an epoch, no caller here is the last: the progress
// engine adds its share, and then updates the count.
//
// Inline: nobody has to be told of the bytes, since packets carry their own flags. That they have been read is known
// without a fence, which would wait until they are at the peer: a value that was stored has been loaded. The last
// caller's fence acquires the others' counts.
template <bool Alone, bool Inline = false>
MPIX_FN void count_ready(mpix_prequest *r, uint64_t epoch) {
    // pairs: D1
    const uint64_t readied = (Alone    ? fetch_add_single_writer(&r->ready_count)
                              : Inline ? fetch_add_relaxed_gpu(&r->ready_count)
                                       : fetch_add_acq_rel_gpu(&r->ready_count)) +
                             1;
    if (readied != epoch * static_cast<uint64_t>(r->partitions)) return;
    if constexpr (Inline) fence_acq_rel();  // pairs: D1
    say_all_ready(r, epoch);
}

// Adds an entry to the progress engine's ring, after a fence_acq_rel, which releases what was stored before to the
// reader: pairs with load_acquire() in the engine. One thread.
MPIX_FN void enter_in_ring(mpix_prequest *r, uint64_t epoch, uint32_t what) {
    store_relaxed(&r->defer_epoch, epoch);
    const uint64_t place = fetch_add_relaxed_gpu(&r->defer_count) % static_cast<uint64_t>(r->partitions);
    store_release_after_fence(&r->ring[place], epoch << 32 | what);  // pairs: G1
}

// Hands partition p over to the progress engine, for good. The caller has synchronised its group.
MPIX_COLD_FN void defer(mpix_prequest *r, int p, uint64_t epoch) {
    fence_acq_rel();  // the partition's bytes; pairs: G1
    enter_in_ring(r, epoch, static_cast<uint32_t>(p));
}

#if MPIX_ON_GPU
// The same if a group of the receiver waits for the partition. That group reads it, or answers that it does not. The
// engine waits for either, and then moves what was not read.
MPIX_COLD_FN void send_rts(mpix_prequest *r, int p, uint64_t epoch) {
    uint64_t *const flags = load_pointer(&r->flags);  // loaded once: a faulty peer may undo the route
    // A group that finds the offer has the partition's bytes: pairs with fence_acquire in find_rts. If none does, the
    // ring entry hands them to the engine, as in defer.
    fence_acq_rel();  // pairs: B1, G1
    if (flags != nullptr)
        // pairs: B1
        store_release_after_fence(rts_of(arrival_flags(flags), static_cast<uint64_t>(r->partitions)) + p, epoch);
    enter_in_ring(r, epoch, static_cast<uint32_t>(p) | (flags != nullptr ? static_cast<uint32_t>(MPIX_RING_RTS) : 0));
}
#endif

// How a group of threads moves a partition. The host passes its own mover, which knows datatypes by their plans, and
// whose caller reports errors itself. It has another one for processes that call MPI from one thread only: there no
// atomic exchange is needed, and stores to the landing need not be waited for.
//
// Gaps: on a GPU, the code that looks bytes up takes about 45 more registers, whether it runs or not. So only callers
// that ask for it get it; otherwise partitions with gaps are left to the progress engine.
template <bool Gaps, mpix_device_call Call = Gaps ? MPIX_CALL_PREADY_TYPED : MPIX_CALL_PREADY>
struct group_mover {
    static constexpr bool alone = false;
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
                   load_acquire_gpu(&r->seen_gate) >= gate_needed(a.epoch, load_relaxed(&r->slots)) &&
                   may_post(r, packs, static_cast<uint64_t>(group.num_threads()));
        if (a.what == admission::later && !by_queue) defer(r, p, a.epoch);
#if MPIX_ON_GPU
        if (a.what == admission::offered) send_rts(r, p, a.epoch);
#endif
    }
    if (broadcast_bool(group, by_queue)) {
        // `postings` was not null after the gate, so it stays the same.
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

// The caller's group has stored a partition in the landing: bytes before flag. Pairs with reached_acquire() in look and
// in the host's test, and with fence_acquire in await_together. One thread, after a barrier of the group.
MPIX_FN void publish_partition(uint64_t *flags, int p, uint64_t epoch) {
    fence_acq_rel();                                             // pairs: A1
    store_release_after_fence(&arrival_flags(flags)[p], epoch);  // pairs: A1
}

#if MPIX_ON_GPU
// All members have stored packets of a partition, which tell the receiver themselves. The teller, one of the members,
// claims the partition after them, and counts it if it has the claim.
template <class Group, class Mover>
MPIX_FN int conclude_inline(const Group &group, int p, mpix_prequest *r, uint64_t epoch, bool teller, const Mover &) {
    const bool mine = !teller || fetch_max_relaxed_gpu(partition_states(r) + p, epoch) < epoch;
    if (!vote_all(group, mine)) {  // a barrier: all members have read the partition
        if (teller) refuse<Mover::call>(r, MPIX_CAUSE_READY, p);
        return MPI_ERR_ARG;
    }
    if (teller) count_ready<Mover::alone, true>(r, epoch);
    return MPI_SUCCESS;
}

// All members have stored a partition, and have synchronised since: `flags` tell the receiver. `before`: the value that
// the leader found when it raised the partition's state to its claim. Two callers of one partition, which is an error,
// may both come here, because a claim made before the stores is not waited for. Only the caller that has the claim
// tells the receiver. The other may be about to offer the partition, and a receiver that has been told would neither
// read it nor answer.
template <class Group, class Mover>
MPIX_FN int conclude_claimed(const Group &group, int p, mpix_prequest *r, uint64_t epoch, uint64_t before,
                             uint64_t *flags, const Mover &) {
    const bool leader = group.thread_rank() == 0;
    bool mine = false;
    if (leader) {
        fence_acq_rel();  // bytes before flag: pairs as in publish_partition; pairs: A1
        mine = before < epoch;
        if (mine)
            store_release_after_fence(&arrival_flags(flags)[p], epoch);  // pairs: A1
        else
            refuse<Mover::call>(r, MPIX_CAUSE_READY, p);
    }
    if (!broadcast_bool(group, mine)) return MPI_ERR_ARG;
    if (leader) count_ready<Mover::alone>(r, epoch);
    return MPI_SUCCESS;
}
// The same if the claim has yet to be made: it is under way during the fence.
template <class Group, class Mover>
MPIX_FN int conclude_stored(const Group &group, int p, mpix_prequest *r, uint64_t epoch, uint64_t *flags,
                            const Mover &move) {
    group.sync();  // the stores are behind the leader's fence; all members have read the partition
    const uint64_t before = group.thread_rank() == 0 ? fetch_max_relaxed_gpu(partition_states(r) + p, epoch) : 0;
    return conclude_claimed(group, p, r, epoch, before, flags, move);
}
#endif

#if !MPIX_ON_GPU
// Moves a partition to the landing, if that is mapped; or the leader writes it to the receiver's buffer in its own
// memory. False: the system has refused that. (Where GPUs can store, the landing is the receiver's own buffer, with one
// slot.)
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
        const uint64_t offset = static_cast<uint64_t>(p) * o.partition_bytes;
        return broadcast_bool(group, group.thread_rank() == 0 &&
                                         far->write(far, landing + offset, o.buffer + offset, o.partition_bytes) == 0);
    }
    move(group, r, o, p, landing);
    return true;
}
#endif

#if MPIX_ON_GPU
MPIX_COLD_FN admission left_to(const mpix_prequest *r, int p, uint64_t epoch, uint64_t threads) {
    const uint64_t bytes = r->partition_bytes, least = load_relaxed(&r->pull_bytes);
    if (for_others(bytes, least, threads) && is_wanted(r, p, epoch, least * threads)) return admission::offered;
    return for_others(bytes, load_relaxed(&r->copy_engine_bytes), threads) ? admission::later : admission::now;
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
    const uint64_t left_bytes = load_weak(&r->left_bytes);  // under way with these loads, too
#endif
    admitted a{admission::refused, MPI_SUCCESS, 0};
    bool sent_inline = false;
    if (leader) {
        a = admit<Mover::call>(r, p);
#if MPIX_ON_GPU
        if (a.what == admission::now &&
            for_others(o.partition_bytes, left_bytes, static_cast<uint64_t>(group.num_threads())))
            a.what = left_to(r, p, a.epoch, static_cast<uint64_t>(group.num_threads()));
        sent_inline = inline_capable && a.what == admission::now && may_send_inline(r, a.epoch) &&
                      (Mover::gaps || r->offsets == nullptr);
        if constexpr (!Mover::gaps) {
            if (a.what == admission::now && !sent_inline &&
                has_layouts(o.flags != nullptr ? o.flags : load_pointer(&r->flags)))
                a.what = admission::later;
        }
#else
        // Only the first caller touches the landing. (On a GPU see conclude_claimed.)
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
        return conclude_inline(group, p, r, a.epoch, leader, move);
    }
    if (o.landing == nullptr || o.flags == nullptr) {  // they came meanwhile
        o.landing = load_pointer(&r->landing);
        o.flags = load_pointer(&r->flags);
    }
    move(group, r, o, p, o.landing);
    return conclude_stored(group, p, r, a.epoch, o.flags, move);
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

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_FN int ready(const Group &group, int p, MPIX_Prequest handle, const Mover &move) {
    if (handle == nullptr) return MPI_ERR_REQUEST;
    mpix_prequest *const r = request_of(handle);
#if MPIX_ON_GPU
    // Without the host's word, if possible.
    const bool inline_capable = is_inline_capable(handle, group.num_threads());
    if (inline_capable) {
        bool sent_inline = false;
        if (const uint64_t epoch = store_inline_fast(group, r, p, &sent_inline); epoch != 0) {
            const bool teller =
                static_cast<unsigned>(group.thread_rank()) == static_cast<unsigned>(group.num_threads()) - 1;
            if (sent_inline) return conclude_inline(group, p, r, epoch, teller, move);
            return conclude_stored(group, p, r, epoch, load_pointer_weak(&r->flags), move);
        }
    } else if (const uint64_t epoch = store_direct_fast(group, r, p); epoch != 0) {
        return conclude_stored(group, p, r, epoch, load_pointer_weak(&r->flags), move);
    }
    return ready_by_leader(group, p, r, inline_capable, move);
#else
    return ready_by_leader(group, p, r, false, move);
#endif
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq) {
    return detail::ready(group, partition, preq, detail::group_mover<false>{});
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
