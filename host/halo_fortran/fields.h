// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_HOST_HALO_FORTRAN_FIELDS_H
#define MPIX_HOST_HALO_FORTRAN_FIELDS_H

#include <cstdint>
#include <string>
#include <vector>

#include <mpix/halo.h>

#include "host/halo/collective.h"
#include "host/halo_fortran/call.h"
#include "transport/status.h"

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
    fint axes;  // of the array, without that of the components; 0: not known
};

MPIX_Halo_field to_c(const fortran_field &f);
std::vector<MPIX_Halo_field> to_c(fint count, const fortran_field fields[]);

// Fails if the array has more axes than the grid's domain; `name` is the field's.
status check_axes(const mpix_halo_grid &grid, const fortran_field &field, const std::string &name);
// The same of all fields of the exchanges that `call` makes; returns what it is to return. Collective, unless the grid
// is null: the function of C does not know the axes, and all ranks learn of the error.
int check_axes(const char *call, collective_call kind, MPIX_Halo_grid grid, fint count, const fortran_field fields[]);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FORTRAN_FIELDS_H
