// SPDX-License-Identifier: BSD-3-Clause
//
// Placements by Scotch (https://www.labri.fr/perso/pelegrin/scotch, CeCILL-C), which maps graphs onto graphs by dual
// recursive bipartitioning. libscotch is loaded when it is first needed: most programs have no use for it.
#ifndef MPIX_HOST_DECOMPOSITION_SCOTCH_H
#define MPIX_HOST_DECOMPOSITION_SCOTCH_H

#include <optional>

#include "host/decomposition/flows.h"

namespace mpix::halo {

// A good placement to start swaps from, in a time that grows little faster than n^2; equal arguments give equal ones.
// Nothing if mpix was built without Scotch, if libscotch is not there or another version than was built with, for more
// than 1024 boxes, or if Scotch fails. Thread-safe; the program's own use of Scotch is not disturbed.
std::optional<placement> place_by_scotch(const flows &flow, const matrix &distance);

// Of boxes that have the same GPU, the first keeps it, and the others move to the nearest free ones. (Scotch balances
// loads, but does not promise one box for each GPU.)
placement one_to_one(placement gpu_of, const matrix &distance);

}  // namespace mpix::halo

#endif  // MPIX_HOST_DECOMPOSITION_SCOTCH_H
