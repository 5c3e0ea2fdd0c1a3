// SPDX-License-Identifier: BSD-3-Clause
//
// Pready by a work queue: posts a partition's prebuilt entries, and after the last partition the end of the epoch. It
// uses few registers, since every kernel that calls Pready has them. Neighbouring partitions of a range are posted with
// fewer entries by post_range (work_queue/queue.cuh), which takes more registers.
#ifndef MPIX_IMPL_WORK_QUEUE_POST_CUH
#define MPIX_IMPL_WORK_QUEUE_POST_CUH

#include <mpix/detail/abi.h>
#include <mpix/impl/epoch/slot_ring.cuh>
#include <mpix/impl/work_queue/queue.cuh>

namespace mpix::detail {

// A GPU's group stages at most this many bytes per thread; more goes faster by the engine.
constexpr uint64_t most_staged_per_thread = 512;

// Whether this group may post a partition. Ask after clear-to-send (see mpix_prequest).
MPIX_FN bool may_post(const mpix_prequest *r, bool packs, uint64_t threads) {
    const mpix_posting *const ways = load_pointer(&r->postings);
    if (ways == nullptr || (ways->gaps != 0 && !packs)) return false;
#if MPIX_ON_GPU
    return ways->staging == nullptr || r->partition_bytes <= threads * most_staged_per_thread;
#else
    (void)threads;
    return true;
#endif
}

// Patches a prebuilt entry of one flag in the queue: bytes 36 to 43 are the epoch.
MPIX_FN void put_flag(mpix_work_queue *q, uint64_t index, uint64_t epoch) {
    char *const slot = slot_of(q, index);
    store_word(slot + 36, static_cast<uint32_t>(epoch));
    store_word(slot + 40, static_cast<uint32_t>(epoch >> 32));
}

MPIX_FN const mpix_posting *posting_of(const mpix_prequest *r, const mpix_posting *ways, uint64_t epoch) {
    return ways + slot_of(epoch, load_relaxed(&r->slots));
}

// Posts prebuilt entries, the last `flags` of which are one flag each, as one posting. Returns the index after them; 0:
// nothing was posted, since the queue is full or broken.
MPIX_COLD_FN uint64_t post_prebuilt(mpix_work_queue *q, const wqe *prebuilt, uint32_t blocks, uint32_t flags,
                                    uint64_t epoch) {
    uint64_t first = 0;
    if (reserve(q, blocks, &first) != room::reserved) return 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (uint32_t b = 0; b < blocks; ++b) {
        put_prebuilt(q, first + b, prebuilt + b);
        if (b + flags >= blocks) put_flag(q, first + b, epoch);
    }
    publish_blocks(q, first, blocks);
    return first + blocks;
}

// One thread, which has the group's stores to the payload. False: nothing was posted.
MPIX_FN bool post_partition(mpix_prequest *r, const mpix_posting *ways, int p, uint64_t epoch) {
    const mpix_posting *const way = posting_of(r, ways, epoch);
    const uint64_t end =
        post_prebuilt(way->queue, partition_blocks(way, static_cast<uint64_t>(p)), way->payload_blocks + 1, 1, epoch);
    if (end != 0) fetch_max_relaxed_gpu(&r->posted, end);
    return end != 0;
}

// All partitions are ready. `whole`: all of them were posted; then the end is posted, too, if there is room. The host
// is told how far the queue has to come; the caller orders that before all_ready. The counter of readied partitions
// chains all posters to this thread.
MPIX_FN void end_posting(mpix_prequest *r, uint64_t epoch, bool whole) {
    if (whole) {
        const mpix_posting *const way = posting_of(r, load_pointer(&r->postings), epoch);
        const uint64_t end = post_prebuilt(way->queue, partition_blocks(way, way->partitions), 2, 2, epoch);
        if (end != 0) {
            fetch_max_relaxed_gpu(&r->posted, end);
            store_relaxed(&r->words->ended, epoch);
        }
    }
    store_relaxed(&r->words->posted, load_relaxed(&r->posted));
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_WORK_QUEUE_POST_CUH
