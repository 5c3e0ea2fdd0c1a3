// SPDX-License-Identifier: BSD-3-Clause
//
// Device calls and causes of errors as text, for the host, and for device code that is compiled with MPIX_CHECK.
#ifndef MPIX_IMPL_EPOCH_ERROR_TEXT_CUH
#define MPIX_IMPL_EPOCH_ERROR_TEXT_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

MPIX_FN const char *name_of(mpix_device_call call) {
    switch (call) {
        case MPIX_CALL_PREADY:
            return "pready";
        case MPIX_CALL_PREADY_TYPED:
            return "pready_typed";
        case MPIX_CALL_PREADY_RANGE:
            return "pready_range";
        case MPIX_CALL_PREADY_LIST:
            return "MPI_Pready_list";
        case MPIX_CALL_PREADY_CONTRIBUTE:
            return "pready_contribute";
        case MPIX_CALL_PARRIVED:
            return "parrived";
        case MPIX_CALL_WAIT_ARRIVED:
            return "wait_arrived";
        case MPIX_CALL_WAIT:
            return "wait";
        case MPIX_CALL_START:
            return "start";
        case MPIX_CALL_NONE:
            break;
    }
    return "a device call";
}

// Null for an unknown cause.
MPIX_FN const char *text_of(mpix_cause cause) {
    switch (cause) {
        case MPIX_CAUSE_INDEX:
            return "there is no such partition";
        case MPIX_CAUSE_RANGE:
            return "the range is empty, or goes beyond the partitions";
        case MPIX_CAUSE_LIST:
            return "the length is negative, or the list a null pointer";
        case MPIX_CAUSE_FLAG:
            return "flag is a null pointer";
        case MPIX_CAUSE_READY:
            return "it is ready already in this epoch";
        case MPIX_CAUSE_SHARE_BEYOND:
            return "the share ends beyond the partition";
        case MPIX_CAUSE_SHARES:
            return "the shares of this epoch have more bytes than the partition";
        case MPIX_CAUSE_OVERLAP:
            return "the share has bytes that another one of this epoch has";
        case MPIX_CAUSE_STALE:
            return "the epoch handle is of another epoch; advance it by follow_epoch, or call prepare_send or "
                   "prepare_receive again";
        case MPIX_CAUSE_KIND:
            return "a send where the call takes receives, or the other way";
        case MPIX_CAUSE_HANDLE:
            return "the handle was freed or is invalid, or the kernel was compiled with another version of mpix";
        case MPIX_CAUSE_INACTIVE:
            return "the request is not active; call MPI_Start before the kernel, and complete it after the kernel";
        case MPIX_CAUSE_ACTIVE:
            return "the epoch runs: it was not waited for, or another group has started it";
        case MPIX_CAUSE_DEADLINE:
            return "timed out";
        case MPIX_CAUSE_RESIDENCY:
            return "timed out, in a grid with more blocks than the GPU holds at a time, so that some may not have "
                   "begun; "
                   "launch it by mpix::launch_cooperative";
    }
    return nullptr;
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_ERROR_TEXT_CUH
