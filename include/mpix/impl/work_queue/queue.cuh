// SPDX-License-Identifier: BSD-3-Clause
//
// Posting to a send queue from many threads at once, and reaping its completions.
//
//   reserve   slots, or none if the queue is full: nothing here waits for room, the caller defers
//   fill      the slots by copies of prebuilt entries, patched with index and epoch
//   publish   in order, without waiting for slower predecessors: a posting is marked as filled, and the call counted.
//             Whoever counts from zero takes charge: hands over all that is filled without a gap, rings once, and
//             leaves only if nobody has counted meanwhile. A predecessor that is not filled yet ends the gapless part;
//             it will count as well, and then it, or who is in charge, hands over what stood behind it. So every
//             marked posting is handed over by somebody whose call comes no earlier than its own mark, no doorbell is
//             lost, and nobody waits. One thread at a time writes the doorbell record and rings.
//   poll      one thread at a time, of the GPU or of the host; others go on with what it finds
#ifndef MPIX_IMPL_WORK_QUEUE_QUEUE_CUH
#define MPIX_IMPL_WORK_QUEUE_QUEUE_CUH

#include <mpix/detail/work_queue.h>
#include <mpix/impl/group/words.cuh>

// A test on the host may hold a thread up between two steps.
#ifndef MPIX_ON_POST_STEP
#define MPIX_ON_POST_STEP() static_cast<void>(0)
#endif

namespace mpix::detail {

MPIX_FN uint64_t queue_blocks(const mpix_work_queue *q) { return uint64_t{1} << q->rings.log_sq; }

// Blocks below the result are completed: they may be reserved again, and the payload behind them belongs to the caller
// again. Pairs with store_release in poll_queue.
MPIX_FN uint64_t queue_completed(const mpix_work_queue *q) { return load_acquire(&q->completed); }  // pairs: Q6

// ---- reserve -------------------------------------------------------------------------------------------------------

enum class room { reserved, full, broken };

// Reserves `count` blocks in a row, at most queue_blocks(q), from *first on. What is reserved has to be filled and
// published.
MPIX_FN room reserve_now(mpix_work_queue *q, uint64_t count, uint64_t *first) {
    if (load_relaxed(&q->error) != 0) return room::broken;
    for (uint64_t head = load_relaxed(&q->head);; head = load_relaxed(&q->head)) {
        // Our stores to the slots come after the NIC's fetch of their old contents. An old value only makes the queue
        // look fuller; a newer head than this one makes the exchange fail.
        const uint64_t completed = queue_completed(q);
        if (head + count - completed > queue_blocks(q)) {
            if (head == load_relaxed(&q->head)) return room::full;
        } else if (cas_relaxed_gpu(&q->head, head, head + count)) {
            *first = head;
            return room::reserved;
        }
    }
}

// ---- publish -------------------------------------------------------------------------------------------------------

// The thread in charge hands over what is filled without a gap.
MPIX_FN void hand_over(mpix_work_queue *q) {
    const uint64_t mask = queue_blocks(q) - 1, before = q->ready;
    uint64_t ready = before;
    for (;;) {
        // The entries of that posting, and the payload, are ours to hand over. Pairs with store_release_after_fence in
        // publish_blocks. A mark of an earlier lap is no higher than where we stand.
        const uint64_t end = load_acquire_gpu(&q->filled[ready & mask]);  // pairs: Q1
        if (end <= ready) break;
        ready = end;
    }
    if (ready == before) return;
    q->ready = ready;
    MPIX_ON_POST_STEP();
    // All entries and their payload come before the record. Pairs with the NIC's fetch.
    store_release_record(q->rings.sq_record, to_be32(static_cast<uint32_t>(ready & 0xffff)).raw);  // pairs: Q3
    MPIX_ON_POST_STEP();
    // The form with the next index, which needs no look at the last entry: index << 8, queue pair << 8.
    if (q->rings.doorbell != nullptr)
        // pairs: Q4
        store_release_mmio(q->rings.doorbell, static_cast<uint64_t>(to_be32(q->rings.qpn << 8).raw) << 32 |
                                                  to_be32(static_cast<uint32_t>(ready & 0xffff) << 8).raw);
}

// Blocks [first, first + count), reserved together, are filled.
MPIX_FN void publish_blocks(mpix_work_queue *q, uint64_t first, uint64_t count) {
    // Each poster releases its own entries and payload to the system, since another thread hands them over. Pairs with
    // load_acquire_gpu in hand_over, which may see the mark before the call is counted.
    fence_acq_rel();                                                                      // pairs: Q1
    store_release_after_fence(&q->filled[first & (queue_blocks(q) - 1)], first + count);  // pairs: Q1
    MPIX_ON_POST_STEP();
    // Chained with the thread in charge: it sees our mark if we count after it, and we see its `ready` if it has left.
    if (fetch_add_acq_rel_gpu(&q->publishing) != 0) return;  // pairs: Q2
    uint64_t counted = 1;
    do {
        // A pass over what was counted up to here. This ends: each further pass is for another thread's finished
        // posting.
        hand_over(q);
        MPIX_ON_POST_STEP();
        // Leaves, with `ready` for the next thread, unless another has counted meanwhile: that one's mark comes with
        // its count.
    } while (!compare_exchange_acq_rel_gpu(&q->publishing, &counted, 0));  // pairs: Q2
}

// ---- poll ----------------------------------------------------------------------------------------------------------

// The index that a completion's 16 bits mean, given that it is not below `completed`.
MPIX_FN uint64_t widen_index(uint16_t counter, uint64_t completed) {
    return completed + ((counter - completed) & 0xffff);
}

MPIX_COLD_FN uint64_t error_of(const cqe *entry, uint64_t index) {
    return queue_error(entry->syndrome, entry->vendor_syndrome, index);
}

#ifdef __CUDA_ARCH__
constexpr mpix_poller own_side = MPIX_POLLER_GPU;
#else
constexpr mpix_poller own_side = MPIX_POLLER_HOST;
#endif

MPIX_FN void end_polling(mpix_work_queue *q, int side) {
    store_release(&q->busy[side], 0);  // `consumed` for the other side; pairs with test_flag_seq_cst; pairs: Q9
    MPIX_ON_POST_STEP();
    store_release_gpu(&q->polling[side], 0);  // and for ours; pairs with cas_acq_rel_gpu; pairs: Q8
}

// One thread of one side at a time. If both sides come at once, it may be neither; both come again.
MPIX_FN bool begin_polling(mpix_work_queue *q, int side) {
    // First the other threads of our side, since the flags are made for two. Takes over from the thread before; pairs
    // with store_release_gpu in end_polling.
    if (load_relaxed(&q->polling[side]) != 0 || !cas_acq_rel_gpu(&q->polling[side], 0, 1)) return false;  // pairs: Q8
    set_flag_seq_cst(&q->busy[side]);                                                                     // pairs: Q9
    MPIX_ON_POST_STEP();
    // The other side is not polling, and `consumed` is as it left it. Pairs with store_release in end_polling.
    if (!test_flag_seq_cst(&q->busy[1 - side])) return true;  // pairs: Q9
    end_polling(q, side);                                     // hands on what we took over
    return false;
}

// Takes in the completions that are there. Returns how many blocks they complete; 0 also if another thread is polling.
MPIX_FN uint64_t poll_queue(mpix_work_queue *q, int side = own_side) {
    if (!begin_polling(q, side)) return 0;
    const uint64_t entries = uint64_t{1} << q->rings.log_cq, start = q->consumed, before = load_relaxed(&q->completed);
    uint64_t consumed = start, completed = before;
    // Of a good entry one access, which is a GPU's way to the host's memory, and one order for all of them.
    for (; consumed - start < entries; ++consumed) {
        const cqe *const entry = &q->rings.cq[consumed & (entries - 1)];
        const uint64_t tail = load_relaxed(cqe_tail(entry));
        const uint32_t word = last_word_of(tail);
        if (!cqe_valid(word, consumed, q->rings.log_cq)) break;
        const uint64_t index = widen_index(cqe_counter(word), completed);
        const bool ours = qpn_of(tail) == q->rings.qpn;
        if (ours && cqe_kind(word) == cqe_requester && index < load_relaxed(&q->head)) {
            completed = index + 1;
            continue;
        }
        // The rest of the entry can be read, and `head` is at least as new. Pairs with the NIC.
        fence_acquire(cqe_tail(entry));  // pairs: Q5
        uint64_t error = 0;
        // An entry for a block that is not under way is ignored.
        const bool known = ours && index < load_relaxed(&q->head);
        if (known && cqe_kind(word) == cqe_requester) {
            completed = index + 1;
        } else if (known && cqe_kind(word) == cqe_requester_error && entry->syndrome != syndrome_none) {
            completed = index + 1;
            error = error_of(entry, index);
        } else {
            error = queue_error(syndrome_strange_completion, 0, index);
        }
        if (error != 0 && load_relaxed(&q->error) == 0) {  // the first error is the cause, the others follow from it
            store_relaxed(&q->error, error);
            if (q->report != nullptr) store_relaxed(&q->report->error, error);
        }
    }
    if (consumed != start) {
        // The NIC is done with the entries that these complete; it wrote the last completion after the others.
        fence_acquire(cqe_tail(&q->rings.cq[(consumed - 1) & (entries - 1)]));  // pairs: Q5
        // Not ordered: this entry of the ring is written again only for a block that is reserved after `completed` has
        // passed it.
        store_relaxed(q->rings.cq_record, to_be32(static_cast<uint32_t>(consumed & 0xffffff)).raw);
        q->consumed = consumed;
    }
    if (completed != before) {
        MPIX_ON_POST_STEP();
        // pairs: Q6
        store_release(&q->completed, completed);  // hands on what was acquired above; pairs with queue_completed
        // An error is visible before the completion of what failed. Pairs with load_acquire() on the host.
        if (q->report != nullptr) store_release(&q->report->completed, completed);  // pairs: Q7
    }
    end_polling(q, side);
    return completed - before;
}

// As reserve_now; a full queue is polled once.
MPIX_FN room reserve(mpix_work_queue *q, uint64_t count, uint64_t *first) {
    room r = reserve_now(q, count, first);
    if (r == room::full) {
        poll_queue(q);
        r = reserve_now(q, count, first);
    }
    return r;
}

// ---- fill ----------------------------------------------------------------------------------------------------------

MPIX_FN char *slot_of(mpix_work_queue *q, uint64_t index) {
    return reinterpret_cast<char *>(&q->rings.sq[index & (queue_blocks(q) - 1)]);
}

// Bytes 1 and 2 of an entry are its index.
MPIX_FN block16 head_at(const wqe *prebuilt, uint64_t index) {
    block16 head = load_word<block16>(reinterpret_cast<const char *>(prebuilt));
    head.low = (head.low & ~uint64_t{0xffff00}) | static_cast<uint64_t>(to_be16(static_cast<uint16_t>(index)).raw) << 8;
    return head;
}

// Writes a prebuilt entry with its index, 16 bytes at a time.
MPIX_FN void put_prebuilt(mpix_work_queue *q, uint64_t index, const wqe *prebuilt) {
    char *const slot = slot_of(q, index);
    const char *const from = reinterpret_cast<const char *>(prebuilt);
    store_word(slot, head_at(prebuilt, index));
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int i = 16; i < 64; i += 16) store_word(slot + i, load_word<block16>(from + i));
}

MPIX_FN uint64_t advance(uint64_t big_endian, uint64_t by) { return to_be64(from_be(be64{big_endian}) + by).raw; }

// The same for an entry of payload, but with `bytes` bytes, beginning `at` bytes further on at both ends.
MPIX_FN void put_payload(mpix_work_queue *q, uint64_t index, const wqe *prebuilt, uint64_t at, uint32_t bytes) {
    char *const slot = slot_of(q, index);
    const char *const from = reinterpret_cast<const char *>(prebuilt);
    store_word(slot, head_at(prebuilt, index));
    block16 part = load_word<block16>(from + offsetof(wqe, remote));
    part.low = advance(part.low, at);
    store_word(slot + offsetof(wqe, remote), part);
    part = load_word<block16>(from + offsetof(wqe, data));
    part.low = (part.low & ~uint64_t{0xffffffff}) | to_be32(bytes).raw;
    part.high = advance(part.high, at);
    store_word(slot + offsetof(wqe, data), part);
    store_word(slot + 48, load_word<block16>(from + 48));
}
static_assert(offsetof(wqe_remote, address) == 0 && offsetof(wqe_data, bytes) == 0 && offsetof(wqe_data, address) == 8);

// `count` neighbouring flags, at most wqe_flags, beginning with that of the prebuilt entry.
MPIX_FN void put_flags(mpix_work_queue *q, uint64_t index, const wqe *prebuilt, uint64_t epoch, uint32_t count,
                       bool signalled) {
    char *const slot = slot_of(q, index);
    block16 head = head_at(prebuilt, index);
    // Byte 7: control and remote segment, then 4 bytes of count and the flags, in units of 16 bytes. Byte 11: fm_ce_se.
    head.low = (head.low & ~(uint64_t{0xff} << 56)) | uint64_t{2 + (4 + 8 * count + 15) / 16} << 56;
    head.high = (head.high & ~(uint64_t{0xff} << 24)) | uint64_t{signalled ? wqe_signalled : 0u} << 24;
    store_word(slot, head);
    store_word(slot + 16, load_word<block16>(reinterpret_cast<const char *>(prebuilt) + 16));
    // The flags begin at byte 36, and so each lies in two words.
    const uint64_t low = epoch << 32, high = epoch >> 32;
    store_word(slot + 32, block16{to_be32(8 * count | wqe_inline_bit).raw | low, high | (count > 1 ? low : 0)});
    store_word(slot + 48, block16{(count > 1 ? high : 0) | (count > 2 ? low : 0), count > 2 ? high : 0});
}
static_assert(offsetof(wqe_control, qpn_ds) == 4 && offsetof(wqe, inlined) == 32 && offsetof(wqe_inline, words) == 4);
static_assert(wqe_flags == 3);

// ---- post ----------------------------------------------------------------------------------------------------------

// How neighbouring partitions are posted, by Pready of a range (for one partition see post.cuh): their payload by as
// few WRITEs as its contiguity allows, then their flags, three to an inline WRITE. Inline, because then the epoch
// travels in the entry itself: no registered memory has to hold flag values, none has to stay unchanged until the queue
// completes, and the NIC fetches only once. Flags come after all of the range's payload, which is posted as one.
MPIX_FN uint64_t payload_writes(const mpix_posting *p, uint64_t partitions) {
    if (p->contiguous == 0) return partitions * p->payload_blocks;
    return (partitions * p->partition_bytes + wqe_most_bytes - 1) / wqe_most_bytes;
}
MPIX_FN uint64_t flag_writes(uint64_t partitions) { return (partitions + wqe_flags - 1) / wqe_flags; }

MPIX_FN const wqe *partition_blocks(const mpix_posting *p, uint64_t partition) {
    return p->blocks + partition * (p->payload_blocks + 1);
}

MPIX_FN void fill_range(const mpix_posting *p, uint64_t low, uint64_t count, uint64_t epoch, uint64_t index) {
    mpix_work_queue *const q = p->queue;
    if (p->contiguous == 0) {
        for (uint64_t i = low; i < low + count; ++i)
            for (uint32_t b = 0; b < p->payload_blocks; ++b) put_prebuilt(q, index++, partition_blocks(p, i) + b);
    } else {
        const uint64_t all = count * p->partition_bytes;
        for (uint64_t at = 0; at < all; at += wqe_most_bytes)
            put_payload(q, index++, partition_blocks(p, low), at,
                        static_cast<uint32_t>(all - at < wqe_most_bytes ? all - at : wqe_most_bytes));
    }
    for (uint64_t i = 0; i < count; i += wqe_flags) {
        const uint64_t left = count - i;
        // The last entry is signalled: its completion completes the whole posting.
        put_flags(q, index++, partition_blocks(p, low + i) + p->payload_blocks, epoch,
                  static_cast<uint32_t>(left < wqe_flags ? left : wqe_flags), left <= wqe_flags);
    }
}

struct posted {
    room what;
    uint32_t count;     // partitions that were posted, from the first on; 0 unless there was room
    uint64_t complete;  // queue_completed() from this value on: the NIC is done with those
};

// How many blocks are free. Only an estimate: other threads reserve and complete meanwhile.
MPIX_FN uint64_t free_blocks(const mpix_work_queue *q) {
    const uint64_t used = load_relaxed(&q->head) - load_relaxed(&q->completed);
    return used <= queue_blocks(q) ? queue_blocks(q) - used : 0;  // one of the two may be older than the other
}

// Posts partitions from `low` on, up to `count` of them, as one piece: all of them, or about as many as there is room
// for. One thread, which has its group's writes by a barrier. If none were posted, the caller defers the first (full)
// or reports it (broken).
MPIX_COLD_FN posted post_range(const mpix_posting *p, uint32_t low, uint32_t count, uint64_t epoch) {
    mpix_work_queue *const q = p->queue;
    for (;;) {
        uint64_t blocks = payload_writes(p, count) + flag_writes(count), first = 0;
        if (blocks > free_blocks(q)) poll_queue(q);
        for (const uint64_t free = free_blocks(q); blocks > free && count > 1;) {
            count = (count + 1) / 2;
            blocks = payload_writes(p, count) + flag_writes(count);
        }
        const room what = reserve(q, blocks, &first);
        if (what == room::full && count > 1) continue;  // another thread was quicker
        if (what != room::reserved) return {what, 0, 0};
        MPIX_ON_POST_STEP();
        fill_range(p, low, count, epoch, first);
        publish_blocks(q, first, blocks);
        return {what, count, first + blocks};
    }
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_WORK_QUEUE_QUEUE_CUH
