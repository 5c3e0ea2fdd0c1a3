// SPDX-License-Identifier: BSD-3-Clause
//
// Grids by their states.
#ifndef MPIX_HOST_HALO_GRID_INTERNALS_H
#define MPIX_HOST_HALO_GRID_INTERNALS_H

#include <memory>
#include <utility>

#include <mpix/halo.hpp>

#include "host/halo/grid_state.h"

namespace mpix::halo {

struct grid_internals {
    // Throws error, if the grid has been moved from. `caller`, or its member `function`, needs it.
    static const std::shared_ptr<const grid_state> &state_of(const grid &g, const char *caller,
                                                             const char *function = nullptr);
    static grid grid_of(std::shared_ptr<const grid_state> made) { return grid(std::move(made)); }
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_GRID_INTERNALS_H
