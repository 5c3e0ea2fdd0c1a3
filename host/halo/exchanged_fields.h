// SPDX-License-Identifier: BSD-3-Clause
//
// What host exchanges and kernel exchanges check of the fields that they are given.
#ifndef MPIX_HOST_HALO_EXCHANGED_FIELDS_H
#define MPIX_HOST_HALO_EXCHANGED_FIELDS_H

#include <cstddef>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/halo/collective.h"
#include "host/halo/grid_state.h"
#include "transport/status.h"

namespace mpix::halo {

// Fails if a cell is in two allocations. `views`: of `fields`.
status check_memory(const grid_state &g, const std::vector<field_view> &views, const std::vector<field> &fields);

// What all ranks give alike of fields[f].
void append_field(std::vector<argument> &to, std::size_t f, const field_view &view);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGED_FIELDS_H
