// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/kept_error.h"

#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/impl/epoch/error_text.cuh>

#include "host/format.h"

namespace mpix {

namespace {

constexpr std::uint64_t no_call = MPIX_CALL_NONE, no_cause = 0;  // text_of does not know that cause

}  // namespace

// The kept bits of the period belong to a recent one. A GPU can write to this memory, so its content is not trusted.
kept_error::kept_error(std::uint64_t word, std::uint64_t period)
    : call_(static_cast<mpix_device_call>(word >> 56 <= MPIX_CALL_LAST ? word >> 56 : no_call)),
      cause_(static_cast<mpix_cause>((word >> 48 & 0xff) <= MPIX_CAUSE_LAST ? word >> 48 & 0xff : no_cause)),
      period_(period - since(word, period)),
      partition_(static_cast<int>(static_cast<std::uint32_t>(word)) - 1) {}

int kept_error::error_class() const {
    return detail::text_of(cause_) == nullptr ? MPI_ERR_OTHER : detail::class_of(cause_);
}

std::string kept_error::reason(mpix_kind kind, int partitions) const {
    const bool send = kind == MPIX_KIND_SEND;
    const char *const text = detail::text_of(cause_);
    if (text == nullptr) return "it failed";
    if (cause_ == MPIX_CAUSE_INDEX) return format("the index is not within 0 to {}", partitions - 1);
    if (cause_ == MPIX_CAUSE_RANGE) return format("the range is empty, or not within 0 to {}", partitions - 1);
    if (cause_ == MPIX_CAUSE_KIND)
        return send ? "the request is a send, and the call takes receives"
                    : "the request is a receive, and the call takes sends";
    return text;
}

std::string kept_error::sentence(mpix_kind kind, int partitions) const {
    const std::string of = partition_ < 0 ? "" : format(" of partition {}", partition_);
    const std::string when =
        period_ % 2 != 0 ? format("epoch {}", period_ / 2) : format("before epoch {} was started", period_ / 2);
    return format("{}: {}{}: {}", when, detail::name_of(call_), of, reason(kind, partitions));
}

}  // namespace mpix
