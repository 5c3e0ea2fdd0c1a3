// SPDX-License-Identifier: BSD-3-Clause
//
// May a partition of a send be made ready, and may it be stored at the receiver now? Decided from the request's words,
// and from the host's where these do not say enough.
#ifndef MPIX_IMPL_SEND_ADMIT_CUH
#define MPIX_IMPL_SEND_ADMIT_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/errors.cuh>
#include <mpix/impl/epoch/host_epoch.cuh>
#include <mpix/impl/epoch/slot_ring.cuh>
#include <mpix/impl/rget/rget.cuh>

namespace mpix::detail {

MPIX_FN uint64_t *partition_states(mpix_prequest *r) { return reinterpret_cast<uint64_t *>(r + 1); }

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
MPIX_FN bool should_offload(uint64_t partition_bytes, uint64_t least, uint64_t threads) {
    return least != 0 && partition_bytes >= least * threads;
}

// Bytes for each thread from which on others may move a group's partition: `least` of should_offload.
MPIX_FN uint64_t offload_from(const mpix_prequest *r, uint64_t threads) {
    const uint64_t few = load_weak(&r->offload_bytes), many = load_weak(&r->copy_engine_bytes);
    return threads <= most_offering_threads ? few : many;
}
// Both in one number, for groups of any size.
MPIX_FN uint64_t offload_for_all(const mpix_prequest *r) {
    return load_weak(&r->offload_bytes) | load_weak(&r->copy_engine_bytes) << 32;
}
MPIX_FN uint64_t offload_from(uint64_t for_all, uint64_t threads) {
    return threads <= most_offering_threads ? static_cast<uint32_t>(for_all) : for_all >> 32;
}

enum class admission { refused, now, later, rts, nothing };

struct admitted {
    admission what;
    int code;  // of a refusal
    uint64_t epoch;
};

// Reads the host's words of a send, and notes for all what they say of its epoch. One thread.
MPIX_FN host_says ask_of_send(mpix_prequest *r) {
    return read_host(r, [&](const host_says &now) {
        const auto [epoch, active] = epoch_of(r, now.word);
        if (!active) return;
        fetch_max_relaxed_gpu(&r->seen_epoch, epoch);
#if MPIX_ON_GPU
        // Once the receiver's kernels use the inline buffer, they always do.
        if (now.clear_to_send() >= epoch && load_pointer(&r->landing) != nullptr)
            fetch_max_relaxed_gpu(
                &r->open_word,
                2 * epoch + (now.inline_buffer != 0 && load_pointer(&r->inline_buffer) != nullptr && epoch >> 32 == 0));
#else
        if (now.clear_to_send() >= clear_to_send_needed(epoch, load_relaxed(&r->slots)) && load_pointer(&r->landing) != nullptr)
            store_release_gpu(&r->open_word, 2 * epoch);  // hands the acquire on, see admit; pairs: C6
#endif
        store_release_gpu(&r->seen_clear_to_send, now.clear_to_send());  // hands the acquire on, see admit; pairs: C5
    });
}

#if MPIX_ON_GPU
// Where the receiver's kernels give clear-to-send, and what it opens.
struct kernel_route {
    const uint64_t *clear_to_send;
    const char *landing;
    bool inline_buffer;
};
MPIX_FN kernel_route kernel_route_of(const mpix_prequest *r) {
    return {load_pointer(&r->kernel_clear_to_send), load_pointer(&r->landing),
            load_pointer(&r->inline_buffer) != nullptr};
}

// Whether a kernel of the receiver has given clear-to-send for `epoch`, which a kernel of the sender has started. Notes
// it for the store core; seen_clear_to_send is the host's word alone, so that nobody has to wait for a release of it. One
// thread.
MPIX_FN bool look_at_kernel_clear_to_send(mpix_prequest *r, uint64_t epoch, const kernel_route &route) {
    if (route.clear_to_send == nullptr) return false;
    // Acquires what the receiver read before it started the epoch. pairs: K2
    const uint64_t given = load_acquire(route.clear_to_send);
    if (given >> 1 < epoch) return false;
    if (route.landing == nullptr) return true;
    store_relaxed(&r->both_started, epoch);
    fetch_max_relaxed_gpu(&r->open_word, 2 * epoch + ((given & 1) != 0 && epoch >> 32 == 0 && route.inline_buffer));
    return true;
}

// The same, waiting a moment: in a loop of kernel epochs the receiver is usually about to start this one, and handing
// over to the progress engine takes longer. Not once a partition of the epoch was handed over.
constexpr uint64_t clear_to_send_patience_ns = 8000;
MPIX_FN bool await_kernel_clear_to_send(mpix_prequest *r, uint64_t epoch, const kernel_route &route) {
    if (look_at_kernel_clear_to_send(r, epoch, route)) return true;
    // A receiver whose host starts the epochs will say so there.
    if (route.clear_to_send == nullptr || load_relaxed(&r->defer_epoch) == epoch ||
        (load_relaxed(route.clear_to_send) >> 1) + 1 < epoch)
        return false;
    for (const uint64_t since = now_ns(); now_ns() - since < clear_to_send_patience_ns;)
        if (look_at_kernel_clear_to_send(r, epoch, route)) return true;
    return false;
}
#endif

#if MPIX_ON_GPU
// The epoch of a send that a kernel has started, and not waited for; else 0.
MPIX_FN uint64_t kernel_epoch_of(const mpix_prequest *r) {
    // All under way together.
    const uint64_t epoch = load_relaxed(&r->started_epoch), seen = load_relaxed(&r->seen_epoch),
                   waited = load_relaxed(&r->waited_epoch);
    return epoch <= 1 || epoch != seen || waited >= epoch ? 0 : epoch;
}
// The same, if partition p is not ready yet and a kernel of the receiver has given clear-to-send. Waits a moment for
// that unless the caller has done so. One thread.
template <bool Waited>
MPIX_COLD_FN uint64_t open_kernel_epoch(mpix_prequest *r, int p) {
    const uint64_t epoch = kernel_epoch_of(r);
    if (epoch == 0 || load_relaxed(partition_states(r) + p) >= epoch) return 0;
    const kernel_route route = kernel_route_of(r);
    const bool given =
        Waited ? look_at_kernel_clear_to_send(r, epoch, route) : await_kernel_clear_to_send(r, epoch, route);
    return given ? epoch : 0;
}
// Waits a moment for clear-to-send of an epoch that kernels of both sides run, and notes it for the store core, in which
// the caller's group has found no open epoch. One thread.
MPIX_COLD_FN bool await_clear_to_send(mpix_prequest *r) {
    const kernel_route route = kernel_route_of(r);  // under way with the loads of the epoch
    const uint64_t epoch = kernel_epoch_of(r);
    return epoch != 0 && route.landing != nullptr && await_kernel_clear_to_send(r, epoch, route);
}
// Finds out, and notes for the store core, whether partitions of the running epoch may be stored at the receiver. One
// thread.
MPIX_COLD_FN void look_for_clear_to_send(mpix_prequest *r) {
    const uint64_t epoch = kernel_epoch_of(r);
    if (epoch == 0 || !await_kernel_clear_to_send(r, epoch, kernel_route_of(r))) ask_of_send(r);
}
#endif

// What to do with partition p, by the arguments and by clear-to-send of the receiver's kernels, or by the host's words.
// For Waited see open_kernel_epoch. One thread.
template <mpix_device_call Call, bool Waited>
MPIX_COLD_FN admitted admit_by_host(mpix_prequest *r, int p) {
    admitted a{admission::refused, MPI_SUCCESS, 0};
    const bool mine = head_is(r->head, MPIX_KIND_SEND);
    if (!mine || p < 0 || p >= r->partitions) {
        a.code = refuse<Call>(r, mine ? MPIX_CAUSE_INDEX : wrong_handle(r->head), p);
        return a;
    }
#if MPIX_ON_GPU
    a.epoch = open_kernel_epoch<Waited>(r, p);
    if (a.epoch != 0) {
        a.what = load_pointer(&r->landing) != nullptr ? admission::now : admission::later;
        return a;
    }
#endif
    const host_says says = ask_of_send(r);
    const auto [epoch, active] = epoch_of(r, says.word);
    a.epoch = epoch;
    if (!active || load_relaxed(partition_states(r) + p) == a.epoch) {
        a.code = refuse<Call>(r, active ? MPIX_CAUSE_READY : MPIX_CAUSE_INACTIVE, p);
        return a;
    }
    if (head_null_peer(r->head))
        a.what = admission::nothing;
    else if (says.clear_to_send() >= clear_to_send_needed(a.epoch, load_relaxed(&r->slots)) &&
             load_pointer(&r->landing) != nullptr)
        a.what = admission::now;
    else
        a.what = admission::later;
    return a;
}

// The same, usually without the host. Not in the first epoch: until the receiver has started, its request may be freed
// and the match undone, so the route has to be read after clear-to-send.
//
// `seen_epoch` may be old, since nobody tells the executor when the host starts an epoch. But the host can start
// another one only after all partitions of seen_epoch were readied, and the counters say whether they were. While they
// were not, seen_epoch is the running epoch; once they were, the host's word is read.
template <mpix_device_call Call, bool Waited = false>
MPIX_FN admitted admit(mpix_prequest *r, int p) {
#if !MPIX_ON_GPU
    // On the host, reading the words is cheap, so this path handles only what goes to the landing. It acquires as
    // below, and acquires the route, which a faulty peer may have undone since.
    // pairs: C6
    const uint64_t open = load_acquire_gpu(&r->open_word),
                   open_now = open_epoch(r, open, load_relaxed(&r->ready_count));
    if (r->head != send_head || static_cast<unsigned>(p) >= static_cast<unsigned>(r->partitions) || open_now == 0 ||
        load_pointer(&r->landing) == nullptr)
        return admit_by_host<Call, Waited>(r, p);
    return {admission::now, MPI_SUCCESS, open_now};
#else
    const uint64_t head = r->head;
    const int partitions = r->partitions;
    const uint64_t slots = load_relaxed(&r->slots);
    const char *const landing = load_pointer(&r->landing);
    const uint64_t readied = load_relaxed(&r->ready_count);
    const uint64_t epoch = load_relaxed(&r->seen_epoch);
    // Acquires what the receiver did before its Start, through the thread that read the host's word: our stores to the
    // landing must not come before it.
    const uint64_t given = load_acquire_gpu(&r->seen_clear_to_send);  // pairs: C5
    if (head != send_head || static_cast<unsigned>(p) >= static_cast<unsigned>(partitions) || epoch < 2 ||
        readied >= epoch * static_cast<uint64_t>(partitions) || given < clear_to_send_needed(epoch, slots))
        return admit_by_host<Call, Waited>(r, p);
    return {landing != nullptr ? admission::now : admission::later, MPI_SUCCESS, epoch};
#endif
}

// Marks partition p ready. False, with the error kept: another caller has done so meanwhile, or the epoch is over. One
// thread. For Alone and Call see group_mover.
template <bool Alone, mpix_device_call Call>
MPIX_FN bool claim(mpix_prequest *r, int p, uint64_t epoch) {
    uint64_t *const state = partition_states(r) + p;
    if ((Alone ? fetch_max_single_writer(state, epoch) : fetch_max_relaxed_gpu(state, epoch)) < epoch) return true;
    refuse<Call>(r, MPIX_CAUSE_READY, p);
    return false;
}

#if MPIX_ON_GPU
// Tells the receiver that a partition would have been offered. Its groups then ask for some epochs (expects_offers).
MPIX_FN void tell_would_offer(const mpix_prequest *r, uint64_t epoch) {
    uint64_t *const flags = load_pointer(&r->flags);
    if (load_pointer(&r->wanted) != nullptr && flags != nullptr)
        store_relaxed(would_offer_of(arrival_flags(flags), static_cast<uint64_t>(r->partitions)), epoch);
}

MPIX_COLD_FN admission left_to(const mpix_prequest *r, int p, uint64_t epoch, uint64_t threads) {
    const uint64_t bytes = r->partition_bytes, least = load_relaxed(&r->rget_bytes);
    if (threads <= most_offering_threads && should_offload(bytes, least, threads)) {
        if (is_wanted(r, p, epoch, least * threads)) return admission::rts;
        tell_would_offer(r, epoch);
    }
    return should_offload(bytes, load_relaxed(&r->copy_engine_bytes), threads) ? admission::later : admission::now;
}
#endif

}  // namespace mpix::detail

#endif  // MPIX_IMPL_SEND_ADMIT_CUH
