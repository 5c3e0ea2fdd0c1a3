// SPDX-License-Identifier: BSD-3-Clause
//
// The partitioned calls. MPICH's Psend_init and Precv_init, which take a buffer, call ours by themselves.
#include <mpi.h>
#include <mpix/mpix.h>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

#if defined(OPEN_MPI)
namespace {

void init(bool sends, void *buf, const fint *partitions, const MPI_Count *count, const fint *datatype, const fint *peer,
          const fint *tag, const fint *comm, MPI_Info info, fint *request, fint *ierror) {
    MPI_Request made = MPI_REQUEST_NULL;
    void *const buffer = address_of(buf);
    const int code =
        sends ? MPI_Psend_init(buffer, *partitions, *count, type_of(datatype), *peer, *tag, comm_of(comm), info, &made)
              : MPI_Precv_init(buffer, *partitions, *count, type_of(datatype), *peer, *tag, comm_of(comm), info, &made);
    give_request(ierror, code, request, made);
}

}  // namespace

// The specific procedures of mpi_f08 have the arguments that mpi_f08 declares.
#if MPIX_F08_INIT_TAKES_INFO
#define MPIX_FORTRAN_INIT MPIX_FORTRAN_BUFFER
#else
#define MPIX_FORTRAN_INIT MPIX_FORTRAN_EXTERNAL

MPIX_SYMBOL void mpi_psend_init_f08_(void *buf, fint *partitions, MPI_Count *count, fint *datatype, fint *dest,
                                     fint *tag, fint *comm, fint *request, fint *ierror) {
    init(true, buf, partitions, count, datatype, dest, tag, comm, MPI_INFO_NULL, request, ierror);
}
MPIX_SYMBOL void mpi_precv_init_f08_(void *buf, fint *partitions, MPI_Count *count, fint *datatype, fint *source,
                                     fint *tag, fint *comm, fint *request, fint *ierror) {
    init(false, buf, partitions, count, datatype, source, tag, comm, MPI_INFO_NULL, request, ierror);
}
#endif

MPIX_FORTRAN_INIT(mpi_psend_init, MPI_PSEND_INIT,
                  (void *buf, fint *partitions, MPI_Count *count, fint *datatype, fint *dest, fint *tag, fint *comm,
                   fint *info, fint *request, fint *ierror)) {
    init(true, buf, partitions, count, datatype, dest, tag, comm, info_of(info), request, ierror);
}

MPIX_FORTRAN_INIT(mpi_precv_init, MPI_PRECV_INIT,
                  (void *buf, fint *partitions, MPI_Count *count, fint *datatype, fint *source, fint *tag, fint *comm,
                   fint *info, fint *request, fint *ierror)) {
    init(false, buf, partitions, count, datatype, source, tag, comm, info_of(info), request, ierror);
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
