// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's datatypes and operations in the C++ interface's terms.
#ifndef MPIX_HOST_HALO_C_TYPES_H
#define MPIX_HOST_HALO_C_TYPES_H

#include <mpi.h>

#include <cstddef>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

// A failure begins with "type". Predefined arithmetic types have arithmetic, all others are bytes.
status convert(MPI_Datatype type, std::size_t &bytes, value_type &made);
status convert(MPI_Op op, reduction &made);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_C_TYPES_H
