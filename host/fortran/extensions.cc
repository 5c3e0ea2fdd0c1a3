// SPDX-License-Identifier: BSD-3-Clause
//
// The MPIX_ calls, for the module mpix (bindings/fortran/mpix.F90), which describes them.
#include <mpi.h>
#include <mpix/mpix.h>

#include <cstddef>
#include <cstring>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;

// ---- requests -----------------------------------------------------------------------------------

MPIX_FORTRAN_OURS(mpix_prequest_create, MPIX_PREQUEST_CREATE,
                  (fint * request, fint *info, MPIX_Prequest *preq, fint *ierror)) {
    give(ierror, MPIX_Prequest_create(request_of(request), info_of(info), preq));
}

MPIX_FORTRAN_OURS(mpix_prequest_free, MPIX_PREQUEST_FREE, (MPIX_Prequest * preq, fint *ierror)) {
    give(ierror, MPIX_Prequest_free(preq));
}

MPIX_FORTRAN_OURS(mpix_pbuf_prepare, MPIX_PBUF_PREPARE, (fint * request, fint *ierror)) {
    give(ierror, MPIX_Pbuf_prepare(request_of(request)));
}

MPIX_FORTRAN_OURS(mpix_pbuf_prepare_all, MPIX_PBUF_PREPARE_ALL, (fint * count, fint *array_of_requests, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    give(ierror, r ? MPIX_Pbuf_prepare_all(*count, r.get()) : no_memory("MPIX_Pbuf_prepare_all"));
}

MPIX_FORTRAN_OURS(mpix_request_path, MPIX_REQUEST_PATH, (fint * request, char *path, fint *ierror, std::size_t room)) {
    char word[32] = "";
    const int code = MPIX_Request_path(request_of(request), word, sizeof word);
    if (code == MPI_SUCCESS) give_text(path, room, word, std::strlen(word));
    give(ierror, code);
}

// ---- epochs in the order of a stream ------------------------------------------------------------

MPIX_FORTRAN_OURS(mpix_start_enqueue, MPIX_START_ENQUEUE, (fint * request, CUstream_st **stream, fint *ierror)) {
    give(ierror, MPIX_Start_enqueue(request_of(request), *stream));
}

MPIX_FORTRAN_OURS(mpix_startall_enqueue, MPIX_STARTALL_ENQUEUE,
                  (fint * count, fint *array_of_requests, CUstream_st **stream, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    give(ierror, r ? MPIX_Startall_enqueue(*count, r.get(), *stream) : no_memory("MPIX_Startall_enqueue"));
}

MPIX_FORTRAN_OURS(mpix_pready_enqueue, MPIX_PREADY_ENQUEUE,
                  (fint * partition, fint *request, CUstream_st **stream, fint *ierror)) {
    give(ierror, MPIX_Pready_enqueue(*partition, request_of(request), *stream));
}

MPIX_FORTRAN_OURS(mpix_pready_range_enqueue, MPIX_PREADY_RANGE_ENQUEUE,
                  (fint * partition_low, fint *partition_high, fint *request, CUstream_st **stream, fint *ierror)) {
    give(ierror, MPIX_Pready_range_enqueue(*partition_low, *partition_high, request_of(request), *stream));
}

MPIX_FORTRAN_OURS(mpix_pwait_enqueue, MPIX_PWAIT_ENQUEUE, (fint * request, CUstream_st **stream, fint *ierror)) {
    give(ierror, MPIX_Pwait_enqueue(request_of(request), *stream));
}

MPIX_FORTRAN_OURS(mpix_pwaitall_enqueue, MPIX_PWAITALL_ENQUEUE,
                  (fint * count, fint *array_of_requests, CUstream_st **stream, fint *ierror)) {
    changed_requests r(*count, array_of_requests);
    give(ierror, r ? MPIX_Pwaitall_enqueue(*count, r.get(), *stream) : no_memory("MPIX_Pwaitall_enqueue"));
}

// ---- packing ------------------------------------------------------------------------------------

MPIX_FORTRAN_OURS(mpix_pack_enqueue, MPIX_PACK_ENQUEUE,
                  (void **inbuf, MPI_Count *incount, fint *datatype, void **outbuf, MPI_Count *outsize,
                   MPI_Count *position, fint *comm, CUstream_st **stream, fint *ierror)) {
    give(ierror,
         MPIX_Pack_enqueue(*inbuf, *incount, type_of(datatype), *outbuf, *outsize, position, comm_of(comm), *stream));
}

MPIX_FORTRAN_OURS(mpix_unpack_enqueue, MPIX_UNPACK_ENQUEUE,
                  (void **inbuf, MPI_Count *insize, MPI_Count *position, void **outbuf, MPI_Count *outcount,
                   fint *datatype, fint *comm, CUstream_st **stream, fint *ierror)) {
    give(ierror,
         MPIX_Unpack_enqueue(*inbuf, *insize, position, *outbuf, *outcount, type_of(datatype), comm_of(comm), *stream));
}

MPIX_FORTRAN_OURS(mpix_typemap_create, MPIX_TYPEMAP_CREATE,
                  (fint * datatype, fint *device, MPIX_Typemap *map, fint *ierror)) {
    give(ierror, MPIX_Typemap_create(type_of(datatype), *device, map));
}

MPIX_FORTRAN_OURS(mpix_typemap_free, MPIX_TYPEMAP_FREE, (MPIX_Typemap * map, fint *ierror)) {
    give(ierror, MPIX_Typemap_free(map));
}

// ---- of the module's own ------------------------------------------------------------------------

// An array section whose elements are not next to each other: the compiler would pass a copy, which ends with the call.
MPIX_FORTRAN_OURS(mpix_refuse_section, MPIX_REFUSE_SECTION, (fint * comm, fint *sends, fint *ierror)) {
    give(ierror,
         mpix::raise(comm_of(comm), *sends != 0 ? "MPI_Psend_init" : "MPI_Precv_init", MPI_ERR_BUFFER,
                     "buf is an array section with gaps; pass its first element, and a datatype with the gaps"));
}
