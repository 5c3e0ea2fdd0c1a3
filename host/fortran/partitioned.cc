// SPDX-License-Identifier: BSD-3-Clause
//
// The partitioned calls. MPICH's Psend_init and Precv_init, which take a buffer, call ours by themselves.
#include <mpi.h>
#include <mpix/mpix.h>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

#if defined(OPEN_MPI)

MPIX_FORTRAN_BUFFER(mpi_psend_init, MPI_PSEND_INIT,
                    (void *buf, fint *partitions, MPI_Count *count, fint *datatype, fint *dest, fint *tag, fint *comm,
                     fint *info, fint *request, fint *ierror)) {
    MPI_Request made = MPI_REQUEST_NULL;
    const int code = MPI_Psend_init(address_of(buf), *partitions, *count, type_of(datatype), *dest, *tag, comm_of(comm),
                                    info_of(info), &made);
    give_request(ierror, code, request, made);
}

MPIX_FORTRAN_BUFFER(mpi_precv_init, MPI_PRECV_INIT,
                    (void *buf, fint *partitions, MPI_Count *count, fint *datatype, fint *source, fint *tag, fint *comm,
                     fint *info, fint *request, fint *ierror)) {
    MPI_Request made = MPI_REQUEST_NULL;
    const int code = MPI_Precv_init(address_of(buf), *partitions, *count, type_of(datatype), *source, *tag,
                                    comm_of(comm), info_of(info), &made);
    give_request(ierror, code, request, made);
}

#endif

MPIX_FORTRAN(mpi_pready, MPI_PREADY, (fint * partition, fint *request, fint *ierror)) {
    give(ierror, MPI_Pready(*partition, request_of(request)));
}

MPIX_FORTRAN(mpi_pready_range, MPI_PREADY_RANGE,
             (fint * partition_low, fint *partition_high, fint *request, fint *ierror)) {
    give(ierror, MPI_Pready_range(*partition_low, *partition_high, request_of(request)));
}

MPIX_FORTRAN(mpi_pready_list, MPI_PREADY_LIST,
             (fint * length, fint *array_of_partitions, fint *request, fint *ierror)) {
    give(ierror, MPI_Pready_list(*length, array_of_partitions, request_of(request)));
}

MPIX_FORTRAN(mpi_parrived, MPI_PARRIVED, (fint * request, fint *partition, fint *flag, fint *ierror)) {
    made_logical arrived(flag);
    give(ierror, MPI_Parrived(request_of(request), *partition, arrived));
}
