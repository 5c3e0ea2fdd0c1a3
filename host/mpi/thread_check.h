// SPDX-License-Identifier: BSD-3-Clause
//
// With MPIX_CHECK=1: calls from a thread that the thread level does not allow. Each entry point begins with
//
//     MPIX_CHECK_THREAD("MPI_Start", of_request(request));
//
// except those that MPI allows in any thread at every level (MPI_Query_thread, MPI_Error_class, MPI_Error_string).
#ifndef MPIX_HOST_MPI_THREAD_CHECK_H
#define MPIX_HOST_MPI_THREAD_CHECK_H

#include "host/mpi/boundary.h"

namespace mpix {

// Whether there is anything to check. Written in MPI_Init only.
inline constinit bool checks_threads = false;

// In MPI_Init, by the thread that calls it; `level` is what the program was told.
void start_thread_check(int level);

bool called_by_wrong_thread();
status wrong_thread();
[[gnu::cold]] int raise_wrong_thread(const char *call, const boundary::place &where);

}  // namespace mpix

#define MPIX_CHECK_THREAD(call, where)                                                        \
    do {                                                                                      \
        using namespace mpix::boundary;                                                       \
        if (mpix::checks_threads) [[unlikely]]                                                \
            if (mpix::called_by_wrong_thread()) return mpix::raise_wrong_thread(call, where); \
    } while (0)

#endif  // MPIX_HOST_MPI_THREAD_CHECK_H
