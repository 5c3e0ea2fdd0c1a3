// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_HOST_HALO_FORTRAN_FIELDS_H
#define MPIX_HOST_HALO_FORTRAN_FIELDS_H

#include <cstdint>
#include <vector>

#include <mpix/halo.h>

#include "host/halo_fortran/call.h"

namespace mpix::halo {

// The module's type MPIX_Halo_field: as in C, but for the handle of the datatype.
struct fortran_field {
    void *data;
    fint type;
    fint radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_layout layout;
    void *other;
    std::int64_t allocated;
    const MPIX_Halo_allocation *allocations;
    fint allocation_count;
};

MPIX_Halo_field to_c(const fortran_field &f);
std::vector<MPIX_Halo_field> to_c(fint count, const fortran_field fields[]);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FORTRAN_FIELDS_H
