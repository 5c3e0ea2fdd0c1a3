// SPDX-License-Identifier: BSD-3-Clause
//
// Which cells of a rank's boxes an exchange of some fields sends and fills, and which of them a stencil may compute before it has
// ended.
#ifndef MPIX_HOST_HALO_REGIONS_H
#define MPIX_HOST_HALO_REGIONS_H

#include <array>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/neighbours.h"
#include "host/halo/grid_state.h"

namespace mpix::halo {

// Of a field, as of the user's.
struct field_reach {
    halo::radius radius;
    std::array<bool, 3> staggered{};
};

// Of a field, what this rank's boxes get, and what they give.
struct field_pieces {
    std::vector<piece> ghosts, sources;
};

std::vector<field_pieces> find_pieces(const grid_state &g, const std::vector<field_reach> &fields);

// Of each box of this rank: exchange::interior() and exchange::boundary().
struct regions {
    std::vector<box> interior;
    std::vector<std::vector<box>> boundary;
};

// `pieces`: of these fields. `reversed`: of a reverse exchange.
regions find_regions(const grid_state &g, const std::vector<field_reach> &fields,
                     const std::vector<field_pieces> &pieces, bool reversed);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_REGIONS_H
