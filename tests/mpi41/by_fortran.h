/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of MPI 4.1 by the names and with the arguments of Fortran's mpi_f08. */
#ifndef MPIX_TESTS_MPI41_BY_FORTRAN_H
#define MPIX_TESTS_MPI41_BY_FORTRAN_H

#include "tests/mpi41/mpi_4_1.h"

int all_by_fortran(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int any_by_fortran(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int some_by_fortran(int incount, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]);

#define MPI_Request_get_status_all all_by_fortran
#define MPI_Request_get_status_any any_by_fortran
#define MPI_Request_get_status_some some_by_fortran

#endif /* MPIX_TESTS_MPI41_BY_FORTRAN_H */
