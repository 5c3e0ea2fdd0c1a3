// SPDX-License-Identifier: BSD-3-Clause
//
// Erroneous device calls: validation of handles, and how the host learns of the first error of an epoch.
#ifndef MPIX_IMPL_EPOCH_ERRORS_CUH
#define MPIX_IMPL_EPOCH_ERRORS_CUH

#include <mpi.h>
#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#if defined(MPIX_CHECK)
#include <mpix/impl/epoch/checks.cuh>
#endif

namespace mpix::detail {

constexpr uint64_t send_head = uint64_t{MPIX_ABI_VERSION} | uint64_t{MPIX_KIND_SEND} << 32;
constexpr uint64_t receive_head = uint64_t{MPIX_ABI_VERSION} | uint64_t{MPIX_KIND_RECV} << 32;
MPIX_FN bool head_is(uint64_t head, mpix_kind kind) {
    return (head & ~uint64_t{MPIX_HEAD_NULL_PEER}) == (kind == MPIX_KIND_SEND ? send_head : receive_head);
}
MPIX_FN bool head_null_peer(uint64_t head) { return (head & MPIX_HEAD_NULL_PEER) != 0; }

MPIX_FN constexpr int class_of(mpix_cause cause) {
    return cause >= MPIX_CAUSE_DEADLINE ? MPI_ERR_PENDING : cause >= MPIX_CAUSE_KIND ? MPI_ERR_REQUEST : MPI_ERR_ARG;
}
// Encoded as in mpix_words.error.
MPIX_FN constexpr unsigned with_cause(mpix_device_call call, mpix_cause cause) {
    return static_cast<unsigned>(call) << 8 | static_cast<unsigned>(cause);
}
MPIX_FN constexpr uint64_t error_word(unsigned call_and_cause, uint64_t period, int partition) {
    return static_cast<uint64_t>(call_and_cause) << 48 | (period & ((1u << MPIX_ERROR_PERIOD_BITS) - 1)) << 32 |
           static_cast<uint32_t>(partition + 1);
}
// Why the call does not accept the handle.
MPIX_FN mpix_cause wrong_handle(uint64_t head) {
    return head_is(head, MPIX_KIND_SEND) || head_is(head, MPIX_KIND_RECV) ? MPIX_CAUSE_KIND : MPIX_CAUSE_HANDLE;
}

// Keeps the first error of an epoch, or of the inactive time before it, for the host's next call. Of several
// epochs that kernels run, that of the last one counts. Returns its class. Not for null requests.
MPIX_COLD_FN int keep(mpix_prequest *r, unsigned call_and_cause, int partition) {
#if defined(MPIX_CHECK)
    print_error(call_and_cause, partition);
#endif
    // seen_epoch may be out of date; then an error of an earlier epoch would hide the first one of this epoch.
    const uint64_t word = load_acquire(&r->words->epoch);  // pairs: C1
    uint64_t period = (word & 1) != 0 ? word : word + 2;
    // Of an epoch that a kernel has started, the host's word does not know yet.
    if (const uint64_t seen = 2 * load_relaxed(&r->seen_epoch) + 1; seen > period) period = seen;
    if (fetch_max_relaxed_gpu(&r->error, period) < period)
        store_release(&r->words->error, error_word(call_and_cause, period, partition));  // pairs: E1
    return class_of(static_cast<mpix_cause>(call_and_cause & 0xff));
}
MPIX_FN int keep_error(mpix_prequest *r, mpix_device_call call, mpix_cause cause, int partition) {
    return keep(r, with_cause(call, cause), partition);
}

// An error of a device call. It is kept for the host's next call, unless the caller reports it itself.
template <mpix_device_call Call>
MPIX_FN int refuse(mpix_prequest *r, mpix_cause cause, int partition) {
    return Call != MPIX_CALL_NONE ? keep_error(r, Call, cause, partition) : class_of(cause);
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_ERRORS_CUH
