// SPDX-License-Identifier: BSD-3-Clause
//
// The fast path of Pready to a peer GPU. Each member of the group finds out itself whether the partition may be stored,
// while the loads of its payload are under way. So a small partition costs one trip to memory.
#ifndef MPIX_IMPL_INLINE_STORE_CUH
#define MPIX_IMPL_INLINE_STORE_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/copy.cuh>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/group/words.cuh>
#include <mpix/impl/inline/packet.cuh>

namespace mpix::detail {

// A send's flags, without the bits in the low end of the address.
MPIX_FN uint64_t *arrival_flags(uint64_t *flags) {
    return reinterpret_cast<uint64_t *>(reinterpret_cast<uint64_t>(flags) & ~uint64_t{MPIX_FLAGS_WITH_LAYOUTS});
}
MPIX_FN bool has_layouts(const uint64_t *flags) {
    return (reinterpret_cast<uint64_t>(flags) & MPIX_FLAGS_WITH_LAYOUTS) != 0;
}

// The running epoch of a send, if the GPU can tell without the host that partitions may be stored at the receiver; else
// 0. It follows from two words that were read together. While a partition is not ready, all threads that find its epoch
// running find the same. Not in the first epoch: see admit.
//
// The word is not acquired. A GPU performs no store before the load on which it depends, and the receiver took out what
// is overwritten before it gave the clear-to-send that the word stands for.
MPIX_FN uint64_t open_epoch(const mpix_prequest *r, uint64_t open_word, uint64_t readied) {
    const uint64_t epoch = open_word >> 1;
    return epoch >= 2 && readied < epoch * static_cast<uint64_t>(r->partitions) ? epoch : 0;
}

// Whether others move a partition faster than so many threads store it: the copy engine, including the hand-over to the
// progress engine, or a group of the receiver.
MPIX_FN bool for_others(uint64_t partition_bytes, uint64_t least, uint64_t threads) {
    return least != 0 && partition_bytes >= least * threads;
}

// Stores partition p of a message without gaps at the receiver. Conditions: it is aligned, no other mover is better,
// and the GPU can tell without the host that its epoch is running. Returns the epoch, as the leader has found it, or 0:
// nothing was done.
template <class Group>
MPIX_FN uint64_t store_direct_fast(const Group &group, const mpix_prequest *r, int p) {
    constexpr uint64_t ahead = 4, width = sizeof(block16);
    // All these loads are under way together.
    const uint64_t bytes = r->partition_bytes, rank = static_cast<uint64_t>(group.thread_rank()),
                   threads = static_cast<uint64_t>(group.num_threads());
    char *const landing = load_pointer_weak(&r->landing), *const buffer = r->buffer;
    const uint64_t *const flags = load_pointer_weak(&r->flags);
    const uint64_t left_bytes = load_weak(&r->left_bytes);
    const unsigned partitions = static_cast<unsigned>(r->partitions);
    // After this barrier the members' writes to the partition are visible to all. The look at the epoch comes after it,
    // too: a member with nothing to write may have come before the host's Start, of which another member knows, and
    // would find the epoch before.
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

// As store_direct_fast, for a message without gaps that consists of whole 8-byte words, few for each thread. Stores
// packets if the inline buffer is in use; otherwise the words themselves, with a fence and the flag to follow.
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
    // Threads that neither store nor tell take the others' result.
    bool open = true, open_for_inline = true;
    group.sync();  // as in store_direct_fast
    if (busy) {
        uint64_t word, readied;
        load_relaxed_pair(&r->open_word, &word, &readied);
        const bool valid =
            static_cast<unsigned>(p) < partitions && whole && in_words(buffer, bytes) && packets - 1 < ahead * threads;
        const char *const from = buffer + (valid ? static_cast<unsigned>(p) * bytes : 0);
        // All loads are under way together; instead of a word that it does not have, a member loads the last one.
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
