// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions of a send to a peer GPU: each member of the group looks for itself whether they may be stored, while its share of the
// payload, or the first of it, is on its way, so that of a small one all of it costs one trip to memory.
#ifndef MPIX_IMPL_INLINE_STORE_CUH
#define MPIX_IMPL_INLINE_STORE_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/group/words.cuh>
#include <mpix/impl/inline/packet.cuh>

namespace mpix::detail {

// A send's flags, without what else the address says.
MPIX_FN uint64_t *arrival_flags(uint64_t *flags) {
    return reinterpret_cast<uint64_t *>(reinterpret_cast<uint64_t>(flags) & ~uint64_t{MPIX_FLAGS_WITH_LAYOUTS});
}
MPIX_FN bool has_layouts(const uint64_t *flags) {
    return (reinterpret_cast<uint64_t>(flags) & MPIX_FLAGS_WITH_LAYOUTS) != 0;
}

// The running epoch of a send, if it is known without the host that its partitions may be stored at the receiver; 0: it is
// not. From two words that were read together. While a partition is not ready, those who find its epoch running find the
// same. Not in the first epoch, as in admit.
//
// The word is not acquired: a GPU performs no store before the load that decides on it, and the receiver took what is
// overwritten before it gave the clear-to-send that the word stands for.
MPIX_FN uint64_t open_epoch(const mpix_prequest *r, uint64_t open_word, uint64_t readied) {
    const uint64_t epoch = open_word >> 1;
    return epoch >= 2 && readied < epoch * static_cast<uint64_t>(r->partitions) ? epoch : 0;
}

// Whether others take less for a partition than so many threads that store it: the copy engine, with the way there by the progress
// engine, or a group of the receiver's.
MPIX_FN bool for_others(uint64_t partition_bytes, uint64_t least, uint64_t threads) {
    return least != 0 && partition_bytes >= least * threads;
}

// Store partition p of a message without gaps at the receiver's, if it is aligned, nobody else's to move, and known without the
// host that its epoch runs; the epoch, as the leader has found it, or 0: nothing was done.
template <class Group>
MPIX_FN uint64_t store_direct_fast(const Group &group, const mpix_prequest *r, int p) {
    constexpr uint64_t ahead = 4, width = sizeof(block16);
    // All that is needed first, on its way together.
    const uint64_t bytes = r->partition_bytes, rank = static_cast<uint64_t>(group.thread_rank()),
                   threads = static_cast<uint64_t>(group.num_threads());
    char *const landing = load_pointer_weak(&r->landing), *const buffer = r->buffer;
    const uint64_t *const flags = load_pointer_weak(&r->flags);
    const uint64_t left_bytes = load_weak(&r->left_bytes);
    const unsigned partitions = static_cast<unsigned>(r->partitions);
    // The members' writes to the partition are everybody's. And whatever looks at the epoch is behind it: a member with nothing to
    // write may have come before the host's Start, of which another one knows, and would find the epoch before.
    group.sync();
    uint64_t word, readied;
    load_relaxed_pair(&r->open_word, &word, &readied);
    if (((reinterpret_cast<uint64_t>(buffer) | bytes) & (width - 1)) != 0) return 0;
    if (threads == 1 && for_others(bytes, left_bytes, threads)) return 0;  // no other member has to find the same
    const bool valid = static_cast<unsigned>(p) < partitions && landing != nullptr && flags != nullptr &&
                       !has_layouts(flags) && (reinterpret_cast<uint64_t>(landing) & (width - 1)) == 0 &&
                       !for_others(bytes, left_bytes, threads);
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
    if (!vote_all(group, valid && epoch != 0)) return 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (uint64_t k = 0; k < ahead; ++k) {
        const uint64_t at = (rank + k * threads) * width;
        if (at < bytes) store_word(to + at, first[k]);
    }
    if (const uint64_t done = ahead * threads * width; done < bytes)
        group_copy_blocks(group, to + done, from + done, bytes - done);
    return epoch;
}

// Store partition p of a message without gaps, of whole words of 8 bytes and few of them for each thread, as in store_direct_fast: as
// packets where the inline buffer is used, or as they are, where a fence and the flag are to follow.
template <class Group>
MPIX_FN uint64_t store_inline_fast(const Group &group, const mpix_prequest *r, int p, bool *sent_inline) {
    constexpr unsigned ahead = most_packets_per_thread;
    const uint64_t bytes = r->partition_bytes;
    const unsigned packets = static_cast<unsigned>(packets_of(bytes)),
                   rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    const bool busy = is_busy(rank, threads, packets);
    uint64_t epoch = 2, payload[ahead] = {};
    unsigned partitions = 0;
    char *buffer = nullptr, *inline_buffer = nullptr;
    bool whole = true;
    if (busy) {
        partitions = static_cast<unsigned>(r->partitions);
        buffer = r->buffer;
        whole = r->offsets == nullptr;
        inline_buffer = load_pointer_weak(&r->inline_buffer);
    }
    // Who has nothing to store, or to tell, takes the others' word for it.
    bool open = true, open_for_inline = true;
    group.sync();  // as in store_direct_fast
    if (busy) {
        uint64_t word, readied;
        load_relaxed_pair(&r->open_word, &word, &readied);
        const bool valid =
            static_cast<unsigned>(p) < partitions && whole && in_words(buffer, bytes) && packets - 1 < ahead * threads;
        const char *const from = buffer + (valid ? static_cast<unsigned>(p) * bytes : 0);
        // All on their way together; in place of what it has not a member loads the last word.
        const auto load = [&](unsigned i) {
            return load_word<uint64_t>(from + (i < packets ? i : packets - 1) * packet_payload);
        };
        if (valid && packets <= threads) payload[0] = load(rank);
        if (valid && packets > threads) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (unsigned k = 0; k < ahead; ++k) payload[k] = load(rank + k * threads);
        }
        epoch = open_epoch(r, word, readied);
        open = valid && epoch != 0;
        open_for_inline = open && (word & 1) != 0 && inline_buffer != nullptr;
    }
    *sent_inline = vote_all(group, open_for_inline);
    char *to;
    if (*sent_inline) {
        to = inline_buffer_of(inline_buffer, static_cast<unsigned>(p), bytes);
    } else {
        char *const landing = load_pointer_weak(&r->landing);
        const uint64_t *const flags = load_pointer_weak(&r->flags);
        if (!vote_all(group, open && landing != nullptr && in_words(landing, bytes) && flags != nullptr &&
                                 !has_layouts(flags)))
            return 0;
        to = landing + static_cast<unsigned>(p) * bytes;
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned k = 0; k < ahead; ++k) {
        const unsigned i = rank + k * threads;
        if (i >= packets) continue;
        if (*sent_inline)
            store_packet(to, i, epoch, payload[k]);
        else
            store_word(to + i * packet_payload, payload[k]);
    }
    return epoch;
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_INLINE_STORE_CUH
