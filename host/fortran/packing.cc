// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack, MPI_Unpack, MPI_Pack_size. MPICH's Pack and Unpack, which take a buffer, call ours by themselves.
#include <mpi.h>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

MPIX_FORTRAN(mpi_pack_size, MPI_PACK_SIZE, (fint * incount, fint *datatype, fint *comm, fint *size, fint *ierror)) {
    give(ierror, MPI_Pack_size(*incount, type_of(datatype), comm_of(comm), size));
}

#if defined(OPEN_MPI)

MPIX_FORTRAN_BUFFER(mpi_pack, MPI_PACK,
                    (void *inbuf, fint *incount, fint *datatype, void *outbuf, fint *outsize, fint *position,
                     fint *comm, fint *ierror)) {
    give(ierror, MPI_Pack(address_of(inbuf), *incount, type_of(datatype), address_of(outbuf), *outsize, position,
                          comm_of(comm)));
}

MPIX_FORTRAN_BUFFER(mpi_unpack, MPI_UNPACK,
                    (void *inbuf, fint *insize, fint *position, void *outbuf, fint *outcount, fint *datatype,
                     fint *comm, fint *ierror)) {
    give(ierror, MPI_Unpack(address_of(inbuf), *insize, position, address_of(outbuf), *outcount, type_of(datatype),
                            comm_of(comm)));
}

#endif

#if MPI_VERSION >= 4

// By the name that the standard gives it, and by MPICH's.
MPIX_SYMBOL void mpi_pack_size_c_f08_(MPI_Count *incount, fint *datatype, fint *comm, MPI_Count *size, fint *ierror) {
    give(ierror, MPI_Pack_size_c(*incount, type_of(datatype), comm_of(comm), size));
}
MPIX_FORTRAN_ALIAS(mpi_pack_size_f08_large_, mpi_pack_size_c_f08_,
                   (MPI_Count * incount, fint *datatype, fint *comm, MPI_Count *size, fint *ierror));

#endif
