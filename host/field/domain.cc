// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/domain.h"

#include "host/format.h"

namespace mpix::halo {

box points_of(const domain &d, const box &cells, const std::array<bool, 3> &staggered) {
    box points = cells;
    for (int a = 0; !cells.empty() && a < 3; ++a)
        if (staggered[a] && !d.periodic[a] && cells.hi[a] == d.extent[a]) ++points.hi[a];
    return points;
}

domain points_of(const domain &d, const std::array<bool, 3> &staggered) {
    domain points = d;
    for (box &b : points.boxes) b = points_of(d, b, staggered);
    points.extent = points_of(d, {{}, d.extent}, staggered).hi;
    return points;
}

status check_staggered(const std::array<bool, 3> &staggered, int dimensions, std::string_view name) {
    for (int a = dimensions; a < 3; ++a)
        if (staggered[a]) return failure(MPI_ERR_ARG, format("{}[{}]: the domain has {} axes", name, a, dimensions));
    return {};
}

}  // namespace mpix::halo
