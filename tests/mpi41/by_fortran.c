/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A Fortran program's part: handles are integers, statuses arrays of them, elements of arrays are numbered from 1. */
#include "tests/mpi41/by_fortran.h"

#include <stddef.h>

enum { most = 8, status_size = sizeof(MPI_Status) / sizeof(MPI_Fint) };

void mpi_request_get_status_all_f08_(const MPI_Fint *count, const MPI_Fint requests[], MPI_Fint *flag,
                                     MPI_Fint statuses[], MPI_Fint *ierror);
void mpi_request_get_status_any_f08_(const MPI_Fint *count, const MPI_Fint requests[], MPI_Fint *index, MPI_Fint *flag,
                                     MPI_Fint status[], MPI_Fint *ierror);
void mpi_request_get_status_some_f08_(const MPI_Fint *incount, const MPI_Fint requests[], MPI_Fint *outcount,
                                      MPI_Fint indices[], MPI_Fint statuses[], MPI_Fint *ierror);

/* Of the library's Fortran, which it may have been built without. */
#ifdef OPEN_MPI
#define IGNORED MPI_F_STATUSES_IGNORE
#else
#pragma weak MPI_F08_STATUSES_IGNORE
#define IGNORED (&MPI_F08_STATUSES_IGNORE ? (MPI_Fint *)MPI_F08_STATUSES_IGNORE : NULL)
#endif

struct arguments {
    MPI_Fint requests[most], own_statuses[most * status_size], *statuses, ierror;
};

static void make(struct arguments *a, int count, const MPI_Request requests[], MPI_Status statuses[], int n) {
    a->ierror = -1;
    a->statuses = a->own_statuses;
    for (int i = 0; i < count; ++i) a->requests[i] = MPI_Request_c2f(requests[i]);
    if (statuses == MPI_STATUSES_IGNORE && IGNORED) a->statuses = IGNORED;
    for (int i = 0; i < n && statuses != MPI_STATUSES_IGNORE; ++i)
        MPI_Status_c2f(&statuses[i], a->statuses + i * status_size);
}

static void give_statuses(const struct arguments *a, MPI_Status statuses[], int n) {
    for (int i = 0; i < n && statuses != MPI_STATUSES_IGNORE; ++i)
        MPI_Status_f2c(a->statuses + i * status_size, &statuses[i]);
}

int all_by_fortran(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    struct arguments a;
    make(&a, count, requests, statuses, count);
    mpi_request_get_status_all_f08_(&count, a.requests, flag, a.statuses, &a.ierror);
    give_statuses(&a, statuses, count);
    return a.ierror;
}

int any_by_fortran(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    struct arguments a;
    make(&a, count, requests, status, 1);
    mpi_request_get_status_any_f08_(&count, a.requests, index, flag, a.statuses, &a.ierror);
    give_statuses(&a, status, 1);
    if (*index != MPI_UNDEFINED) --*index;
    return a.ierror;
}

int some_by_fortran(int incount, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {
    struct arguments a;
    make(&a, incount, requests, statuses, incount);
    mpi_request_get_status_some_f08_(&incount, a.requests, outcount, indices, a.statuses, &a.ierror);
    give_statuses(&a, statuses, incount);
    for (int i = 0; i < *outcount; ++i) --indices[i];
    return a.ierror;
}
