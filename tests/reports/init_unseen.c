// SPDX-License-Identifier: BSD-3-Clause
//
// MPI is initialised behind mpix's back, by PMPI_Init. The first partitioned call says so.
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
