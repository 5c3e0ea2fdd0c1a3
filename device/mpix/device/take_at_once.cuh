// SPDX-License-Identifier: BSD-3-Clause
//
// Small partitions of a receive that come by the mailbox, as they mostly do: each is one of the sender's, of whole words, and each
// member of the group that waits has two lines of it at most. Short, because between a line's arrival and its answer every
// instruction counts.
#ifndef MPIX_DEVICE_TAKE_AT_ONCE_CUH
#define MPIX_DEVICE_TAKE_AT_ONCE_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/device/group.cuh>
#include <mpix/device/mailbox.cuh>
#include <mpix/device/payload.cuh>

namespace mpix::detail {

// Wait for partition j and take it out; false: that is not for this way, or it takes too long, or the partition came another way, and
// whoever asks anew finds out.
template <class Group>
MPIX_FN bool take_at_once(const Group &group, mpix_prequest *r, int j, bool sole) {
    constexpr unsigned each = 2, most_looks = 1024, looks_between = 16;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads()), at = static_cast<unsigned>(j);
    const uint64_t bytes = r->partition_bytes;
    const unsigned lines = static_cast<unsigned>(lines_of(bytes));
    const bool leader = rank == 0, teller = rank == threads - 1, busy = is_busy(rank, threads, lines);
    // All that is needed first, on its way together; the route from the nearest cache, for in later epochs it is final.
    uint64_t epoch = 0, *flags = nullptr, *told = nullptr;
    unsigned senders = 0;
    spread all{nullptr, nullptr};
    char *mailbox = nullptr;
    bool good = true;
    if (busy) {
        const uint64_t head = r->head, peers = glance(&r->peer_partitions);
        senders = static_cast<unsigned>(r->partitions);
        all = {r->buffer, r->places};
        mailbox = glance_pointer(&r->mailbox);
        flags = glance_pointer(&r->flags);
        told = glance_pointer(&r->told);
        epoch = peek(&r->seen_epoch);
        good = (head == receive_head) & (at < senders) & (peers == senders) & (mailbox != nullptr) &
               (flags != nullptr) & all.in_words(bytes) & (lines <= each * threads) & (epoch > 1) & (epoch >> 32 == 0);
    }
    if (!agree_all(group, good)) return false;
    const unsigned some = rank >= lines ? 0 : rank + threads < lines ? 2 : 1;
    uint64_t payload[each] = {}, before = 0, *const taken = taken_of(flags, senders) + at;
    if (busy) {
        // Under way together with the first look: as in await_together, whoever finds the same epoch again has read what all have;
        // and the leader's claim.
        const uint64_t again = threads == 1 ? epoch : peek(&r->seen_epoch), whole = peek(flags + senders);
        if (leader) before = raise_gpu(taken, 2 * epoch - 1);
        const char *const box = mailbox + (uint64_t{at} * lines + rank) * line_bytes;
        bool there = true;
        for (unsigned looks = 1;; ++looks) {
            there = true;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (unsigned n = 0; n < each; ++n)
                if (n < some) there &= load_line(box, n * threads, epoch, &payload[n]);
            if (there || (looks == 1 && ((again != epoch) | (whole >= epoch)))) break;
            if (looks % looks_between == 0 && (looks == most_looks || peek(flags + at) >= epoch)) break;
        }
        good = there & (again == epoch) & (whole < epoch) & (before < 2 * epoch - 1);
        if (leader && before == 2 * epoch - 2) acquire_peeked(taken);  // see has_claimed
    }
    if (agree_all(group, good)) {
        const spread to = spread_of(all.memory, all.places, uint64_t{at} * bytes);
        if (some > 0) store_word(to.word(rank * line_payload), payload[0]);
        if (some > 1) store_word(to.word((rank + threads) * line_payload), payload[1]);
        group.sync();
        // By the last of them, who has the least to do next.
        if (teller) tell_taken(flags + at, told + at, epoch, sole);
        return true;
    }
    if (leader && before < 2 * epoch - 1) claim_gpu(taken, 2 * epoch - 1, 2 * epoch - 2);
    return false;
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_TAKE_AT_ONCE_CUH
