// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/kept_error.h"

#include <mpi.h>
#include <mpix/device.cuh>

#include "host/format.h"

namespace mpix {

// The kept bits of the period are those of one not long before the present one. The memory is a GPU's to write, too: nothing in
// it is taken for granted.
kept_error::kept_error(std::uint64_t word, std::uint64_t period)
    : call_(static_cast<mpix_device_call>(word >> 56)),
      cause_(static_cast<mpix_cause>(word >> 48 & 0xff)),
      period_(period - ((period - (word >> 32)) & ((1u << MPIX_ERROR_PERIOD_BITS) - 1))),
      partition_(static_cast<int>(static_cast<std::uint32_t>(word)) - 1) {}

const char *kept_error::call() const {
    switch (call_) {
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
        case MPIX_CALL_NONE:
            break;
    }
    return "a device call";
}

int kept_error::error_class() const {
    const std::string none = reason(MPIX_KIND_SEND, 1);
    return none.empty() ? MPI_ERR_OTHER : detail::class_of(cause_);
}

std::string kept_error::reason(mpix_kind kind, int partitions) const {
    const bool send = kind == MPIX_KIND_SEND;
    switch (cause_) {
        case MPIX_CAUSE_INDEX:
            return format("the index is not within 0 to {}", partitions - 1);
        case MPIX_CAUSE_RANGE:
            return format("the range is empty, or not within 0 to {}", partitions - 1);
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
        case MPIX_CAUSE_KIND:
            return send ? "the request is a send, and the call takes receives"
                        : "the request is a receive, and the call takes sends";
        case MPIX_CAUSE_HANDLE:
            return "the handle is of another version of mpix than the kernel, or is none";
        case MPIX_CAUSE_INACTIVE:
            return std::string("the request is not active; call MPI_Start before the kernel") +
                   (send || period_ <= 2
                        ? ""
                        : " (and where several kernels wait in one epoch, let them end before the host "
                          "completes it)");
        case MPIX_CAUSE_DEADLINE:
            return "timed out";
    }
    return {};
}

std::string kept_error::sentence(mpix_kind kind, int partitions) const {
    const std::string why = reason(kind, partitions), of = partition_ < 0 ? "" : format(" of partition {}", partition_);
    const std::string when =
        period_ % 2 != 0 ? format("epoch {}", period_ / 2) : format("before epoch {} was started", period_ / 2);
    return format("{}: {}{}: {}", when, call(), of, why.empty() ? "it failed" : why);
}

}  // namespace mpix
