// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges by their states.
#ifndef MPIX_HOST_HALO_EXCHANGE_EXCHANGE_INTERNALS_H
#define MPIX_HOST_HALO_EXCHANGE_EXCHANGE_INTERNALS_H

#include <memory>
#include <utility>

#include <mpix/halo.hpp>

#include "host/halo_exchange/exchange_state.h"

namespace mpix::halo {

struct exchange_internals {
    static const std::unique_ptr<exchange_state> &state_of(const exchange &x) { return x.state_; }
    static exchange exchange_of(std::unique_ptr<exchange_state> made) { return exchange(std::move(made)); }
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_EXCHANGE_INTERNALS_H
