/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands in front of the MPI library's own mpi.h when a program is compiled with mpixcc or mpixcxx, so
 * that a program which includes nothing but <mpi.h> sees the MPI-4 partitioned calls. */
#ifndef MPIX_COMPAT_MPI_H
#define MPIX_COMPAT_MPI_H
#include_next <mpi.h>
#include <mpix/mpix.h>
#endif
