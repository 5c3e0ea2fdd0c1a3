// SPDX-License-Identifier: BSD-3-Clause
//
// Which cells of which rank fill a rank's ghost cells. Boxes may be any that cover the domain, and ghost cells may lie
// any number of boxes, or of periods, away.
#ifndef MPIX_HOST_FIELD_NEIGHBOURS_H
#define MPIX_HOST_FIELD_NEIGHBOURS_H

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

struct domain {
    int dimensions = 3;
    index3 extent{1, 1, 1};
    std::array<bool, 3> periodic{};
    std::vector<box> boxes = {};  // of each rank
};

// Of a field that is staggered along these axes: the points of some cells, as grid::points() has them; and the domain of
// its points, in which all else is as in one of cells.
box points_of(const domain &d, const box &cells, const std::array<bool, 3> &staggered);
domain points_of(const domain &d, const std::array<bool, 3> &staggered);
// A failure, which begins with `name`, if an axis is staggered that the domain lacks.
status check_staggered(const std::array<bool, 3> &staggered, int dimensions, std::string_view name);

// "[0, 0, 0] to [4, 4, 1]", "-x+y"
std::string text_of(const box &b);
std::string direction_name(int number);
box intersection(const box &a, const box &b);

// Ghost cells in one direction that one rank owns. Both boxes have the same size.
struct piece {
    int direction = no_direction;  // as the receiver sees it
    box ghosts;                    // beside the receiver's box, perhaps outside of the domain
    box source;                    // the same cells within the owner's box
};

// The ghost cells of a box in a direction, whether anybody owns them or not.
box ghosts_of(const box &local, int direction, int depth);

// What `receiver` gets from `owner`. Both of them compute the same list, in the same order.
std::vector<piece> pieces_between(const domain &d, int receiver, int owner, const radius &r);

// Why the boxes do not cover the domain exactly once; empty if they do.
std::string why_not_a_cover(const domain &d);

// `local` without the cells within depth[0][a] of its lower side and depth[1][a] of its upper side, on each axis a.
box shrunk(const box &local, const std::array<index3, 2> &depth);

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_NEIGHBOURS_H
