// SPDX-License-Identifier: BSD-3-Clause
//
// The completion calls, single and on arrays.
#include <mpi.h>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

MPIX_FORTRAN(mpi_wait, MPI_WAIT, (fint * request, fint *status, fint *ierror)) {
    changed_request r(request);
    changed_status s(status);
    give(ierror, MPI_Wait(r, s));
}

MPIX_FORTRAN(mpi_test, MPI_TEST, (fint * request, fint *flag, fint *status, fint *ierror)) {
    changed_request r(request);
    made_logical done(flag);
    changed_status s(status);
    give(ierror, MPI_Test(r, done, s));
}

MPIX_FORTRAN(mpi_request_get_status, MPI_REQUEST_GET_STATUS, (fint * request, fint *flag, fint *status, fint *ierror)) {
    made_logical done(flag);
    changed_status s(status);
    give(ierror, MPI_Request_get_status(request_of(request), done, s));
}

MPIX_FORTRAN(mpi_waitall, MPI_WAITALL, (fint * count, fint *array_of_requests, fint *array_of_statuses, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    changed_statuses s(*count, array_of_statuses);
    give(ierror, r && s ? MPI_Waitall(*count, r.get(), s.get()) : no_memory("MPI_Waitall"));
}

MPIX_FORTRAN(mpi_testall, MPI_TESTALL,
             (fint * count, fint *array_of_requests, fint *flag, fint *array_of_statuses, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    made_logical done(flag);
    changed_statuses s(*count, array_of_statuses);
    give(ierror, r && s ? MPI_Testall(*count, r.get(), done, s.get()) : no_memory("MPI_Testall"));
}

MPIX_FORTRAN(mpi_waitany, MPI_WAITANY,
             (fint * count, fint *array_of_requests, fint *index, fint *status, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    made_index i(index);
    changed_status s(status);
    give(ierror, r ? MPI_Waitany(*count, r.get(), i, s) : no_memory("MPI_Waitany"));
}

MPIX_FORTRAN(mpi_testany, MPI_TESTANY,
             (fint * count, fint *array_of_requests, fint *index, fint *flag, fint *status, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    made_index i(index);
    made_logical done(flag);
    changed_status s(status);
    give(ierror, r ? MPI_Testany(*count, r.get(), i, done, s) : no_memory("MPI_Testany"));
}

MPIX_FORTRAN(mpi_waitsome, MPI_WAITSOME,
             (fint * incount, fint *array_of_requests, fint *outcount, fint *array_of_indices, fint *array_of_statuses,
              fint *ierror)) {
    changed_requests r(*incount, array_of_requests);
    made_indices i(outcount, array_of_indices);
    changed_statuses s(*incount, array_of_statuses);
    give(ierror, r && s ? MPI_Waitsome(*incount, r.get(), i.count(), i.get(), s.get()) : no_memory("MPI_Waitsome"));
}

MPIX_FORTRAN(mpi_testsome, MPI_TESTSOME,
             (fint * incount, fint *array_of_requests, fint *outcount, fint *array_of_indices, fint *array_of_statuses,
              fint *ierror)) {
    changed_requests r(*incount, array_of_requests);
    made_indices i(outcount, array_of_indices);
    changed_statuses s(*incount, array_of_statuses);
    give(ierror, r && s ? MPI_Testsome(*incount, r.get(), i.count(), i.get(), s.get()) : no_memory("MPI_Testsome"));
}
