/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Included before anything else: makes the MPI library look as if it were of MPI 4.1, as far as mpi_4_1.c goes. */
#ifndef MPIX_TESTS_MPI41_MPI_4_1_H
#define MPIX_TESTS_MPI41_MPI_4_1_H

#include <mpix/mpix.h> /* and mpi.h, while it still says how old it is */

#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
#define MPIX_TESTS_OLDER_MPI
#undef MPI_VERSION
#undef MPI_SUBVERSION
#define MPI_VERSION 4
#define MPI_SUBVERSION 1

#ifdef MPIX_TESTS_ARRAYS_WITHOUT_CONST /* as MPICH 4.2.3 and Intel MPI have it */
#define MPIX_TESTS_CONST
#else
#define MPIX_TESTS_CONST const
#endif

#ifdef __cplusplus
extern "C" {
#endif
int MPI_Request_get_status_all(int count, MPIX_TESTS_CONST MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Request_get_status_any(int count, MPIX_TESTS_CONST MPI_Request requests[], int *index, int *flag,
                               MPI_Status *status);
int MPI_Request_get_status_some(int incount, MPIX_TESTS_CONST MPI_Request requests[], int *outcount, int indices[],
                                MPI_Status statuses[]);
int PMPI_Request_get_status_all(int count, MPIX_TESTS_CONST MPI_Request requests[], int *flag, MPI_Status statuses[]);
int PMPI_Request_get_status_any(int count, MPIX_TESTS_CONST MPI_Request requests[], int *index, int *flag,
                                MPI_Status *status);
int PMPI_Request_get_status_some(int incount, MPIX_TESTS_CONST MPI_Request requests[], int *outcount, int indices[],
                                 MPI_Status statuses[]);
#ifdef __cplusplus
}
#endif
#endif

#endif /* MPIX_TESTS_MPI41_MPI_4_1_H */
