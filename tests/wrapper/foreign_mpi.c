/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands for an MPI library that mpix was not built for: it only says its name. */
#include <string.h>

int PMPI_Get_library_version(char *version, int *length);

int PMPI_Get_library_version(char *version, int *length) {
    strcpy(version, "Some other MPI 9.9\nsecond line");
    *length = (int)strlen(version);
    return 0;
}
