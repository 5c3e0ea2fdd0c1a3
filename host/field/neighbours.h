// SPDX-License-Identifier: BSD-3-Clause
//
// Which cells of which box fill a box's ghost cells. Boxes may be any that cover the domain, and ghost cells may lie
// any number of boxes, or of periods, away.
#ifndef MPIX_HOST_FIELD_NEIGHBOURS_H
#define MPIX_HOST_FIELD_NEIGHBOURS_H

#include <array>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/box_index.h"
#include "host/field/domain.h"

namespace mpix::halo {

// "[0, 0, 0] to [4, 4, 1]", "-x+y"
std::string text_of(const box &b);
std::string direction_name(int number);
box intersection(const box &a, const box &b);

// Ghost cells of one box in one direction that another box has, or the same one.
struct piece {
    int receiver = 0, owner = 0;   // numbers of these boxes
    int direction = no_direction;  // as the receiver sees it
    box ghosts;                    // beside the receiver, perhaps outside of the domain
    box source;                    // the same cells within the owner; of the same size
};

// The ghost cells of a box in a direction, whether anybody owns them or not.
box ghosts_of(const box &local, int direction, int depth);

// What the box `receiver` gets from the box `owner`.
std::vector<piece> pieces_between(const domain &d, int receiver, int owner, const radius &r);
// All that boxes with these numbers, in ascending order, get, or give. In the order of the receivers, and of the owners
// among those of one receiver; so both ranks of a message have the same list. `index`: of the domain of cells, which
// `d` is, or whose points.
std::vector<piece> pieces_to(const domain &d, const box_index &index, const std::vector<int> &boxes, const radius &r);
std::vector<piece> pieces_from(const domain &d, const box_index &index, const std::vector<int> &boxes, const radius &r);

// Why the boxes do not cover the domain exactly once; empty if they do.
std::string why_not_a_cover(const domain &d);

// `local` without the cells within depth[0][a] of its lower side and depth[1][a] of its upper side, on each axis a.
box shrunk(const box &local, const std::array<index3, 2> &depth);

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_NEIGHBOURS_H
