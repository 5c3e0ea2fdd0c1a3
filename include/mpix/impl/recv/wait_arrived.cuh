// SPDX-License-Identifier: BSD-3-Clause
//
// The wait core: wait_arrived, by a request or by an epoch handle, which knows the receive's running epoch (Known).
#ifndef MPIX_IMPL_RECV_WAIT_ARRIVED_CUH
#define MPIX_IMPL_RECV_WAIT_ARRIVED_CUH

#include <mpix/impl/recv/parrived.cuh>
#include <mpix/impl/recv/together.cuh>
#include <mpix/impl/recv/wait_inline.cuh>

namespace mpix {

namespace detail {

#if MPIX_ON_GPU
// What wait_for does after its first looks. `claimed` is used only if the group has asked.
template <bool Known, class Group>
MPIX_FN int wait_longer(const Group &group, MPIX_Prequest handle, int j, uint64_t timeout_ns,
                        const receive_state &known, rget_question question, const claimed_question &claimed) {
    mpix_prequest *const r = request_of(handle);
    const waiters who = waiters_of(handle);
    const bool once = timeout_ns == 0;
    bool asked = false, late = false;
    const uint64_t deadline = r == nullptr ? 0 : deadline_of(r, timeout_ns);
    waited now = waited::unknown;
    if (question == rget_question::claimed)
        now = wait_for_offer(group, handle, j, deadline, claimed);
    else if (question != rget_question::none)
        now = Known ? await_asked(group, handle, known, j, deadline) : await_reading(group, r, j, deadline, question);
    for (;;) {
        if (now == waited::there) return MPI_SUCCESS;
        late = now == waited::late;
        if (r != nullptr && !late) {
            now = await_together(group, r, j, who, asked, deadline, once);
            if (now == waited::there) return MPI_SUCCESS;
            late = now == waited::late;
        }
        const int code = ask<MPIX_CALL_WAIT_ARRIVED>(group, r, j, timeout_ns, late);
        if (code != together) return code;
        // Now the epoch is known. What comes inline may as well be offered.
        now = !Known && !asked && !once && waits_inline_fast(handle, static_cast<unsigned>(group.num_threads()))
                  ? ask_and_wait(group, handle, j, timeout_ns, deadline)
                  : waited::unknown;
        asked = true;
    }
}

// The same for an epoch handle, which is there for loops: apart, so that the code of a wait that is soon over lies together
// in the instruction cache. Both are copies, so that the caller's may stay in registers.
template <class Group>
MPIX_APART_FN int wait_longer_apart(const Group group, MPIX_Prequest handle, int j, uint64_t timeout_ns,
                                    const receive_state known, rget_question question, const claimed_question claimed) {
    return wait_longer<true>(group, handle, j, timeout_ns, known, question, claimed);
}

// `known` is used only if Known; it is of the handle's request.
template <bool Known, class Group>
MPIX_FN int wait_for(const Group &group, MPIX_Prequest handle, int j, uint64_t timeout_ns, const receive_state &known) {
    mpix_prequest *const r = request_of(handle);
    const bool once = timeout_ns == 0,
               last = static_cast<unsigned>(group.thread_rank()) == static_cast<unsigned>(group.num_threads()) - 1;
    rget_question question = rget_question::none;
    claimed_question claimed{};
    // Most waits end while one of these looks for a while: in the inline buffer; or at the flags of a known epoch, for
    // some hundred microseconds.
    const bool fast = !once && (!Known || known.inline_buffer != nullptr) &&
                      waits_inline_fast(handle, static_cast<unsigned>(group.num_threads()));
    if (fast) {
        const int code = wait_inline_fast<Known>(group, handle, j, known, timeout_ns, claimed);
        if (code == MPI_SUCCESS) return code;
        if (code == has_asked) question = rget_question::claimed;
    } else if (Known) {
        const bool offered = known.reads && known.inline_buffer == nullptr,
                   reads = !once && offered && is_known(known, j),
                   asked = reads && last &&
                           ask_early(r, j, known.epoch, static_cast<unsigned>(group.num_threads()), timeout_ns);
        // If the last thread has asked, one look is enough: the wait goes on in read_next. If not, the members look on.
        const unsigned looks = once || (is_inline_capable(handle) && !offered) ? 1 : 1024;
        if (flagged(group, handle, known, j, reads ? 1 : looks)) return MPI_SUCCESS;
        if (reads && !vote_all(group, !asked))
            question = rget_question::asked;
        else if (reads && flagged(group, handle, known, j, looks))
            return MPI_SUCCESS;
    }
    if constexpr (Known) {
        return wait_longer_apart(group, handle, j, timeout_ns, known, question, claimed);
    } else {
        if (!once && question == rget_question::none && may_be_offered(handle)) {
            const bool asked = last && ask_early(r, j, 0, static_cast<unsigned>(group.num_threads()), timeout_ns);
            if (!vote_all(group, !asked))
                question = rget_question::asked;
            else if (reads_rts(group, handle, r))
                question = rget_question::possible;
        }
        return wait_longer<false>(group, handle, j, timeout_ns, known, question, claimed);
    }
}
#else
template <class Group>
MPIX_FN int wait_for(const Group &group, MPIX_Prequest handle, int j, uint64_t timeout_ns) {
    mpix_prequest *const r = request_of(handle);
    const bool leader = group.thread_rank() == 0, by_default = timeout_ns == default_timeout;
    looked l{arrival::refused, MPI_SUCCESS, 0, nullptr, {0, 0}};
    if (leader) l = examine<MPIX_CALL_WAIT_ARRIVED>(r, j);
    uint64_t since = 0;
    for (unsigned round = 0;; ++round) {
        if (leader && l.what == arrival::absent) {
            await<MPIX_CALL_WAIT_ARRIVED>(r, j, by_default ? default_limit_ns(r) : timeout_ns, timeout_ns == 0, l);
            if (by_default && l.code == MPI_ERR_PENDING) keep_error(r, MPIX_CALL_WAIT_ARRIVED, timed_out(), j);
        }
        if (conclude(group, r, j, l, group_taker{})) return MPI_SUCCESS;
        if (const int code = broadcast_code(group, l.code); code != MPI_SUCCESS) return code;
        // Another group is copying the partition out; look again until the deadline.
        if (leader) {
            const uint64_t now = now_ns(), limit_ns = by_default ? default_limit_ns(r) : timeout_ns;
            if (round == 0) since = now;
            l.what = arrival::absent;
            if (timeout_ns == 0 || (limit_ns != 0 && now - since >= limit_ns)) {
                l.what = arrival::refused;
                l.code = MPI_ERR_PENDING;
                if (by_default) keep_error(r, MPIX_CALL_WAIT_ARRIVED, timed_out(), j);
            }
        }
        pause_waiting(round > 64);
    }
}
#endif

}  // namespace detail

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN int wait_arrived(const Group &group, MPIX_Prequest preq, int partition, uint64_t timeout_ns) {
#if MPIX_ON_GPU
    return detail::wait_for<false>(group, preq, partition, timeout_ns, {});
#else
    return detail::wait_for(group, preq, partition, timeout_ns);
#endif
}

}  // namespace mpix

#endif  // MPIX_IMPL_RECV_WAIT_ARRIVED_CUH
