// SPDX-License-Identifier: BSD-3-Clause
//
// A domain and its boxes: of cells, or of the points of a staggered field.
#ifndef MPIX_HOST_FIELD_DOMAIN_H
#define MPIX_HOST_FIELD_DOMAIN_H

#include <array>
#include <string_view>
#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

struct domain {
    int dimensions = 3;
    index3 extent{1, 1, 1};
    std::array<bool, 3> periodic{};
    std::vector<box> boxes = {};
    std::vector<int> owners = {};  // the rank of each of them
};

// Of a field that is staggered along these axes: the points of some cells, as grid::points() has them; and the domain of
// its points, in which all else is as in one of cells.
box points_of(const domain &d, const box &cells, const std::array<bool, 3> &staggered);
domain points_of(const domain &d, const std::array<bool, 3> &staggered);
// A failure, which begins with `name`, if an axis is staggered that the domain lacks.
status check_staggered(const std::array<bool, 3> &staggered, int dimensions, std::string_view name);

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_DOMAIN_H
