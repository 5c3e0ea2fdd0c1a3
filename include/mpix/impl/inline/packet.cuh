// SPDX-License-Identifier: BSD-3-Clause
//
// Flag-in-data: how a small partition reaches a peer GPU without a fence. Each store carries data and the epoch, so a
// thread that finds the epoch has the data. The stores go to packets of an inline buffer at the receiver. The
// receiver's kernels (Parrived) copy them out to the user's buffer, and set the arrival flag, which would otherwise
// need a fence.
//
// One slot is enough. The receiver starts an epoch only when all of the epoch before is in its buffer, and its
// clear-to-send says that it has started.
#ifndef MPIX_IMPL_INLINE_PACKET_CUH
#define MPIX_IMPL_INLINE_PACKET_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/give_way.h>
#include <mpix/detail/order.h>

#include <mpix/impl/group/group.cuh>
#include <mpix/impl/group/words.cuh>
#include <mpix/impl/inline/gather.cuh>

namespace mpix::detail {

// The request that a handle stands for; and whether it may have an inline buffer.
MPIX_FN mpix_prequest *request_of(mpix_prequest *handle) {
#if MPIX_ON_GPU
    // Subtracted, not masked, so that the compiler still knows what kind of memory the kernel's argument points to.
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<char *>(handle) -
                                             (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_BITS));
#else
    return handle;  // host threads use none
#endif
}
MPIX_FN bool is_inline_capable(const mpix_prequest *handle) {
#if MPIX_ON_GPU
    return (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_INLINE) != 0;
#else
    (void)handle;
    return false;
#endif
}
// The same for a send, by a group of so many threads.
MPIX_FN bool is_inline_capable(const mpix_prequest *handle, unsigned threads) {
#if MPIX_ON_GPU
    const unsigned bits = static_cast<unsigned>(reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_BITS);
    return (bits & MPIX_HANDLE_INLINE) != 0 && threads >> (bits >> MPIX_HANDLE_THREADS_SHIFT) != 0;
#else
    (void)handle, (void)threads;
    return false;
#endif
}
// Which groups ask for the partitions of a receive with an inline buffer. any: several, of which one takes a partition
// out for all. sole: only one; the others hear of it later.
enum class waiters { no_inline_buffer, any, sole };
MPIX_FN waiters waiters_of(const mpix_prequest *handle) {
    if (!is_inline_capable(handle)) return waiters::no_inline_buffer;
    return (reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_SOLE) != 0 ? waiters::sole : waiters::any;
}
// The handle that the user gets; `least_threads` is at least 1.
inline mpix_prequest *inline_capable_send(mpix_prequest *r, uint64_t least_threads) {
    uint64_t logarithm = 0;
    while ((uint64_t{1} << logarithm) < least_threads) ++logarithm;
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<uint64_t>(r) | MPIX_HANDLE_INLINE |
                                             logarithm << MPIX_HANDLE_THREADS_SHIFT);
}
inline mpix_prequest *inline_capable_receive(mpix_prequest *r, bool sole_waiter, uint64_t least_threads) {
    constexpr uint64_t most = MPIX_HANDLE_BITS >> MPIX_HANDLE_TAKERS_SHIFT;  // no group has so many threads
    uint64_t logarithm = 0;
    while (logarithm < most && (uint64_t{1} << logarithm) < least_threads) ++logarithm;
    return reinterpret_cast<mpix_prequest *>(reinterpret_cast<uint64_t>(r) | MPIX_HANDLE_INLINE |
                                             (sole_waiter ? MPIX_HANDLE_SOLE : 0) |
                                             logarithm << MPIX_HANDLE_TAKERS_SHIFT);
}
// Whether a group of so many threads should try wait_inline_fast.
MPIX_FN bool waits_inline_fast(const mpix_prequest *handle, unsigned threads) {
    const unsigned bits = static_cast<unsigned>(reinterpret_cast<uint64_t>(handle) & MPIX_HANDLE_BITS);
    return is_inline_capable(handle) && threads >> (bits >> MPIX_HANDLE_TAKERS_SHIFT) != 0;
}

// A packet holds eight packed bytes, four and four, each beside the low half of the epoch: {data, epoch, data, epoch}.
// A 64-bit word is stored whole (PTX ISA, "Memory Consistency Model": vector accesses are modelled as accesses of their
// elements), and nothing more is needed.
constexpr uint64_t packet_bytes = 16;
MPIX_FN uint64_t packets_of(uint64_t bytes) { return (bytes + packet_payload - 1) / packet_payload; }

// If each thread had more packets than these to store, a group would be faster with a fence.
constexpr uint64_t most_packets_per_thread = 4;

MPIX_FN void store_packet(char *box, uint64_t packet, uint64_t epoch, uint64_t payload) {
    const uint64_t tag = epoch << 32;
    store_relaxed_pair(reinterpret_cast<uint64_t *>(box + packet * packet_bytes), tag | (payload & 0xffffffffu),
                       tag | (payload >> 32));
}
// Whether a packet's words, as read, are of this epoch; if so, its payload.
MPIX_FN bool is_packet_of(uint64_t low, uint64_t high, uint64_t epoch, uint64_t *payload) {
    *payload = (low & 0xffffffffu) | high << 32;
    return (static_cast<uint32_t>(low >> 32) == static_cast<uint32_t>(epoch)) &
           (static_cast<uint32_t>(high >> 32) == static_cast<uint32_t>(epoch));
}
// The same, reading the packet.
MPIX_FN bool load_packet(const char *box, uint64_t packet, uint64_t epoch, uint64_t *payload) {
    uint64_t low, high;
    load_relaxed_pair(reinterpret_cast<const uint64_t *>(box + packet * packet_bytes), &low, &high);
    return is_packet_of(low, high, epoch, payload);
}

// Whether a thread of the group takes part, for so many packets: threads that own a packet, the leader, and the last
// thread, which tells others that all is done. The rest take their result. Within one warp all take part, as they would
// wait for each other anyway.
MPIX_FN bool is_busy(unsigned rank, unsigned threads, unsigned packets) {
    return threads <= 32 || rank == 0 || rank == threads - 1 || rank < packets;
}

// Threads that take no part have not loaded `inline_buffer`, so it may be null, and C++ does not allow an offset to
// null.
MPIX_FN char *inline_buffer_of(char *inline_buffer, uint64_t partition, uint64_t bytes) {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(inline_buffer) +
                                    partition * packets_of(bytes) * packet_bytes);
}
MPIX_FN uint64_t least_inline_threads(uint64_t bytes) {
    return (packets_of(bytes) + most_packets_per_thread - 1) / most_packets_per_thread;
}

// Stores this member's packets of a partition with gaps; the first one begins at packed byte `at`.
MPIX_COLD_FN void gather_packets(const packed_view from, char *box, uint64_t epoch, unsigned at, unsigned bytes,
                                 unsigned threads) {
    const unsigned halved = static_cast<unsigned>(halvings(from.offsets));
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (; at < bytes; at += threads * unsigned{packet_payload}) {
        const unsigned left = bytes - at < packet_payload ? bytes - at : unsigned{packet_payload};
        store_packet(box, at / packet_payload, epoch, gather_pieces(from.memory, from.place(at), halved, left));
    }
}
// Stores this member's packets of partition p, in the epoch that open_word says. At any alignment; with Gaps, gathered
// from the pieces.
template <bool Gaps>
MPIX_COLD_FN void store_packets(const mpix_prequest *r, int p, unsigned rank, unsigned threads) {
    const uint64_t epoch = load_relaxed(&r->open_word) >> 1, bytes = r->partition_bytes, packets = packets_of(bytes);
    const packed_view s = packed_view_of(r->buffer, r->offsets, static_cast<uint64_t>(p) * bytes);
    char *const box = inline_buffer_of(load_pointer(&r->inline_buffer), static_cast<uint64_t>(p), bytes);
    if constexpr (Gaps)
        if (s.offsets != nullptr)
            return gather_packets(s, box, epoch, rank * unsigned{packet_payload}, static_cast<unsigned>(bytes),
                                  threads);
    const char *const from = s.memory;
    const bool words = in_words(from, bytes);
    for (uint64_t i = rank; i < packets; i += threads)
        store_packet(
            box, i, epoch,
            words ? load_word<uint64_t>(from + i * packet_payload) : load_ragged(from, i * packet_payload, bytes));
}

// Whether partitions of a send may go inline in `epoch`, which has clear-to-send. One thread.
MPIX_FN bool may_send_inline(const mpix_prequest *r, uint64_t epoch) {
    return load_pointer(&r->inline_buffer) != nullptr && load_relaxed(&r->open_word) == 2 * epoch + 1;
}

// The words by which groups claim partitions of an inline buffer. They lie behind the flags, so that both are of the
// same match.
MPIX_FN uint64_t *taken_of(uint64_t *flags, uint64_t senders) { return flags + senders + 1; }

// What a group waits for: partitions of the sender, as the receiver sees them. The same for all members. Some members
// are 32 bits wide, since every kernel that waits pays for the registers.
struct awaited {
    unsigned first, count, senders;  // the sender's partitions: those, and all
    unsigned bytes;                  // of one of them; only with an inline buffer, or if they may be offered
    uint64_t epoch;
    uint64_t *flags;      // of all, then that of the whole message: MPIX_NEVER if nothing more comes
    char *inline_buffer;  // or null
    bool sole;            // see waiters
    uint64_t deadline;    // by now_ns; ~0: none

    // As mpix_prequest.taken, but of this match: that field may belong to another match by now, or be null.
    MPIX_FN uint64_t *taken() const { return taken_of(flags, senders); }
    MPIX_FN bool late() const { return deadline != ~uint64_t{0} && now_ns() >= deadline; }
    // The epoch is over, or the match was undone, so that no flag here will ever be set.
    MPIX_FN bool over(const mpix_prequest *r) const {
        return load_relaxed(&flags[senders]) == MPIX_NEVER || load_pointer(&r->flags) != flags || late();
    }
    MPIX_FN char *box(unsigned i) const { return inline_buffer_of(inline_buffer, i, bytes); }
    MPIX_FN unsigned packets() const { return static_cast<unsigned>(packets_of(bytes)); }
};

enum class inline_result { taken, flagged, missing };

// Copies out this member's packets of a partition as they come. It ends when the deadline has passed, or when the flag
// says that the partition came another way. Then none of its packets will come, and what the sender published with the
// flag is visible.
MPIX_FN inline_result take_packets(const mpix_prequest *r, const awaited &w, unsigned i, const packed_view &to,
                                   unsigned rank, unsigned threads) {
    const char *const box = w.box(i);
    const unsigned packets = w.packets();
    constexpr unsigned each = 2;
    for (unsigned k = rank; k < packets; k += each * threads) {
        uint64_t payload[each] = {};
        for (unsigned polls = 1;; ++polls) {
            const uint64_t flag = load_relaxed(&w.flags[i]);
            bool there = true;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
            for (unsigned n = 0; n < each; ++n)
                if (k + n * threads < packets) there &= load_packet(box, k + n * threads, w.epoch, &payload[n]);
            if (there) break;
            if (flag >= w.epoch) {
                fence_acquire(&w.flags[i]);  // pairs: A1
                return inline_result::flagged;
            }
            if (polls % 64 != 0) continue;
            if (w.over(r)) return inline_result::missing;
            give_way();
        }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (unsigned n = 0; n < each; ++n)
            if (k + n * threads < packets) store_payload(to, (k + n * threads) * packet_payload, w.bytes, payload[n]);
    }
    return inline_result::taken;
}
MPIX_FN bool packets_are_there(const awaited &w, unsigned i, unsigned rank, unsigned threads) {
    const char *const box = w.box(i);
    uint64_t payload;
    for (unsigned k = rank; k < w.packets(); k += threads)
        if (!load_packet(box, k, w.epoch, &payload)) return false;
    return true;
}

// Whether the caller, which found `before` where it raised taken[i] to its claim, has the claim. One thread, before a
// barrier.
MPIX_FN bool has_claimed(const awaited &w, unsigned i, uint64_t before) {
    // The claim was given back. What that group has copied comes before what this one copies. Pairs with
    // cas_acq_rel_gpu in take_inline.
    if (before == 2 * w.epoch - 2) fence_acquire(w.taken() + i);  // pairs: A5
    return before < 2 * w.epoch - 1;
}

// A partition is in the user's buffer, or where else it belongs. One thread, after a barrier of the group that has copied it.
MPIX_FN void tell_taken(uint64_t *flag, uint64_t *told, uint64_t epoch, bool sole) {
    // What all members stored comes before the flag. Pairs with reached_acquire in all_flagged, in other groups of this
    // GPU; the host starts work of the GPU only after it has seen `told`. If no other group waits, the members'
    // barriers are enough: whoever asks or reads later has synchronised with this group, and so sees the bytes. That
    // the host is told after them is an order of time.
    if (sole)
        store_relaxed(flag, epoch);
    else
        store_release_gpu(flag, epoch);  // pairs: A3
    store_relaxed(told, epoch);
}

// Copies partition i to the user's buffer, unless another group has claimed it. Returns whether it is there now.
// `once`: only if all of it is in the inline buffer; then a partition that another group has claimed is waited for.
// `claimed`: this group has the claim already.
template <class Group>
MPIX_FN bool take_inline(const Group &group, mpix_prequest *r, const awaited &w, unsigned i, bool once, bool claimed) {
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    if (once && !vote_all(group, packets_are_there(w, i, rank, threads))) return false;
    while (!claimed) {
        claimed = broadcast_bool(group,
                                 rank == 0 && has_claimed(w, i, fetch_max_relaxed_gpu(w.taken() + i, 2 * w.epoch - 1)));
        if (claimed) break;
        if (!once) return false;
        // All of it is in the inline buffer, so the group that has claimed it waits for nothing, and may have told its
        // own members already that the partition is there. A caller that comes after these must not be told that it is
        // missing.
        if (vote_all(group, reached_acquire(&w.flags[i], w.epoch))) return true;  // pairs: A1, A3
    }
    uint64_t *const told = load_pointer_weak(&r->told);  // read early, so that nobody waits for it
    const packed_view to = packed_view_of(r->buffer, r->offsets, uint64_t{i} * w.bytes);
    const inline_result mine = take_packets(r, w, i, to, rank, threads);
    if (vote_all(group, mine == inline_result::taken)) {
        // Done by the last thread: it has to wait for the stores, and the first threads have the most to do next.
        if (rank == threads - 1) tell_taken(&w.flags[i], told + i, w.epoch, w.sole);
        return true;
    }
    // A barrier: what the leader acquired, every member has.
    if (broadcast_bool(group, rank == 0 && mine == inline_result::flagged)) return true;
    // Gives the claim back for another group to take, and hands on what was copied (see has_claimed). Only if the word
    // is still this claim: the partition may have come by its flag just now, and another group may have claimed the
    // next epoch's.
    if (rank == 0) cas_acq_rel_gpu(w.taken() + i, 2 * w.epoch - 1, 2 * w.epoch - 2);  // pairs: A5
    return false;
}

// Whether all awaited partitions are in the user's buffer. The members look at the flags side by side, several times
// before the barrier, which takes as long as a look.
template <class Group>
MPIX_FN bool all_flagged(const Group &group, const awaited &w, unsigned looks) {
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    bool mine = true;
    for (unsigned n = rank; mine && n < w.count; n += threads) {
        unsigned left = looks;
        do mine = reached_acquire(&w.flags[w.first + n], w.epoch);  // pairs: A1, A3, B2
        while (!mine && --left != 0);
    }
    return vote_all(group, mine);
}

// Waits until all of them are there, and takes out of the inline buffer what no other group does. False: the wait ended
// before that. With an inline buffer, a partition here overlaps two of the sender's at most. Groups begin with
// different ones. `claimed`: this group has claimed the first.
template <class Group>
MPIX_FN bool await_all(const Group &group, mpix_prequest *r, const awaited &w, bool once, bool claimed) {
#ifdef __CUDA_ARCH__
    unsigned next = w.count == 1 ? 0 : blockIdx.x % w.count;
#else
    unsigned next = 0;
#endif
    const unsigned looks = w.inline_buffer == nullptr && !once ? 64 : 1;
    for (unsigned round = 1;; ++round) {
        if (w.inline_buffer != nullptr) {
            if (take_inline(group, r, w, w.first + next, once, claimed) && w.count == 1) return true;
            claimed = false;
            if (++next == w.count) next = 0;
        }
        if (all_flagged(group, w, looks)) return true;
        if (once && round >= w.count) return false;
        if (round % (looks > 1 ? 1 : 16) == 0 && broadcast_bool(group, group.thread_rank() == 0 && w.over(r)))
            return false;
        if (group.thread_rank() == 0) give_way();
    }
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_INLINE_PACKET_CUH
