// SPDX-License-Identifier: BSD-3-Clause
//
// From MPI datatypes to plans.
#ifndef MPIX_HOST_DATATYPE_DECODE_H
#define MPIX_HOST_DATATYPE_DECODE_H

#include <mpi.h>

#include <memory>

#include "host/datatype/facts.h"
#include "host/datatype/plan.h"

namespace mpix {

// The plan of `datatype`, or null with a failure in `error` (see make_plan; or a type made by a constructor that
// MPI_Type_get_contents does not explain). Thread-safe. Kept with the datatype until it is freed.
std::shared_ptr<const plan> plan_of(MPI_Datatype datatype, status &error);

// The plan of a basic type, which is always committed, if it has been made before; otherwise null. Calls no MPI
// function.
std::shared_ptr<const plan> basic_plan_at_hand(MPI_Datatype datatype);

// The plan, if it has been made before; otherwise null.
std::shared_ptr<const plan> plan_at_hand(MPI_Datatype datatype);

// Whether the MPI library should pack `count` elements of host memory since they are few bytes and it is known to pack
// them correctly; true only if there is no plan at hand. Then `facts` says what the library reports directly. The type
// may be uncommitted: the library says so.
bool library_packs_small(MPI_Datatype datatype, std::int64_t count, type_facts &facts);

// Without a plan at hand: whether the MPI library should pack `count` elements of host memory, either because making
// the plan would take longer than it would have saved so far, or because no plan is possible (facts.error). Then
// `facts` is set. Each such call counts towards making the plan.
bool library_packs_sooner(MPI_Datatype datatype, std::int64_t count, type_facts &facts);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_DECODE_H
