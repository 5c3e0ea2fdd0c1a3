// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI library's share of the completion calls. Where no thread makes mpix's own progress, these calls make it: they
// test in a loop in place of the library's waits. The handles may be all of a call's, or the library's part of a mixed
// array.
#ifndef MPIX_HOST_COMPLETION_LIBRARY_COMPLETION_H
#define MPIX_HOST_COMPLETION_LIBRARY_COMPLETION_H

#include <mpi.h>
#include <mpix/device.cuh>

#include "host/mpi/mixed_array.h"
#include "host/progress.h"

namespace mpix {

inline bool needs_caller() { return may_be_ours() && progress_needs_caller(); }

// In calls that do not wait.
inline void lend_progress() {
    if (needs_caller()) progress_poll();
}

template <class Test>
void poll_until(const Test &test) {
    for (unsigned round = 0; !test(); ++round) {
        progress_poll();
        if (round % 16 == 15) detail::pause_waiting(round > 4096);
    }
}

int error_class_of(int code);

int wait_library(MPI_Request *handle, MPI_Status *status);
// Each request is tested only once after it has completed, since a generalized request runs a callback of the program
// in each test.
int waitall_library(int count, MPI_Request *handles, MPI_Status *statuses);
int waitany_library(int count, MPI_Request *handles, int *index, MPI_Status *status);
int testany_library(int count, MPI_Request *handles, int *index, int *flag, MPI_Status *status);
int waitsome_library(int count, MPI_Request *handles, int *outcount, int *indices, MPI_Status *statuses);

}  // namespace mpix

#endif  // MPIX_HOST_COMPLETION_LIBRARY_COMPLETION_H
