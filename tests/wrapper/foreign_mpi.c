/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands for the MPI library that mpix was not built for: it only says its name, at length. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#ifdef OPEN_MPI
static const char name[] = "MPICH Version: 9.9";
#else
static const char name[] = "Open MPI v9.9";
#endif

int PMPI_Get_library_version(char *version, int *length) {
    const int n = sprintf(version, "%s\n", name);
    memset(version + n, 'x', 8000);
    version[n + 8000] = '\0';
    *length = n + 8000;
    return 0;
}
