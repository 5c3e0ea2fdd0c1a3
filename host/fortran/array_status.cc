// SPDX-License-Identifier: BSD-3-Clause
//
// Request_get_status on arrays, where the MPI library has it.
#include <mpi.h>

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

MPIX_FORTRAN(mpi_request_get_status_all, MPI_REQUEST_GET_STATUS_ALL,
             (fint * count, fint *array_of_requests, fint *flag, fint *array_of_statuses, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    made_logical done(flag);
    changed_statuses s(*count, array_of_statuses);
    give(ierror,
         r && s ? MPI_Request_get_status_all(*count, r.get(), done, s.get()) : no_memory("MPI_Request_get_status_all"));
}

MPIX_FORTRAN(mpi_request_get_status_any, MPI_REQUEST_GET_STATUS_ANY,
             (fint * count, fint *array_of_requests, fint *index, fint *flag, fint *status, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    made_index i(index);
    made_logical done(flag);
    changed_status s(status);
    give(ierror, r ? MPI_Request_get_status_any(*count, r.get(), i, done, s) : no_memory("MPI_Request_get_status_any"));
}

MPIX_FORTRAN(mpi_request_get_status_some, MPI_REQUEST_GET_STATUS_SOME,
             (fint * incount, fint *array_of_requests, fint *outcount, fint *array_of_indices, fint *array_of_statuses,
              fint *ierror)) {
    changed_requests r(*incount, array_of_requests);
    made_indices i(outcount, array_of_indices);
    changed_statuses s(*incount, array_of_statuses);
    give(ierror, r && s ? MPI_Request_get_status_some(*incount, r.get(), i.count(), i.get(), s.get())
                        : no_memory("MPI_Request_get_status_some"));
}

#endif
