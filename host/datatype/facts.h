// SPDX-License-Identifier: BSD-3-Clause
//
// What is told of a datatype without its plan: much cheaper, if it has many blocks.
#ifndef MPIX_HOST_DATATYPE_FACTS_H
#define MPIX_HOST_DATATYPE_FACTS_H

#include <mpi.h>

#include <cstdint>
#include <string>

namespace mpix {

struct type_facts {
    std::int64_t size = 0, extent = 0;
    std::int64_t true_lower = 0, true_extent = 0;  // of the bytes that it has
    double parts = 1;                              // of its type map: what making the plan costs
    // MPI_Pack of the MPI library does what the standard says, for one element. It does not for all types: with parts that
    // have no bytes, with overlaps or backwards (Open MPI 4.1 takes dense ones for contiguous), with a long double, of whose
    // padding MPICH copies nothing. True: the blocks are in the order of memory, and nothing of this is in it.
    bool library_is_right = true;
    std::string problem;  // if there can be no plan: why
};

// What the MPI library says at once; the rest as it is above.
type_facts quick_facts_of(MPI_Datatype datatype);

// All of it, if it takes no more than about `budget` numbers to be read; otherwise false.
bool facts_of(MPI_Datatype datatype, double budget, type_facts &out);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_FACTS_H
