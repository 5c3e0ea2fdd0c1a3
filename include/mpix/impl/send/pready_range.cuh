// SPDX-License-Identifier: BSD-3-Clause
//
// Pready of a range. Neighbours that go by a work queue are posted together: all are marked ready, packed if the
// payload is staged, posted as few entries, and counted at once. Others are made ready partition by partition.
#ifndef MPIX_IMPL_SEND_PREADY_RANGE_CUH
#define MPIX_IMPL_SEND_PREADY_RANGE_CUH

#include <mpix/impl/send/pready.cuh>

namespace mpix::detail {

// The leader's number, 0 to `most`, for every member.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int broadcast_number(const Group &group, int leaders, int most) {
    unsigned number = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (unsigned bit = 1; bit <= static_cast<unsigned>(most); bit <<= 1)
        if (broadcast_bool(group, (static_cast<unsigned>(leaders) & bit) != 0)) number |= bit;
    return static_cast<int>(number);
}

// Marks as many of `low` to `high` ready as possible, up to the first that is refused, if they may be posted now.
// Returns how many, and the epoch; 0 also if they go another way. One thread.
template <class Mover>
MPIX_COLD_FN int claim_to_post(mpix_prequest *r, int low, int high, uint64_t threads, uint64_t *epoch) {
    // Most requests have no queue. A request that has one is checked again after clear-to-send.
    if (load_pointer(&r->postings) == nullptr) return 0;
    const admitted a = admit<Mover::call>(r, low);
#if MPIX_ON_GPU
    constexpr bool packs = Mover::gaps;
#else
    constexpr bool packs = true;
#endif
    // pairs: C5
    if (a.what != admission::later ||
        load_acquire_gpu(&r->seen_clear_to_send) < clear_to_send_needed(a.epoch, load_relaxed(&r->slots)) ||
        !may_post(r, packs, threads))
        return 0;
    *epoch = a.epoch;
    int p = low;
    while (p <= high && claim<Mover::alone, Mover::call>(r, p, a.epoch)) ++p;
    return p - low;
}

// Posts `count` marked neighbours as far as there is room, defers the others, and counts all. One thread, which has the
// group's stores to the payload.
MPIX_COLD_FN void post_neighbours(mpix_prequest *r, const mpix_posting *ways, int low, int count, uint64_t epoch) {
    const mpix_posting *const way = posting_of(r, ways, epoch);
    for (int done = 0; done < count;) {
        const posted those =
            post_range(way, static_cast<uint32_t>(low + done), static_cast<uint32_t>(count - done), epoch);
        if (those.count == 0) {  // the queue is full, or broken; the next one may find room again
            defer(r, low + done++, epoch);
            continue;
        }
        fetch_max_relaxed_gpu(&r->posted, those.complete);
        done += static_cast<int>(those.count);
    }
    // As count_ready() does for one.
    const uint64_t all = static_cast<uint64_t>(count);
    // pairs: D1
    if (fetch_add_acq_rel_gpu(&r->ready_count, all) + all == epoch * static_cast<uint64_t>(r->partitions))
        say_all_ready(r, epoch);
}

// How many of `low` to `high` were posted together, or deferred for lack of room; the one after them was refused. 0:
// they go another way, or the first one was refused.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_COLD_FN int ready_by_queue(const Group &group, int low, int high, mpix_prequest *r, const Mover &move) {
    uint64_t epoch = 0;
    int count = 0;
    if (group.thread_rank() == 0)
        count = claim_to_post<Mover>(r, low, high, static_cast<uint64_t>(group.num_threads()), &epoch);
    // A barrier: the leader has the members' writes to the partitions.
    if (!broadcast_bool(group, count != 0)) return 0;
    count = broadcast_number(group, count, high - low + 1);
    // `postings` was not null after clear-to-send, so it stays the same.
    const mpix_posting *const ways = load_pointer(&r->postings);
    if (ways->staging != nullptr) {
        const uint64_t bytes = r->partition_bytes, begin = static_cast<uint64_t>(low) * bytes;
        if (ways->gaps == 0) {  // all of them as one
            move(group, r, {r->buffer + begin, static_cast<uint64_t>(count) * bytes, nullptr, nullptr}, 0,
                 ways->staging + begin);
        } else {
            for (int p = low; p < low + count; ++p)
                move(group, r, {r->buffer, bytes, nullptr, reinterpret_cast<uint64_t *>(MPIX_FLAGS_WITH_LAYOUTS)}, p,
                     ways->staging);
        }
        group.sync();  // the leader's release covers all members' stores
    }
    if (group.thread_rank() == 0) post_neighbours(r, ways, low, count, epoch);
    return count;
}

// Not inlined: with both ways in one piece of code, a block would take more than 64 registers for each thread.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_COLD_FN int ready_alone(const Group &group, int p, MPIX_Prequest handle, const Mover &move) {
    return ready(group, p, handle, move);
}

struct range_end {
    int code;
    int partition;  // that an error speaks of
};

// `low` to `high` are partitions of the request. Stops at the first error.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, class Mover>
MPIX_FN range_end ready_range(const Group &group, int low, int high, MPIX_Prequest handle, const Mover &move) {
    int p = low;
    if (low < high) p += ready_by_queue(group, low, high, request_of(handle), move);
    if (p != low && p <= high) return {MPI_ERR_ARG, p};  // as claim() has said
    for (; p <= high; ++p)
        if (const int code = ready_alone(group, p, handle, move); code != MPI_SUCCESS) return {code, p};
    return {MPI_SUCCESS, high};
}

}  // namespace mpix::detail

namespace mpix {

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready_range(const Group &group, int low, int high, MPIX_Prequest preq) {
    if (preq == nullptr) return MPI_ERR_REQUEST;
    mpix_prequest *const r = detail::request_of(preq);
    if (low < 0 || high < low || high >= r->partitions) {
        const mpix_cause cause =
            detail::head_is(r->head, MPIX_KIND_SEND) ? MPIX_CAUSE_RANGE : detail::wrong_handle(r->head);
        if (group.thread_rank() == 0) detail::keep_error(r, MPIX_CALL_PREADY_RANGE, cause, low < 0 ? low : high);
        return detail::class_of(cause);
    }
    return detail::ready_range(group, low, high, preq, detail::group_mover<false, MPIX_CALL_PREADY_RANGE>{}).code;
}

}  // namespace mpix

MPIX_FN int MPI_Pready_range(int low, int high, MPIX_Prequest preq) {
    return mpix::pready_range(mpix::this_thread(), low, high, preq);
}

#endif  // MPIX_IMPL_SEND_PREADY_RANGE_CUH
