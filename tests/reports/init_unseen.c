// SPDX-License-Identifier: BSD-3-Clause
//
// MPI is initialised past mpix, as by Fortran bindings that call PMPI_Init. The program is told so at its first
// partitioned call.
#include <mpi.h>
#include <mpix/mpix.h>

int main(int argc, char **argv) {
    int data = 0;
    MPI_Request request;
    PMPI_Init(&argc, &argv);
    MPI_Psend_init(&data, 1, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    PMPI_Finalize();
    return 0;
}
