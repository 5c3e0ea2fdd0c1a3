// SPDX-License-Identifier: BSD-3-Clause
//
// How a datatype was made, as MPI_Type_get_envelope and MPI_Type_get_contents say it.
#ifndef MPIX_HOST_DATATYPE_CONTENTS_H
#define MPIX_HOST_DATATYPE_CONTENTS_H

#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

namespace mpix {

struct type_envelope {
    int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
    std::string_view problem;  // if it cannot be read: why

    // Made of no other datatypes: the named ones, and those of MPI_Type_create_f90_real and its like. Never freed.
    bool is_basic() const;
};
type_envelope envelope_of(MPI_Datatype datatype);

// Of a type that is not basic. The handles of the parts are valid as long as this lives: MPICH gives the same handle for the
// same type, Open MPI a new duplicate each time.
struct type_contents {
    int combiner = MPI_COMBINER_NAMED;
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;

    type_contents() = default;
    type_contents(const type_contents &) = delete;
    type_contents &operator=(const type_contents &) = delete;
    ~type_contents();

    // False, with a sentence in `problem`: the library does not say it.
    bool read(MPI_Datatype datatype, const type_envelope &envelope, std::string &problem);
};

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_CONTENTS_H
