// SPDX-License-Identifier: BSD-3-Clause
//
// The names under which Fortran programs call MPI. Open MPI's routines, of mpif.h and of both modules, call the library
// by PMPI_ names, and so do those of MPICH's mpi_f08: mpix would not see them. So it defines these routines itself, by
// its own MPI_ functions. MPICH's others call MPI_ names: mpif.h, the module mpi, and what takes a buffer in mpi_f08.
//
// Every argument is the address of a variable, which is null for an `ierror` left out; the length of a text comes last,
// by value. A derived type of mpi_f08 is, in memory, the integer or the integers of mpif.h.
#ifndef MPIX_HOST_FORTRAN_NAMES_H
#define MPIX_HOST_FORTRAN_NAMES_H

#include <mpi.h>

#include "host/mpi/symbol.h"

#define MPIX_FORTRAN_ALIAS(name, of, parameters) MPIX_SYMBOL void name parameters __attribute__((alias(#of)))

// MPIX_FORTRAN_EXTERNAL(mpi_start, MPI_START, (parameters)) { body } defines a routine by the names that compilers give to
// an external procedure.
#define MPIX_FORTRAN_EXTERNAL(lower, UPPER, parameters)  \
    MPIX_SYMBOL void lower##_ parameters;                \
    MPIX_FORTRAN_ALIAS(lower, lower##_, parameters);     \
    MPIX_FORTRAN_ALIAS(lower##__, lower##_, parameters); \
    MPIX_FORTRAN_ALIAS(UPPER, lower##_, parameters);     \
    MPIX_SYMBOL void lower##_ parameters

// And by that of the specific procedure in mpi_f08, or in the module mpix.
#define MPIX_FORTRAN_OURS(lower, UPPER, parameters)         \
    MPIX_SYMBOL void lower##_ parameters;                   \
    MPIX_FORTRAN_ALIAS(lower##_f08_, lower##_, parameters); \
    MPIX_FORTRAN_EXTERNAL(lower, UPPER, parameters)

// A routine of MPI without a buffer: by those of its names that mpix would not see otherwise.
#if defined(OPEN_MPI)
#define MPIX_FORTRAN(lower, UPPER, parameters) MPIX_FORTRAN_OURS(lower, UPPER, parameters)
#else
#define MPIX_FORTRAN(lower, UPPER, parameters) MPIX_SYMBOL void lower##_f08_ parameters
#endif

// Open MPI's with a buffer. From version 6 on mpi_f08 passes a descriptor in place of the address.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 6
#define MPIX_FORTRAN_BUFFER(lower, UPPER, parameters) MPIX_FORTRAN_EXTERNAL(lower, UPPER, parameters)
#elif defined(OPEN_MPI)
#define MPIX_FORTRAN_BUFFER(lower, UPPER, parameters) MPIX_FORTRAN_OURS(lower, UPPER, parameters)
#endif

#endif  // MPIX_HOST_FORTRAN_NAMES_H
