// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_HOST_HALO_FORTRAN_SENTENCES_H
#define MPIX_HOST_HALO_FORTRAN_SENTENCES_H

#include <string>

namespace mpix::halo {

// A sentence of a C function with the names and numbers that a Fortran program knows: fields(1)%radius for
// fields[0].radius, arguments for the members of structures that Fortran does not have, and cells and positions from 1.
std::string in_fortran(std::string sentence);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FORTRAN_SENTENCES_H
