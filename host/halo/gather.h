// SPDX-License-Identifier: BSD-3-Clause
//
// A whole field on one rank.
#ifndef MPIX_HOST_HALO_GATHER_H
#define MPIX_HOST_HALO_GATHER_H

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

// gather(). `given`: what was wrong on this rank before; then all ranks throw.
void gather_checked(const grid &g, const field &from, void *global, int root, const status &given);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_GATHER_H
