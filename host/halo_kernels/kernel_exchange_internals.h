// SPDX-License-Identifier: BSD-3-Clause
//
// Of exchanges by the program's kernels, for the C interface.
#ifndef MPIX_HOST_HALO_KERNELS_KERNEL_EXCHANGE_INTERNALS_H
#define MPIX_HOST_HALO_KERNELS_KERNEL_EXCHANGE_INTERNALS_H

#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

struct kernel_exchange_internals {
    // As the constructor. `given`: what was wrong before.
    static kernel_exchange make(const grid &g, const std::vector<field> &fields, const kernel_exchange_options &options,
                                const status &given);
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_KERNEL_EXCHANGE_INTERNALS_H
