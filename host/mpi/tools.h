// SPDX-License-Identifier: BSD-3-Clause
//
// Other libraries that interpose MPI calls ("tools"), such as profilers. A tool behind mpix sees the calls that mpix
// passes on. A tool in front must pass its calls on to mpix, by RTLD_NEXT: to PMPI_Wait a partitioned request is
// inactive.
#ifndef MPIX_HOST_MPI_TOOLS_H
#define MPIX_HOST_MPI_TOOLS_H

#include <mpi.h>

#include "transport/status.h"

namespace mpix {

// The functions that calls are passed on to: the MPI library's, or those of a tool behind mpix. mpix itself calls the
// library by PMPI_ names, so the tool sees neither these calls nor handles of partitioned requests.
struct next_functions {
#define MPIX_PASSED_ON(name) decltype(&PMPI_##name) name = PMPI_##name;
#define MPIX_OWN(name)
#include "host/mpi/interposed.def"
#undef MPIX_PASSED_ON
#undef MPIX_OWN
};
// Written by find_tools only, in MPI_Init.
extern next_functions next;

void find_tools();
// Whether a tool behind us wraps MPI_Init and not MPI_Init_thread.
bool tool_wants_init();

// A failure names a library in front of mpix that does not pass its calls on. `init`: the present call.
status tool_in_front(const char *init);
// The failure of a call where MPI is initialised although mpix has not seen MPI_Init.
status init_unseen();

}  // namespace mpix

#endif  // MPIX_HOST_MPI_TOOLS_H
