/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an MPI library of 4.1 would have, made of what this one has. A request counts as active if it is not null: the
 * tests give the library no inactive ones. */
#include "tests/mpi41/mpi_4_1.h"

#ifdef MPIX_TESTS_OLDER_MPI

int PMPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    *flag = 1;
    for (int i = 0; i < count && *flag; ++i)
        PMPI_Request_get_status(requests[i], flag, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    int active = 0;
    for (*index = 0; *index < count; ++*index) {
        if (requests[*index] == MPI_REQUEST_NULL) continue;
        active = 1;
        PMPI_Request_get_status(requests[*index], flag, status);
        if (*flag) return MPI_SUCCESS;
    }
    *index = MPI_UNDEFINED;
    *flag = !active;
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_some(int incount, const MPI_Request requests[], int *outcount, int indices[],
                                 MPI_Status statuses[]) {
    int active = 0;
    *outcount = 0;
    for (int i = 0; i < incount; ++i) {
        int flag = 0;
        if (requests[i] == MPI_REQUEST_NULL) continue;
        active = 1;
        PMPI_Request_get_status(requests[i], &flag,
                                statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[*outcount]);
        if (flag) indices[(*outcount)++] = i;
    }
    if (!active) *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

#endif
