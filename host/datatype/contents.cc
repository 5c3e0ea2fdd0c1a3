// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/contents.h"

namespace mpix {

bool type_envelope::is_basic() const {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

type_envelope envelope_of(MPI_Datatype datatype) {
    type_envelope e;
#if MPI_VERSION >= 4
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    const int code = PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &e.combiner);
    if (code == MPI_SUCCESS && counts != 0)
        e.error =
            failure("the datatype was made by a constructor with large counts (..._c), which mpix does not read yet");
    e.integers = static_cast<int>(integers);
    e.addresses = static_cast<int>(addresses);
    e.types = static_cast<int>(types);
#else
    const int code = PMPI_Type_get_envelope(datatype, &e.integers, &e.addresses, &e.types, &e.combiner);
#endif
    if (code != MPI_SUCCESS) e.error = failure("MPI_Type_get_envelope failed");
    return e;
}

type_contents::~type_contents() {
    for (MPI_Datatype &part : types)
        if (!envelope_of(part).is_basic()) PMPI_Type_free(&part);  // MPI_Type_get_contents made a new reference
}

status type_contents::read(MPI_Datatype datatype, const type_envelope &envelope) {
    combiner = envelope.combiner;
    const auto i = integers_.of(envelope.integers);
    const auto a = addresses_.of(envelope.addresses);
    const auto t = types_.of(envelope.types);
    if (PMPI_Type_get_contents(datatype, envelope.integers, envelope.addresses, envelope.types, i.data(), a.data(),
                               t.data()) != MPI_SUCCESS)
        return failure("MPI_Type_get_contents does not explain the datatype");
    integers = i;
    addresses = a;
    types = t;
    if (types.empty() && combiner != MPI_COMBINER_STRUCT) return unknown_constructor();
    return {};
}

}  // namespace mpix
