// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/regions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "host/field/box_index.h"
#include "host/field/domain.h"
#include "host/field/layout.h"

namespace mpix::halo {

std::vector<field_pieces> find_pieces(const grid_state &g, const std::vector<field_reach> &fields) {
    const box_index index(g.domain);
    std::vector<field_pieces> all;
    for (const field_reach &f : fields) {
        const domain d = points_of(g.domain, f.staggered);
        all.push_back({pieces_to(d, index, g.mine, f.radius), pieces_from(d, index, g.mine, f.radius)});
    }
    return all;
}

// Each side on which somebody owns ghost cells is as deep as the field's radius, whichever of them are filled: a
// stencil that reaches far in the direction of a corner reads ghost cells of the faces, too. Where a staggered field has
// a point beyond the last cell, nobody owns ghost cells: the domain ends there.
regions find_regions(const grid_state &g, const std::vector<field_reach> &fields,
                     const std::vector<field_pieces> &pieces, bool reversed) {
    std::vector<std::array<index3, 2>> depth(g.mine.size());
    for (std::size_t f = 0; f < fields.size(); ++f) {
        const std::array<index3, 2> most = ghost_depth(fields[f].radius, g.domain.dimensions);
        for (const piece &p : reversed ? pieces[f].sources : pieces[f].ghosts)
            for (int a = 0; a < 3; ++a)
                if (const int step = direction(p.direction)[a]; step != 0) {
                    // Ghost cells above a box are cells at the lower side of their owner's.
                    std::int64_t &here = reversed ? depth[g.position_of(p.owner)][step < 0][a]
                                                  : depth[g.position_of(p.receiver)][step > 0][a];
                    here = std::max(here, most[step > 0][a]);
                }
    }
    regions found;
    for (std::size_t i = 0; i < depth.size(); ++i) {
        const box &local = g.local(static_cast<int>(i));
        found.interior.push_back(shrunk(local, depth[i]));
        found.boundary.push_back(difference(local, found.interior.back()));
    }
    return found;
}

}  // namespace mpix::halo
