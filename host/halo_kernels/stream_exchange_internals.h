// SPDX-License-Identifier: BSD-3-Clause
//
// Of exchanges in the order of a stream, for the C interface.
#ifndef MPIX_HOST_HALO_KERNELS_STREAM_EXCHANGE_INTERNALS_H
#define MPIX_HOST_HALO_KERNELS_STREAM_EXCHANGE_INTERNALS_H

#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

struct stream_exchange_internals {
    // As the constructor. `given`: what was wrong before.
    static stream_exchange make(const grid &g, const std::vector<field> &fields, const stream_exchange_options &options,
                                const status &given);
    static bool is_started(const stream_exchange &x);
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_STREAM_EXCHANGE_INTERNALS_H
