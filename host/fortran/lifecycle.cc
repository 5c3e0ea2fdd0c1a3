// SPDX-License-Identifier: BSD-3-Clause
//
// Start, free, cancel.
#include <mpi.h>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

MPIX_FORTRAN(mpi_start, MPI_START, (fint * request, fint *ierror)) {
    changed_request r(request);
    give(ierror, MPI_Start(r));
}

MPIX_FORTRAN(mpi_startall, MPI_STARTALL, (fint * count, fint *array_of_requests, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    give(ierror, r ? MPI_Startall(*count, r.get()) : no_memory("MPI_Startall"));
}

MPIX_FORTRAN(mpi_request_free, MPI_REQUEST_FREE, (fint * request, fint *ierror)) {
    changed_request r(request);
    give(ierror, MPI_Request_free(r));
}

MPIX_FORTRAN(mpi_cancel, MPI_CANCEL, (fint * request, fint *ierror)) {
    changed_request r(request);
    give(ierror, MPI_Cancel(r));
}
