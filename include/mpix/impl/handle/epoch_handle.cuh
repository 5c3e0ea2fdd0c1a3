// SPDX-License-Identifier: BSD-3-Clause
//
// Epoch handles: what a group knows of a request's running epoch, kept in registers. Calls with a handle do not look it
// up again.
#ifndef MPIX_IMPL_HANDLE_EPOCH_HANDLE_CUH
#define MPIX_IMPL_HANDLE_EPOCH_HANDLE_CUH

#include <mpix/impl/kernel_epoch/start.cuh>
#include <mpix/impl/kernel_epoch/wait.cuh>
#include <mpix/impl/recv/parrived.cuh>
#include <mpix/impl/recv/wait_arrived.cuh>
#include <mpix/impl/send/pready.cuh>

namespace mpix {

struct prepared_send {
    MPIX_Prequest request;
    detail::send_state state;  // with an epoch that is not known, calls look anew
};

struct prepared_receive {
    MPIX_Prequest request;
    detail::receive_state state;  // as above
};

namespace detail {

#if MPIX_ON_GPU
// The running epoch of a send whose partitions may be stored at the receiver, as this member sees it after a barrier;
// 0: there is none.
MPIX_FN uint64_t look_at_send(const mpix_prequest *r, bool *for_inline) {
    uint64_t word, readied;
    load_relaxed_pair(&r->open_word, &word, &readied);
    *for_inline = (word & 1) != 0;
    return open_epoch(r, word, readied);
}

#if defined(MPIX_CHECK)
// Whether what a handle knows is of another epoch than the request is in; the error is kept.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <mpix_device_call Call, class Group>
MPIX_COLD_FN bool is_stale(const Group &group, MPIX_Prequest request, uint64_t epoch, int partition) {
    if (epoch == 0) return false;
    mpix_prequest *const r = request_of(request);
    group.sync();  // as in store_direct
    bool stale = false;
    if (group.thread_rank() == 0) {
        stale = running_epoch(r).number != epoch;
        if (stale) refuse<Call>(r, MPIX_CAUSE_STALE, partition);
    }
    return broadcast_bool(group, stale);
}
#endif
#endif

}  // namespace detail

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN prepared_send prepare_send(const Group &group, MPIX_Prequest preq) {
    prepared_send prepared{preq, {0, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, 0, false, true}};
#if MPIX_ON_GPU
    if (preq == nullptr) return prepared;
    detail::send_state &s = prepared.state;
    mpix_prequest *const r = detail::request_of(preq);
    group.sync();  // as in store_direct
    bool for_inline;
    uint64_t epoch = detail::look_at_send(r, &for_inline);
    s.clear_to_send = detail::load_pointer(&r->kernel_clear_to_send);
    if (!detail::vote_all(group, epoch != 0)) {
        // Of an epoch that a kernel has started, calls look for clear-to-send.
        const uint64_t started = s.clear_to_send != nullptr ? detail::kernel_epoch_of(r) : 0;
        s.clear = !detail::vote_all(group, started != 0);
        if (!s.clear) epoch = started;
    }
    if (s.clear && !detail::vote_all(group, epoch != 0)) {
        if (group.thread_rank() == 0 && detail::head_is(r->head, MPIX_KIND_SEND)) detail::look_for_clear_to_send(r);
        group.sync();  // after it all members see what the leader has noted
        epoch = detail::look_at_send(r, &for_inline);
    }
    s.buffer = r->buffer;
    s.partition_bytes = r->partition_bytes;
    s.partitions = r->partitions;
    // The epoch is running, so the route is final.
    uint64_t *const flags = detail::load_pointer(&r->flags);
    // Another member may have seen it before it was known.
    if (detail::vote_all(group, for_inline || !s.clear) && epoch >> 32 == 0)
        s.inline_buffer = detail::load_pointer(&r->inline_buffer);
    s.offload_bytes = detail::offload_for_all(r);
    s.in_words = r->offsets == nullptr && detail::in_words(s.buffer, s.partition_bytes);
    s.flags = flags;
    if (flags != nullptr && !detail::has_layouts(flags)) s.landing = detail::load_pointer(&r->landing);
    if (detail::vote_all(group, r->head == detail::send_head && epoch != 0)) s.epoch = epoch;
#else
    (void)group;
#endif
    return prepared;
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int pready(const Group &group, int partition, const prepared_send &send) {
#if MPIX_ON_GPU
#if defined(MPIX_CHECK)
    if (detail::is_stale<MPIX_CALL_PREADY>(group, send.request, send.state.epoch, partition)) return MPI_ERR_ARG;
#endif
    constexpr detail::group_mover<false, MPIX_CALL_PREADY, true> mover{};
    return detail::ready<true, false>(group, partition, send.request, send.state, mover);
#else
    return pready(group, partition, send.request);
#endif
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN prepared_receive prepare_receive(const Group &group, MPIX_Prequest preq) {
    prepared_receive prepared{preq, {0, nullptr, 0, 0, nullptr, nullptr, nullptr, 0, false}};
#if MPIX_ON_GPU
    if (preq == nullptr) return prepared;
    detail::receive_state &v = prepared.state;
    mpix_prequest *const r = detail::request_of(preq);
    group.sync();  // as in store_direct
    bool known = false;
    if (group.thread_rank() == 0 && r->head == detail::receive_head) {
        // While the whole message is incomplete, the epoch that was read last is still running: see look.
        const uint64_t epoch = detail::load_relaxed(&r->seen_epoch),
                       senders = detail::load_relaxed(&r->peer_partitions);
        const uint64_t *const flags = detail::load_pointer(&r->flags);
        known = epoch > 1 && senders != 0 && flags != nullptr &&
                detail::is_current(r, epoch, detail::load_relaxed(&flags[senders]));
        if (!known) {
            detail::looked l{detail::arrival::absent, MPI_SUCCESS, 0, nullptr, {0, 0}};
            uint64_t asked = 0;
            known = detail::look_at_host<true>(r, l, asked) && l.epoch > 1;
        }
    }
    if (!detail::broadcast_bool(group, known)) return prepared;
    // The route is final after the first epoch. While the epoch is running, its number stays what the leader has found
    // or noted.
    v.epoch = detail::load_relaxed(&r->seen_epoch);
    v.flags = detail::load_pointer(&r->flags);
    v.partitions = static_cast<unsigned>(r->partitions);
    v.senders = static_cast<unsigned>(detail::load_relaxed(&r->peer_partitions));
    v.told = detail::load_pointer(&r->told);
    v.buffer = r->buffer;
    v.partition_bytes = r->partition_bytes;
    char *const inline_buffer = detail::load_pointer(&r->inline_buffer);
    if (v.senders == v.partitions && v.told != nullptr && r->offsets == nullptr && v.epoch >> 32 == 0 &&
        detail::in_words(v.buffer, v.partition_bytes))
        v.inline_buffer = inline_buffer;
    // What has an inline buffer that this handle does not use is not asked for.
    v.reads = detail::load_pointer(&r->wanted) != nullptr && v.inline_buffer == inline_buffer;
#else
    (void)group;
#endif
    return prepared;
}

// The route is final, so it is kept. Packets hold the low 32 bits of the epoch: from 2^32 on nothing goes inline.
MPIX_FN void follow_epoch(prepared_send &send, uint64_t epochs) {
    detail::send_state &s = send.state;
    if (epochs == 0 || s.epoch == 0) return;
    // All is known except for clear-to-send, which calls look for where the receiver's kernels give it, if they do.
    s.clear = s.clear_to_send == nullptr;
    s.epoch = s.clear ? 0 : s.epoch + epochs;
    if (s.epoch >> 32 != 0) s.inline_buffer = nullptr;
}
MPIX_FN void follow_epoch(prepared_receive &receive, uint64_t epochs) {
    detail::receive_state &v = receive.state;
    if (v.epoch != 0) v.epoch += epochs;
    if (v.epoch >> 32 == 0 || v.inline_buffer == nullptr) return;
    v.inline_buffer = nullptr;
    v.reads = false;
}

namespace detail {

// After an epoch was started by the group.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN void refresh(const Group &group, prepared_send &send, uint64_t begun) {
#if MPIX_ON_GPU
    if (send.state.epoch != 0 && send.state.clear_to_send != nullptr && begun != 0) {
        follow_epoch(send, begun - send.state.epoch);
    } else {
        send = prepare_send(group, send.request);
    }
#else
    (void)group, (void)send, (void)begun;
#endif
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN void refresh(const Group &group, prepared_receive &receive, uint64_t begun) {
#if MPIX_ON_GPU
    if (receive.state.epoch == 0)
        receive = prepare_receive(group, receive.request);
    else
        follow_epoch(receive, (begun != 0 ? begun : load_relaxed(&request_of(receive.request)->seen_epoch)) -
                                  receive.state.epoch);
#else
    (void)group, (void)receive, (void)begun;
#endif
}

#if MPIX_ON_GPU
// next_epoch from what handles know: of a send, a receive, or one of each. False for all members, with nothing changed: a
// handle knows too little, or an epoch is not over after most_looks looks. With true, all members have acquired the
// receive's bytes.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN bool next_known(const Group &group, prepared_send *send, prepared_receive *receive) {
    constexpr unsigned most_looks = 64;
    if ((send != nullptr && (send->state.epoch == 0 || send->state.clear_to_send == nullptr)) ||
        (receive != nullptr && receive->state.epoch == 0))
        return false;
    const unsigned rank = static_cast<unsigned>(group.thread_rank()),
                   threads = static_cast<unsigned>(group.num_threads());
    // Giving clear-to-send includes a fence, which waits for that thread's own stores. So the last thread of the last but
    // one warp does it: the very last may just have written to the host.
    const bool starts_send = rank == 0, starts_receive = rank == (threads > 64 ? threads - 33 : threads - 1);
    mpix_prequest *const sender = send != nullptr ? request_of(send->request) : nullptr;
    mpix_prequest *const receiver = receive != nullptr ? request_of(receive->request) : nullptr;
    // Before the vote: the members may have one value between them, in shared memory.
    const uint64_t next_send = send != nullptr ? send->state.epoch + 1 : 0,
                   next_receive = receive != nullptr ? receive->state.epoch + 1 : 0;
    group.sync();  // what looks at an epoch comes after what the members know of it, as in store_direct
    start_targets targets{nullptr, nullptr, false};
    bool over = true;
    if (receive != nullptr) {
        const receive_state &v = receive->state;
        if (starts_receive) {
            targets = targets_of(receiver);
            over = load_relaxed(&receiver->seen_epoch) <= v.epoch;  // or the value is of an older epoch
        }
        for (unsigned i = rank; over && i < v.senders; i += threads) {
            unsigned left = most_looks;
            do over = reached_acquire(&v.flags[i], v.epoch);  // pairs: A1, A3, B2
            while (!over && --left != 0);
        }
    }
    if (send != nullptr && rank == threads - 1) {
        unsigned left = most_looks;
        bool sent;
        over &= load_relaxed(&sender->seen_epoch) <= send->state.epoch;  // as above
        do {
            const uint64_t told = load_acquire_gpu(&sender->told_epoch);  // pairs: K1
            sent = told >> 1 >= send->state.epoch && (told & 1) == 0;
        } while (!sent && --left != 0);
        over &= sent;
    }
    if (!vote_all(group, over)) return false;  // a barrier: all members have what any of them acquired
    if (send != nullptr) {
        if (starts_send) {
            end_epoch(sender, next_send - 1);
            begin_epoch(sender, next_send, true);
        }
        follow_epoch(*send, next_send - send->state.epoch);
    }
    if (receive != nullptr) {
        if (starts_receive) {
            end_epoch(receiver, next_receive - 1);
            begin_epoch(receiver, next_receive, false);
        }
        follow_epoch(*receive, next_receive - receive->state.epoch);
    }
    group.sync();  // all see the new epochs
    if (receive != nullptr && starts_receive) give_clear_to_send(receiver, next_receive, targets);
    return true;
}
#endif

}  // namespace detail

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN bool parrived(const Group &group, const prepared_receive &receive, int partition) {
#if MPIX_ON_GPU
#if defined(MPIX_CHECK)
    if (detail::is_stale<MPIX_CALL_PARRIVED>(group, receive.request, receive.state.epoch, partition)) return false;
#endif
    if (detail::flagged(group, receive.request, receive.state, partition, 1)) return true;
#endif
    return parrived(group, receive.request, partition);
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait_arrived(const Group &group, const prepared_receive &receive, int partition, uint64_t timeout_ns) {
#if MPIX_ON_GPU
#if defined(MPIX_CHECK)
    if (detail::is_stale<MPIX_CALL_WAIT_ARRIVED>(group, receive.request, receive.state.epoch, partition))
        return MPI_ERR_ARG;
#endif
    return detail::wait_for<true>(group, receive.request, partition, timeout_ns, receive.state);
#else
    return wait_arrived(group, receive.request, partition, timeout_ns);
#endif
}

namespace detail {

// Into and out of next_longer_apart: the handles. Out of it: what the call returns.
struct next_handles {
    int code;
    prepared_send send;
    prepared_receive receive;
};

// next_epoch of a send, a receive, or one of each, where next_known says no. Nothing begins unless all are over. Apart, as
// wait_longer_apart is; the handles go in and out as copies, so that the caller's may stay in registers.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <bool Send, bool Receive, class Group>
MPIX_APART_FN next_handles next_longer_apart(const Group group, next_handles all, uint64_t timeout_ns) {
    uint64_t begun;
    all.code = next_all(
        group, int{Send} + int{Receive},
        [&all](int i) { return Send && i == 0 ? all.send.request : all.receive.request; }, timeout_ns, &begun);
    if (all.code == MPI_SUCCESS) {
        if (Send) refresh(group, all.send, begun);
        if (Receive) refresh(group, all.receive, begun);
    }
    return all;
}

}  // namespace detail

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_send &send, uint64_t timeout_ns) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (detail::next_known(group, &send, nullptr)) return MPI_SUCCESS;
#endif
    const detail::next_handles now = detail::next_longer_apart<true, false>(group, {MPI_SUCCESS, send, {}}, timeout_ns);
    send = now.send;
    return now.code;
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_receive &receive, uint64_t timeout_ns) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (detail::next_known(group, nullptr, &receive)) return MPI_SUCCESS;
#endif
    const detail::next_handles now =
        detail::next_longer_apart<false, true>(group, {MPI_SUCCESS, {}, receive}, timeout_ns);
    receive = now.receive;
    return now.code;
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_send &send, prepared_receive &receive, uint64_t timeout_ns) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (detail::next_known(group, &send, &receive)) return MPI_SUCCESS;
#endif
    const detail::next_handles now =
        detail::next_longer_apart<true, true>(group, {MPI_SUCCESS, send, receive}, timeout_ns);
    send = now.send;
    receive = now.receive;
    return now.code;
}

}  // namespace mpix

#endif  // MPIX_IMPL_HANDLE_EPOCH_HANDLE_CUH
