// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the partitions that were made ready, and tells the receiver and the hosts when an epoch has all. Hands over to
// the progress engine, or offers to the receiver, what the caller does not store.
#ifndef MPIX_IMPL_SEND_COUNT_CUH
#define MPIX_IMPL_SEND_COUNT_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/errors.cuh>
#include <mpix/impl/rget/rget.cuh>
#include <mpix/impl/send/admit.cuh>
#include <mpix/impl/work_queue/post.cuh>

namespace mpix::detail {

// The receiver's words.inline_buffer, from the address of its words.complete.
MPIX_FN uint64_t *inline_word_beside(uint64_t *complete) {
    return complete + (offsetof(mpix_words, inline_buffer) - offsetof(mpix_words, complete)) / sizeof(uint64_t);
}

// All partitions are ready. If all were moved at once, tells the receiver and the sender's host that the message is
// complete; otherwise the sender's progress engine does, after moving the rest. `last_inline`: by a count that was not
// acquired.
//
// Of an epoch that kernels of both sides have started, and of which nothing was left to the engine, only the sender's
// kernels are told. The receiver's look at the partitions' flags, and usually a kernel starts the next epoch. If not,
// the hosts' completion calls look at told_epoch and at the flags (look_for_quiet_end, look_on_device).
MPIX_COLD_FN void say_all_ready(mpix_prequest *r, uint64_t epoch, bool last_inline = false) {
#if MPIX_ON_GPU
    // Not acquired: these loads depend on the count, and who deferred a partition has noted it before counting it.
    const uint64_t both_started = load_relaxed(&r->both_started), deferred = load_relaxed(&r->defer_epoch);
    if (both_started == epoch && deferred != epoch) {
        if (last_inline)
            store_relaxed(&r->told_epoch, 2 * epoch);  // as the count; pairs: K1
        else
            store_release_gpu(&r->told_epoch, 2 * epoch);  // hands the counts on; pairs: K1
        return;
    }
#endif
    if (last_inline) fence_acq_rel();  // acquires the counts; pairs: D1
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
    // After these words: the next epoch's last caller writes them, too, and must come later.
    const bool by_engine = (!whole || load_pointer(&r->postings) != nullptr) && !head_null_peer(r->head);
    store_release_gpu(&r->told_epoch, 2 * epoch + by_engine);  // pairs: K1
}

// Counts one partition as readied. The counter chains all callers (see fetch_add_acq_rel_gpu), so the last one of the
// epoch may speak for all. If the host's Pready has a share in an epoch, no caller here is the last: the progress
// engine adds its share, and then updates the count.
//
// Inline: nobody has to be told of the bytes, since packets carry their own flags. That they have been read is known
// without a fence, which would wait until they are at the peer: a value that was stored has been loaded.
template <bool Alone, bool Inline = false>
MPIX_FN void count_ready(mpix_prequest *r, uint64_t epoch) {
    // pairs: D1
    const uint64_t readied = (Alone    ? fetch_add_single_writer(&r->ready_count)
                              : Inline ? fetch_add_relaxed_gpu(&r->ready_count)
                                       : fetch_add_acq_rel_gpu(&r->ready_count)) +
                             1;
    if (readied != epoch * static_cast<uint64_t>(r->partitions)) return;
    say_all_ready(r, epoch, Inline);
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
// Offers a partition to the group of the receiver that waits for it. That group reads it, or answers that it does not.
// The engine waits for the answer, and moves what was not read. Behind the caller's fence_acq_rel.
MPIX_FN void send_rts(mpix_prequest *r, int p, uint64_t epoch, uint64_t *flags) {
    // A group that finds the offer has the partition's bytes: pairs with fence_acquire in read_next. If none does, the
    // ring entry hands them to the engine, as in defer.
    store_release_after_fence(rts_of(arrival_flags(flags), static_cast<uint64_t>(r->partitions)) + p,
                              epoch);  // pairs: B1
    store_relaxed(would_offer_of(arrival_flags(flags), static_cast<uint64_t>(r->partitions)), epoch);
    enter_in_ring(r, epoch, static_cast<uint32_t>(p) | static_cast<uint32_t>(MPIX_RING_RTS));
}
#endif

}  // namespace mpix::detail

#endif  // MPIX_IMPL_SEND_COUNT_CUH
