// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of a wait for a small partition that comes inline. The partition is one of the sender's, of whole
// words, and each member of the waiting group has few packets of it. The code is short, because between a packet's
// arrival and its answer every instruction counts.
#ifndef MPIX_IMPL_RECV_WAIT_INLINE_CUH
#define MPIX_IMPL_RECV_WAIT_INLINE_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/receive_state.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/inline/gather.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/recv/await_offer.cuh>
#include <mpix/impl/recv/together.cuh>

#if MPIX_ON_GPU
namespace mpix::detail {

// Whether a member's packets are all of this epoch; if so, their payload. All loads are under way together; instead of
// a packet that it does not have, a member looks at the last one.
template <unsigned N>
MPIX_FN bool load_packets(const char *box, unsigned rank, unsigned threads, unsigned packets, uint64_t epoch,
                          uint64_t (&payload)[N]) {
    uint64_t low[N], high[N];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned n = 0; n < N; ++n) {
        const unsigned i = rank + n * threads;
        load_relaxed_pair(reinterpret_cast<const uint64_t *>(box + (i < packets ? i : packets - 1) * packet_bytes),
                          &low[n], &high[n]);
    }
    bool there = true;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned n = 0; n < N; ++n) there &= is_packet_of(low[n], high[n], epoch, &payload[n]);
    return there;
}

// Waits for partition j, and takes it out unless it came with a flag. MPI_SUCCESS; keep_waiting: this way does not suit it,
// or it takes too long, and the caller asks the slow way; has_asked: the sender is expected to offer it, and the caller goes
// on with `question`. `known` is used only if Known; it is of the handle's request, and has an inline buffer.
template <bool Known, class Group>
MPIX_FN int wait_inline_fast(const Group &group, MPIX_Prequest handle, int j, const receive_state &known,
                             uint64_t timeout_ns, claimed_question &question) {
    mpix_prequest *const r = request_of(handle);
    const bool sole = waiters_of(handle) == waiters::sole;
    constexpr unsigned each = most_packets_per_thread, most_looks = 1024;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads()), at = static_cast<unsigned>(j);
    // A handle has all that is needed, so nothing has to be looked up before the first look.
    if (Known && (known.epoch == 0 || at >= known.senders)) return keep_waiting;
    const uint64_t bytes = Known ? known.partition_bytes : r->partition_bytes;
    if (packets_of(bytes) - 1 >= each * threads) return keep_waiting;
    const unsigned packets = static_cast<unsigned>(packets_of(bytes));
    // Within a warp all look, as they would wait for each other anyway.
    const bool last = rank == threads - 1, busy = is_busy(rank, threads, packets),
               looks = threads <= 32 || rank < packets;
    // All these loads are under way together. The route may come from the nearest cache: in later epochs it is final.
    uint64_t epoch = 0, *flags = nullptr, *told = nullptr;
    unsigned senders = 0;
    char *buffer = nullptr, *inline_buffer = nullptr;
    bool good = true, reads = false, asked = false, runs = true;
    if constexpr (Known) {
        senders = known.senders;
        buffer = known.buffer;
        inline_buffer = known.inline_buffer;
        flags = known.flags;
        told = known.told;
        epoch = known.epoch;
        reads = known.reads;
    } else if (busy) {
        const uint64_t head = r->head, peers = load_weak(&r->peer_partitions);
        senders = static_cast<unsigned>(r->partitions);
        buffer = r->buffer;
        inline_buffer = load_pointer_weak(&r->inline_buffer);
        flags = load_pointer_weak(&r->flags);
        told = load_pointer_weak(&r->told);
        reads = load_pointer_weak(&r->wanted) != nullptr;
        epoch = load_relaxed(&r->seen_epoch);
        good = (head == receive_head) & (at < senders) & (peers == senders) & (inline_buffer != nullptr) &
               (flags != nullptr) & (told != nullptr) & in_words(buffer, bytes) & (r->offsets == nullptr) &
               (epoch > 1) & (epoch >> 32 == 0);
    }
    if (!Known && !vote_all(group, good)) return keep_waiting;
    uint64_t payload[each] = {}, before = 0, *const taken = busy ? taken_of(flags, senders) + at : nullptr;
    sight seen = sight::flag;
    if (busy) {
        // Under way together with the first look, and with the claim. As in await_together: threads that find the same
        // epoch again have all read the same.
        const uint64_t again = Known || threads == 1 ? epoch : load_relaxed(&r->seen_epoch),
                       whole = Known ? 0 : load_relaxed(flags + senders);
        // By the last thread, whose branch waits for it. If that thread has no packet, it looks at none; so the group does
        // not wait for the claim and then for a packet.
        if (last) {
            // Whether it may ask, and an epoch that a handle knows is not over; under way with the claim.
            const uint64_t would_offer = reads ? load_relaxed(would_offer_of(flags, senders)) : 0,
                           flag = reads ? load_relaxed(flags + at) : 0,
                           running = Known && reads ? load_relaxed(&r->seen_epoch) : epoch;
            before = fetch_max_relaxed_gpu(taken, 2 * epoch - 1);
            const bool expected = expects_offers(would_offer, epoch), has_time = has_time_to_read(threads, timeout_ns);
            asked = expected & has_time & (before < 2 * epoch - 2) & (flag < epoch) & (running == epoch) &
                    (again == epoch) & (whole < epoch);
            if (asked) store_relaxed(load_pointer_weak(&r->wanted) + at, epoch);
        }
        const char *const box = inline_buffer_of(inline_buffer, at, bytes);
        const auto look_on = [&](const auto &look) {
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
            for (unsigned number = 1;; ++number) {
                // Under way together with the packets.
                const uint64_t flag = load_relaxed(flags + at),
                               offer = reads ? load_relaxed(rts_of(flags, senders) + at) : 0;
                const bool there = look();
                if (number == 1 && ((again != epoch) | (whole >= epoch))) return sight::neither;
                if (flag >= epoch) return sight::flag;  // also of what was in the packets and has been taken
                if (there) return sight::packets;
                if (offer == epoch) return sight::offer;
                if (number == most_looks) return sight::neither;
            }
        };
        seen = !looks ? sight::packets
               : packets <= threads
                   ? look_on([&] { return load_packet(box, rank < packets ? rank : packets - 1, epoch, &payload[0]); })
                   : look_on([&] { return load_packets(box, rank, threads, packets, epoch, payload); });
        runs = (again == epoch) & (whole < epoch);
        // Whoever has asked has to answer, whatever has come: a second caller of pready, which is an error, may have stored
        // packets before it was refused.
        good = (seen == sight::packets) & runs & (before < 2 * epoch - 1) & !asked;
        if (last && before == 2 * epoch - 2) fence_acquire(taken);  // see has_claimed; pairs: A5
    }
    if (vote_all(group, good)) {
        // As in inline_buffer_of, `buffer` may be null here.
        char *const to = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(buffer) + uint64_t{at} * bytes +
                                                  rank * packet_payload);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (unsigned n = 0; n < each; ++n)
            if (rank + n * threads < packets) store_word(to + n * threads * packet_payload, payload[n]);
        group.sync();
        // By the last thread, which has the least to do next.
        if (last) tell_taken(flags + at, told + at, epoch, sole);
        return MPI_SUCCESS;
    }
    const sight leaders = seen;
    if (!looks) seen = sight::flag;  // as far as it is concerned; the leader always looks
    // Pairs with conclude_direct, count_share and tell_taken; the barrier hands it on to all members.
    if (busy && seen == sight::flag) fence_acquire(flags + at);  // pairs: A1, A3
    // Nobody needs the claim any more. Who has asked answers, as in wait_for_offer.
    if (vote_all(group, seen == sight::flag)) {
        if (asked) answer_flagged(r, at, epoch);
        return MPI_SUCCESS;
    }
    if (!vote_all(group, !asked)) {
        question = {epoch, leaders, asked, runs};
        return has_asked;
    }
    // For another group to take.
    if (last && before < 2 * epoch - 1) cas_acq_rel_gpu(taken, 2 * epoch - 1, 2 * epoch - 2);  // pairs: A5
    return keep_waiting;
}

}  // namespace mpix::detail
#endif

#endif  // MPIX_IMPL_RECV_WAIT_INLINE_CUH
