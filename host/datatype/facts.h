// SPDX-License-Identifier: BSD-3-Clause
//
// Properties of a datatype that need no plan; for types of many blocks they are much cheaper.
#ifndef MPIX_HOST_DATATYPE_FACTS_H
#define MPIX_HOST_DATATYPE_FACTS_H

#include <mpi.h>

#include <cstdint>

#include "transport/status.h"

namespace mpix {

// Open MPI 5.0.7 to 5.0.11 pack complex numbers wrongly where the distance between blocks is no multiple of their size.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
inline constexpr bool library_mispacks_complex = true;
#else
inline constexpr bool library_mispacks_complex = false;
#endif

struct type_facts {
    std::int64_t size = 0, extent = 0;
    std::int64_t true_lower = 0, true_extent = 0;  // of the bytes that it has
    double parts = 1;                              // of its type map: what making the plan costs
    // Whether the library's MPI_Pack of one element is known to be correct: true if the blocks are in the order of
    // memory and the type has none of what the libraries get wrong, which is empty parts, overlaps, blocks in reverse
    // order (Open MPI 4.1 takes dense ones for contiguous), long double (MPICH does not copy its padding), and complex
    // numbers (library_mispacks_complex).
    bool library_is_right = true;
    status error;  // why there can be no plan
};

// Only what the MPI library reports directly; the other members keep their defaults.
type_facts quick_facts_of(MPI_Datatype datatype);

// All members; false if that takes more than about `budget` numbers to read.
bool facts_of(MPI_Datatype datatype, double budget, type_facts &out);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_FACTS_H
