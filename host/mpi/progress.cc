// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_Progress.
#include <mpi.h>
#include <mpix/mpix.h>

#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/progress.h"
#include "host/wireup/wireup.h"

using namespace mpix;

MPIX_SYMBOL int MPIX_Progress(void) try {
    if (!setup_running() || !progress_is_callers()) return 0;
    if (!setup_thread_safe()) {
        // Of MPI_THREAD_SERIALIZED other threads may be in MPI now, and only the program knows.
        int level = MPI_THREAD_SERIALIZED, main_thread = 0;
        if (PMPI_Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_SERIALIZED) return 0;
        if (PMPI_Is_thread_main(&main_thread) != MPI_SUCCESS || !main_thread) return 0;
    }
    progress_poll();
    return 1;
}
MPIX_BOUNDARY("MPIX_Progress", of_world())
