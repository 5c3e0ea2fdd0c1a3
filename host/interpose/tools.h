// SPDX-License-Identifier: BSD-3-Clause
//
// Other libraries that interpose MPI calls, such as profilers. Those behind mpix see the calls that it passes on. One
// that comes before it must pass its calls on to it, by RTLD_NEXT: PMPI_Wait takes a partitioned request for an inactive one.
#ifndef MPIX_HOST_INTERPOSE_TOOLS_H
#define MPIX_HOST_INTERPOSE_TOOLS_H

#include <mpi.h>

#include <string>

namespace mpix {

// Where calls are passed on to: the MPI library, or a tool that is loaded between mpix and it. mpix's own calls of the
// library are PMPI_ calls; the tool sees none of them, and no handle of a partitioned request.
struct next_functions {
#define MPIX_PASSED_ON(name) decltype(&PMPI_##name) name = PMPI_##name;
#define MPIX_OWN(name)
#include "host/interpose/interposed.def"
#undef MPIX_PASSED_ON
#undef MPIX_OWN
};
// Written by find_tools only, in MPI_Init.
extern next_functions next;

void find_tools();
// Whether a tool behind us wraps MPI_Init and not MPI_Init_thread.
bool tool_wants_init();

// Empty, or a sentence about the library that hides a function of ours from the program, which has called `init`.
std::string tool_in_front(const char *init);
// Why MPI is initialised, but not by way of our MPI_Init.
std::string why_init_unseen();

}  // namespace mpix

#endif  // MPIX_HOST_INTERPOSE_TOOLS_H
