// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange by kernels tells of itself: a kernel exchange, or one in the order of a stream.
#ifndef MPIX_HOST_HALO_KERNELS_KERNEL_REPORT_H
#define MPIX_HOST_HALO_KERNELS_KERNEL_REPORT_H

#include <cstdint>

#include <mpix/halo.hpp>

#include "host/halo_kernels/kernel_exchange_state.h"

namespace mpix::halo {

exchange_report report_of(const kernel_exchange_state &x, exchange_kind kind);
// That so many have been finished. With MPIX_EXPLAIN the first time prints the report.
void count_exchanges(kernel_exchange_state &x, std::int64_t finished, exchange_kind kind);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_KERNEL_REPORT_H
