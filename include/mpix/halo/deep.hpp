// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: several steps of a stencil for each exchange.
#ifndef MPIX_HALO_DEEP_HPP
#define MPIX_HALO_DEEP_HPP

#include <array>
#include <vector>

#include <mpix/halo/box.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

/**
 * An exchange in every k-th step, of ghost cells that are k times as deep. In the steps between, ranks compute ghost
 * cells themselves, so there are fewer messages, and some cells are computed more than once:
 *
 *     mpix::halo::deep_halo deep(g, radius::faces(1), k);
 *     ... fields of the radius deep.radius(), and their exchange ...
 *     for (int step = 1;; step = step % k + 1) {
 *         if (step == 1) ... exchange ...
 *         ... compute deep.valid(step) ...
 *     }
 *
 * A field of two allocations is swapped in every step, with an exchange or without: swap() is local.
 *
 * All fields that the steps change must be exchanged. Cells outside of a domain that is not periodic are the program's
 * in each step, also those beside ghost cells.
 */
class MPIX_HALO_API deep_halo {
public:
    /** `stencil`: what one step reads. `every`: steps for each exchange. Local. Errors: MPI_ERR_ARG (every < 1, a
        radius below 0 or too large). */
    deep_halo(const grid &g, const halo::radius &stencil, int every);

    int every() const { return every_; }
    /** What the fields' radius must be: on each side `every` times what the stencil reads there, edges and corners
        included, as deep as the deepest of their axes. */
    const halo::radius &radius() const { return radius_; }
    /** The cells whose values are those of a serial program so many steps after an exchange: at first the box and all
        ghost cells in the domain, after `every` steps the box alone. Those of step s can be computed from those of
        s - 1. `staggered`: the points of a field that is staggered along these axes, as of field_layout. `i`: the
        position of a box of this rank in grid::boxes(), from 0; without it the only one. Errors: MPI_ERR_ARG (steps not
        from 0 to every, no such box, an axis that the domain lacks is staggered). */
    box valid(int steps, const std::array<bool, 3> &staggered = {}) const;
    box valid(int steps, int i, const std::array<bool, 3> &staggered = {}) const;

private:
    int every_, dimensions_;
    halo::radius radius_;
    std::array<index3, 2> depth_;  // of one step, below and above
    std::vector<box> local_;
    box limits_;  // which the valid cells do not exceed
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_DEEP_HPP
