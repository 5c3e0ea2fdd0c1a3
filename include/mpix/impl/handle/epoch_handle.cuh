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
    if (!detail::vote_all(group, epoch != 0)) {
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
    if (detail::vote_all(group, for_inline)) s.inline_buffer = detail::load_pointer(&r->inline_buffer);
    s.left_bytes = detail::load_relaxed(&r->left_bytes);
    s.clear_to_send = detail::load_pointer(&r->kernel_clear_to_send);
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
    prepared_receive prepared{preq, {0, nullptr, 0, 0}};
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
#else
    (void)group;
#endif
    return prepared;
}

namespace detail {

// After an epoch was started by the group, or by another one with a barrier since. What the handle knows of the route
// stays.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN void refresh(const Group &group, prepared_send &send, uint64_t begun) {
#if MPIX_ON_GPU
    // Of the epoch before, all was known but for clear-to-send, which calls look for. That goes for this one, too.
    if (send.state.epoch != 0 && send.state.clear_to_send != nullptr && begun != 0 && begun >> 32 == 0) {
        send.state.epoch = begun;
        send.state.clear = false;
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
        receive.state.epoch = begun != 0 ? begun : load_relaxed(&request_of(receive.request)->seen_epoch);
#else
    (void)group, (void)receive, (void)begun;
#endif
}

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

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_send &send, uint64_t timeout_ns) {
    uint64_t begun;
    const int code = detail::next_all(
        group, 1, [&send](int) { return send.request; }, timeout_ns, &begun);
    if (code == MPI_SUCCESS) detail::refresh(group, send, begun);
    return code;
}
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int next_epoch(const Group &group, prepared_receive &receive, uint64_t timeout_ns) {
    uint64_t begun;
    const int code = detail::next_all(
        group, 1, [&receive](int) { return receive.request; }, timeout_ns, &begun);
    if (code == MPI_SUCCESS) detail::refresh(group, receive, begun);
    return code;
}

}  // namespace mpix

#endif  // MPIX_IMPL_HANDLE_EPOCH_HANDLE_CUH
