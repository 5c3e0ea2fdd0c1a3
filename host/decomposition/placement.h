// SPDX-License-Identifier: BSD-3-Clause
//
// Which box goes to which GPU of a node, as a quadratic assignment problem: boxes that exchange many bytes go to GPUs
// with a fast link between them. Ties are broken by the numbers, so equal arguments give equal placements, except for
// those that Scotch finds, if it is there.
#ifndef MPIX_HOST_DECOMPOSITION_PLACEMENT_H
#define MPIX_HOST_DECOMPOSITION_PLACEMENT_H

#include "host/decomposition/flows.h"

namespace mpix::halo {

// Box i on GPU i.
placement trivial_placement(int n);

// The sum over all pairs of boxes of what flows from one to the other (bytes), times the distance of their GPUs (seconds
// per byte).
double cost(const flows &flow, const matrix &distance, const placement &gpu_of);

// One divided by the bandwidth of each pair. The diagonal is 0: what a box sends to itself costs the same on each GPU.
matrix distances(const matrix &bandwidth);

// The placement of least cost, of all; the first of them in lexicographic order. Time grows as n!, less what bounds cut
// off; meant for n up to `exact_up_to`.
placement place_exactly(const flows &flow, const matrix &distance);
// CRAFT (Buffa, Armour, Vollmann): from `start` on, make the swap of two boxes that lowers the cost most, until none
// does. Time of each swap grows as n^2, and a bad start needs about n of them.
placement place_by_swaps(const flows &flow, const matrix &distance, placement start);
// From `start` on, make for one box after the other the swap that lowers the cost most, until no box has one, but at
// most so many times for all boxes. Time of each pass grows as n^2.
placement place_by_passes(const flows &flow, const matrix &distance, placement start, int passes);

// A second of computing is too much, a few milliseconds are not: the best of all placements takes 1 ms for 8 boxes, the
// best swaps 1 ms for 64 boxes, but 0.7 s for 512, for which passes take 0.07 s and end about as low.
constexpr int exact_up_to = 8, best_swaps_up_to = 64, most_passes = 4;
// By swaps from `start`: the best ones up to best_swaps_up_to boxes, most_passes for more.
placement improve(const flows &flow, const matrix &distance, placement start);
// Exactly up to exact_up_to boxes. For more, the better one of two that swaps improve: the trivial placement, and that
// which Scotch finds. docs/results/placement_host.csv says how long it takes.
placement place(const flows &flow, const matrix &distance);

}  // namespace mpix::halo

#endif  // MPIX_HOST_DECOMPOSITION_PLACEMENT_H
