// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange tells of itself.
#ifndef MPIX_HOST_HALO_EXCHANGE_EXCHANGE_REPORT_H
#define MPIX_HOST_HALO_EXCHANGE_EXCHANGE_REPORT_H

#include <vector>

#include <mpix/halo.hpp>

#include "host/halo_exchange/exchange_state.h"
#include "transport/status.h"

namespace mpix::halo {

// Its mutex is held.
exchange_report report_of(const exchange_state &x);
// `given`: what was wrong on this rank before; then all ranks throw.
transfer_times compare_transfers_checked(const grid &g, const std::vector<field> &fields, int exchanges,
                                         const status &given);
// Prints it, for MPIX_EXPLAIN.
void explain(const exchange_state &x);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_EXCHANGE_REPORT_H
