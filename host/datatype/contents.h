// SPDX-License-Identifier: BSD-3-Clause
//
// How a datatype was made, as MPI_Type_get_envelope and MPI_Type_get_contents say it.
#ifndef MPIX_HOST_DATATYPE_CONTENTS_H
#define MPIX_HOST_DATATYPE_CONTENTS_H

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>

#include "transport/status.h"

namespace mpix {

inline status unknown_constructor() {
    return failure("the datatype was made by a constructor that mpix does not know");
}

struct type_envelope {
    int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
    status error;  // why its contents cannot be read

    // Predefined types, and those of MPI_Type_create_f90_real and the like. Never freed.
    bool is_basic() const;
};
type_envelope envelope_of(MPI_Datatype datatype);

// For types that are not basic. The handles of the parts are valid during the lifetime of this object: MPICH returns
// the same handle for the same type, Open MPI a new duplicate each time.
class type_contents {
public:
    int combiner = MPI_COMBINER_NAMED;
    std::span<const int> integers;
    std::span<const MPI_Aint> addresses;
    std::span<MPI_Datatype> types;

    type_contents() = default;
    type_contents(const type_contents &) = delete;
    type_contents &operator=(const type_contents &) = delete;
    ~type_contents();

    status read(MPI_Datatype datatype, const type_envelope &envelope);

private:
    // Most types have few.
    template <class T, std::size_t few>
    class list {
    public:
        // Never without an address.
        std::span<T> of(int number) {
            const auto n = static_cast<std::size_t>(number);
            if (n > few) many_ = std::make_unique_for_overwrite<T[]>(n);
            return {n > few ? many_.get() : few_, n};
        }

    private:
        T few_[few];
        std::unique_ptr<T[]> many_;
    };
    list<int, 16> integers_;
    list<MPI_Aint, 4> addresses_;
    list<MPI_Datatype, 4> types_;
};

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_CONTENTS_H
