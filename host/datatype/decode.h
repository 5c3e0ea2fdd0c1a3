// SPDX-License-Identifier: BSD-3-Clause
//
// From MPI datatypes to plans.
#ifndef MPIX_HOST_DATATYPE_DECODE_H
#define MPIX_HOST_DATATYPE_DECODE_H

#include <mpi.h>

#include <memory>
#include <string>

#include "host/datatype/plan.h"

namespace mpix {

// The plan of `datatype`, or null with a sentence in `problem` (see make_plan; or a type made by a constructor that
// MPI_Type_get_contents does not explain). Thread-safe. Kept with the datatype until it is freed.
std::shared_ptr<const plan> plan_of(MPI_Datatype datatype, std::string &problem);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_DECODE_H
