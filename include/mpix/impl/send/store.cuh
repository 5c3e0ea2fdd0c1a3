// SPDX-License-Identifier: BSD-3-Clause
//
// The store core: a group stores a partition at a peer GPU, tells the receiver, and counts it. Calls on a request and
// calls on an epoch handle come here. A handle knows the send's running epoch (Known); for a request each member finds
// it out while the loads of its payload are under way, so that a small partition costs one trip to memory.
#ifndef MPIX_IMPL_SEND_STORE_CUH
#define MPIX_IMPL_SEND_STORE_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/group/words.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/send/admit.cuh>
#include <mpix/impl/send/count.cuh>

namespace mpix::detail {

// What a group needs of a send to store its partitions at the receiver.
struct send_state {
    uint64_t epoch;  // the running one; 0: not known
    // Null: partitions do not go that way.
    char *buffer, *inline_buffer, *landing;
    uint64_t *flags;
    // Where the receiver's kernels give clear-to-send; to be looked at in each call unless the epoch is `clear`.
    const uint64_t *clear_to_send;
    uint64_t partition_bytes, offload_bytes;  // offload_for_all
    int partitions;
    bool in_words;  // whether packets can be loaded and stored as whole words
    bool clear;
};

// Whether the receiver's kernels have given clear-to-send for a handle's epoch, which a kernel has started. `given`: as
// loaded a moment ago; then the last one loaded. Looks again for some microseconds.
MPIX_FN bool await_clear(const send_state &known, uint64_t &given) {
    if ((given >> 1) + 1 < known.epoch) return false;  // the receiver's host starts its epochs
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (unsigned looks = 0; given >> 1 < known.epoch && looks < 16; ++looks) given = load_relaxed(known.clear_to_send);
    if (given >> 1 < known.epoch) return false;
    fence_acquire(known.clear_to_send);  // what the receiver read before it started the epoch; pairs: K2
    return true;
}

// The epoch in which a group has stored a partition; 0: it has done nothing. `offloads`: because others move it faster; only
// a lone thread acts on that.
struct stored {
    uint64_t epoch;
    bool sent_inline, offloads;
};

// Stores partition p of a message without gaps, if no other mover is better.
template <class Group>
MPIX_FN stored store_direct(const Group &group, const mpix_prequest *, int p, const send_state &known) {
    const uint64_t bytes = known.partition_bytes, offset = static_cast<uint64_t>(p) * bytes;
    // After this barrier the members' writes to the partition are visible to all. A handle may be without an epoch;
    // then the leader looks for one, and must not have come before a member that knows of the host's Start.
    group.sync();
    if (known.epoch == 0 || known.landing == nullptr ||
        static_cast<unsigned>(p) >= static_cast<unsigned>(known.partitions))
        return {};
    if (should_offload(bytes, offload_from(known.offload_bytes, static_cast<uint64_t>(group.num_threads())),
                       static_cast<uint64_t>(group.num_threads())))
        return {0, false, true};
    if (!known.clear) {
        uint64_t given = load_relaxed(known.clear_to_send);
        if (!vote_all(group, await_clear(known, given))) return {};
    }
    group_copy(group, known.landing + offset, known.buffer + offset, bytes);
    return {known.epoch, false, false};
}
// The same if the epoch is not known. The partition must be aligned to 16 bytes.
template <class Group>
MPIX_FN stored store_direct(const Group &group, const mpix_prequest *r, int p) {
    constexpr uint64_t ahead = 4, width = sizeof(block16);
    // All these loads are under way together.
    const uint64_t bytes = r->partition_bytes, rank = static_cast<uint64_t>(group.thread_rank()),
                   threads = static_cast<uint64_t>(group.num_threads());
    char *const landing = load_pointer_weak(&r->landing), *const buffer = r->buffer;
    const uint64_t *const flags = load_pointer_weak(&r->flags);
    const uint64_t offload_bytes = offload_from(r, threads);
    const unsigned partitions = static_cast<unsigned>(r->partitions);
    // After this barrier the members' writes to the partition are visible to all. The look at the epoch comes after it,
    // too: a member with nothing to write may have come before the host's Start, of which another member knows, and
    // would find the epoch before.
    group.sync();
    uint64_t word, readied;
    load_relaxed_pair(&r->open_word, &word, &readied);
    if (((reinterpret_cast<uint64_t>(buffer) | bytes) & (width - 1)) != 0) return {};
    const bool offloads = should_offload(bytes, offload_bytes, threads);
    if (threads == 1 && offloads) return {0, false, true};  // no other member has to find the same
    const bool valid = static_cast<unsigned>(p) < partitions && landing != nullptr && flags != nullptr &&
                       !has_layouts(flags) && (reinterpret_cast<uint64_t>(landing) & (width - 1)) == 0 && !offloads;
    const uint64_t offset = valid ? static_cast<uint64_t>(p) * bytes : 0;
    const char *const from = buffer + offset;
    char *const to = landing + offset;
    block16 first[ahead];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (uint64_t k = 0; k < ahead; ++k) {
        const uint64_t at = (rank + k * threads) * width;
        first[k] = valid && at < bytes ? load_word<block16>(from + at) : block16{0, 0};
    }
    const uint64_t epoch = open_epoch(r, word, readied);
    if (!vote_all(group, valid && epoch != 0)) return {};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (uint64_t k = 0; k < ahead; ++k) {
        const uint64_t at = (rank + k * threads) * width;
        if (at < bytes) store_word(to + at, first[k]);
    }
    if (const uint64_t done = ahead * threads * width; done < bytes)
        group_copy_blocks(group, to + done, from + done, bytes - done);
    return {epoch, false, false};
}

// Whether a group may store partition p, which it does not have in the send buffer yet, in its landing; then it calls
// conclude_stored. If not, the partition goes another way, by pready. The same for all members.
template <class Group>
MPIX_FN bool landing_is_open(const Group &group, int p, const mpix_prequest *handle, const send_state &known) {
    if (known.epoch == 0 || known.landing == nullptr ||
        static_cast<unsigned>(p) >= static_cast<unsigned>(known.partitions) ||
        is_inline_capable(handle, static_cast<unsigned>(group.num_threads())) ||
        should_offload(known.partition_bytes,
                       offload_from(known.offload_bytes, static_cast<uint64_t>(group.num_threads())),
                       static_cast<uint64_t>(group.num_threads())))
        return false;
    if (!known.clear) {
        uint64_t given = load_relaxed(known.clear_to_send);
        return vote_all(group, await_clear(known, given));
    }
    return true;
}

// As store_direct, for a partition that consists of whole 8-byte words, few for each thread. Stores packets if the
// inline buffer is in use; otherwise the words themselves, with a fence and the flag to follow. If Known, the last
// member claims a partition that goes inline under way with all else.
template <bool Known, class Group>
MPIX_FN stored store_small(const Group &group, mpix_prequest *r, int p, const send_state &known) {
    constexpr unsigned ahead = most_packets_per_thread;
    const uint64_t bytes = Known ? known.partition_bytes : r->partition_bytes;
    const unsigned packets = static_cast<unsigned>(packets_of(bytes)),
                   rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    const bool busy = is_busy(rank, threads, packets);
    uint64_t epoch = Known ? known.epoch : 2, payload[ahead] = {};
    unsigned partitions = static_cast<unsigned>(Known ? known.partitions : 0);
    char *buffer = Known ? known.buffer : nullptr, *inline_buffer = Known ? known.inline_buffer : nullptr;
    bool whole = true;
    if (!Known && busy) {
        partitions = static_cast<unsigned>(r->partitions);
        buffer = r->buffer;
        whole = r->offsets == nullptr;
        inline_buffer = load_pointer_weak(&r->inline_buffer);
    }
    // If the epoch is not known, threads that neither store nor tell take the others' result.
    bool open = true, open_for_inline = true;
    group.sync();  // as in store_direct
    uint64_t before = 0;
    if constexpr (Known)
        if (rank == threads - 1 && epoch != 0 && static_cast<unsigned>(p) < partitions)
            before = fetch_max_relaxed_gpu(partition_states(r) + p, epoch);
    if (Known || busy) {
        uint64_t word = 1, readied = 0;
        if constexpr (Known) {
            if (!known.clear) word = load_relaxed(known.clear_to_send);
        } else {
            load_relaxed_pair(&r->open_word, &word, &readied);
        }
        const bool valid = static_cast<unsigned>(p) < partitions &&
                           (Known ? known.in_words : whole && in_words(buffer, bytes)) && packets - 1 < ahead * threads;
        const char *const from = buffer + (valid ? static_cast<unsigned>(p) * bytes : 0);
        // All loads are under way together. Instead of a word that it does not have, a member of a warp loads the last one. In
        // a larger group it loads none: the last member has just waited for its claim.
        const auto load = [&](unsigned i) {
            return load_word<uint64_t>(from + (i < packets ? i : packets - 1) * packet_payload);
        };
        if (valid && (threads <= 32 || rank < packets) && packets <= threads) payload[0] = load(rank);
        if (valid && packets > threads) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (unsigned k = 0; k < ahead; ++k) payload[k] = load(rank + k * threads);
        }
        if constexpr (!Known) epoch = open_epoch(r, word, readied);
        open = valid && epoch != 0 && (!Known || known.clear || await_clear(known, word)) && (!Known || before < epoch);
        open_for_inline = open && (word & 1) != 0 && inline_buffer != nullptr;
    }
    const bool sent_inline = vote_all(group, open_for_inline);
    // Another way claims it anew. (Who has come meanwhile has been refused: it was the second caller.)
    if constexpr (Known)
        if (!sent_inline && rank == threads - 1 && epoch != 0 && static_cast<unsigned>(p) < partitions &&
            before < epoch)
            store_relaxed(partition_states(r) + p, before);
    char *to;
    if (sent_inline) {
        to = inline_buffer_of(inline_buffer, static_cast<unsigned>(p), bytes);
    } else {
        char *const landing = Known ? known.landing : load_pointer_weak(&r->landing);
        const uint64_t *const flags = Known ? nullptr : load_pointer_weak(&r->flags);
        if (!vote_all(group, open && landing != nullptr && in_words(landing, bytes) &&
                                 (Known || (flags != nullptr && !has_layouts(flags)))))
            return {};
        to = landing + static_cast<unsigned>(p) * bytes;
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned k = 0; k < ahead; ++k) {
        const unsigned i = rank + k * threads;
        if (i >= packets) continue;
        if (sent_inline)
            store_packet(to, i, epoch, payload[k]);
        else
            store_word(to + i * packet_payload, payload[k]);
    }
    return {epoch, sent_inline, false};
}

// All members have stored packets of a partition, which tell the receiver themselves. One member, of which `counts`
// is true, claims the partition after them, and counts it if it has the claim. Claimed: it has done so before.
template <mpix_device_call Call, bool Claimed = false, class Group>
MPIX_FN int conclude_inline(const Group &group, int p, mpix_prequest *r, uint64_t epoch, bool counts) {
    if constexpr (Claimed) {
        group.sync();  // all members have read the partition
        if (counts) count_ready<false, true>(r, epoch);
        return MPI_SUCCESS;
    }
    const bool mine = !counts || fetch_max_relaxed_gpu(partition_states(r) + p, epoch) < epoch;
    if (!vote_all(group, mine)) {  // a barrier: all members have read the partition
        if (counts) refuse<Call>(r, MPIX_CAUSE_READY, p);
        return MPI_ERR_ARG;
    }
    if (counts) count_ready<false, true>(r, epoch);
    return MPI_SUCCESS;
}

// All members have stored a partition: claims it, and `flags` tell the receiver. The claim is under way during the
// fence. Two callers of one partition, which is an error, may both come here. Only the caller that has the claim tells
// the receiver. The other may be about to offer the partition, and a receiver that has been told would neither read it
// nor answer.
template <mpix_device_call Call, class Group>
MPIX_FN int conclude_direct(const Group &group, int p, mpix_prequest *r, uint64_t epoch, uint64_t *flags) {
    const bool leader = group.thread_rank() == 0;
    bool mine = false;
    group.sync();  // the stores are behind the leader's fence; all members have read the partition
    if (leader) {
        const uint64_t before = fetch_max_relaxed_gpu(partition_states(r) + p, epoch);
        fence_acq_rel();  // bytes before flag; pairs: A1
        mine = before < epoch;
        if (mine)
            store_release_after_fence(&arrival_flags(flags)[p], epoch);  // pairs: A1
        else
            refuse<Call>(r, MPIX_CAUSE_READY, p);
    }
    if (!broadcast_bool(group, mine)) return MPI_ERR_ARG;
    if (leader) count_ready<false>(r, epoch);
    return MPI_SUCCESS;
}

// All members have stored a partition: tells the receiver, and counts. `known` and `rank` are used only if Known. (Who asks for
// what here is what takes nvcc 13.0 the fewest registers.)
template <bool Known, mpix_device_call Call, class Group>
MPIX_FN int conclude_stored(const Group &group, int p, mpix_prequest *r, const send_state &known, const stored &s,
                            [[maybe_unused]] unsigned rank, unsigned threads) {
    // By whoever tells, for say_all_ready; see look_at_kernel_clear_to_send.
    if constexpr (Known)
        if (!known.clear && rank == (s.sent_inline ? threads - 1 : 0)) store_relaxed(&r->both_started, s.epoch);
    if (s.sent_inline)
        return conclude_inline<Call, Known>(group, p, r, s.epoch,
                                            static_cast<unsigned>(group.thread_rank()) == threads - 1);
    return conclude_direct<Call>(group, p, r, s.epoch, Known ? known.flags : load_pointer_weak(&r->flags));
}

#if MPIX_ON_GPU
// Whether partition p was made ready in `epoch`, a handle's, or in a later one, of which the handle does not know. Keeps the
// error.
template <mpix_device_call Call, class Group>
MPIX_COLD_FN bool is_ready_already(const Group &group, int p, mpix_prequest *r, uint64_t epoch) {
    const bool ready = group.thread_rank() == 0 && static_cast<unsigned>(p) < static_cast<unsigned>(r->partitions) &&
                       load_relaxed(partition_states(r) + p) >= epoch;
    if (ready) refuse<Call>(r, MPIX_CAUSE_READY, p);
    return broadcast_bool(group, ready);
}

// Stores partition p, tells the receiver, and counts. Or does nothing, and returns what `otherwise` does. `handle` is
// the user's; `known` is used only if Known. Retries: tries again once clear-to-send is there; calls that do more than
// store a partition would need more registers for that.
template <bool Known, bool Retries, mpix_device_call Call, class Group, class Otherwise>
MPIX_FN int store(const Group &group, int p, const mpix_prequest *handle, const send_state &known,
                  const Otherwise &otherwise) {
    mpix_prequest *const r = request_of(const_cast<mpix_prequest *>(handle));
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    for (bool again = false;; again = true) {
        stored s;
        if (is_inline_capable(handle, threads))
            s = store_small<Known>(group, r, p, known);
        else if constexpr (Known)
            s = store_direct(group, r, p, known);
        else
            s = store_direct(group, r, p);
        if constexpr (is_lone_thread<Group>)
            if (s.offloads) return otherwise(true);
        if (s.epoch != 0) return conclude_stored<Known, Call>(group, p, r, known, s, rank, threads);
        if constexpr (Known)
            if (known.epoch != 0 && is_ready_already<Call>(group, p, r, known.epoch)) return MPI_ERR_ARG;
        // In a loop of kernel epochs, clear-to-send may have come after the sender's start, or be about to come.
        if (!Retries || again || !broadcast_bool(group, group.thread_rank() == 0 && await_clear_to_send(r)))
            return otherwise(false);
    }
}
#endif

}  // namespace mpix::detail

#endif  // MPIX_IMPL_SEND_STORE_CUH
