// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init to MPI_Finalize, and what errors say.
#include <mpi.h>

#include <cstddef>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

MPIX_FORTRAN(mpi_init, MPI_INIT, (fint * ierror)) { give(ierror, MPI_Init(nullptr, nullptr)); }

MPIX_FORTRAN(mpi_init_thread, MPI_INIT_THREAD, (fint * required, fint *provided, fint *ierror)) {
    give(ierror, MPI_Init_thread(nullptr, nullptr, *required, provided));
}

MPIX_FORTRAN(mpi_query_thread, MPI_QUERY_THREAD, (fint * provided, fint *ierror)) {
    give(ierror, MPI_Query_thread(provided));
}

MPIX_FORTRAN(mpi_finalize, MPI_FINALIZE, (fint * ierror)) { give(ierror, MPI_Finalize()); }

MPIX_FORTRAN(mpi_error_class, MPI_ERROR_CLASS, (fint * errorcode, fint *errorclass, fint *ierror)) {
    give(ierror, MPI_Error_class(*errorcode, errorclass));
}

MPIX_FORTRAN(mpi_error_string, MPI_ERROR_STRING,
             (fint * errorcode, char *string, fint *resultlen, fint *ierror, std::size_t room)) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    const int code = MPI_Error_string(*errorcode, text, &length);
    if (code == MPI_SUCCESS)
        *resultlen = static_cast<fint>(give_text(string, room, text, static_cast<std::size_t>(length)));
    give(ierror, code);
}
