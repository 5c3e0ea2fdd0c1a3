// SPDX-License-Identifier: BSD-3-Clause
//
// A whole field on one rank.
#ifndef MPIX_HOST_HALO_GATHER_H
#define MPIX_HOST_HALO_GATHER_H

#include <functional>

#include <mpix/halo.hpp>

#include "host/field/domain.h"
#include "host/field/layout.h"
#include "transport/status.h"

namespace mpix::halo {

// What is wrong with the root's array for these points of the field.
using check_of_array = std::function<status(const domain &points, const field_view &from)>;

// gather(). `given`: what was wrong on this rank before; then all ranks throw. `check`: where more is known of the
// array than its address. The root calls it if nothing else is wrong there.
void gather_checked(const grid &g, const field &from, void *global, int root, const status &given,
                    const check_of_array &check = nullptr);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_GATHER_H
