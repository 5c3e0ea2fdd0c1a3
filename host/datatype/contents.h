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

inline constexpr std::string_view unknown_constructor =
    "the datatype was made by a constructor that mpix does not know";

struct type_envelope {
    int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
    std::string_view problem;  // why it cannot be read; else empty

    // Predefined types, and those of MPI_Type_create_f90_real and the like. Never freed.
    bool is_basic() const;
};
type_envelope envelope_of(MPI_Datatype datatype);

// For types that are not basic. The handles of the parts are valid during the lifetime of this object: MPICH returns the same
// handle for the same type, Open MPI a new duplicate each time.
struct type_contents {
    int combiner = MPI_COMBINER_NAMED;
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;

    type_contents() = default;
    type_contents(const type_contents &) = delete;
    type_contents &operator=(const type_contents &) = delete;
    ~type_contents();

    // False, with a sentence in `problem`, if the library does not return the contents.
    bool read(MPI_Datatype datatype, const type_envelope &envelope, std::string &problem);
};

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_CONTENTS_H
