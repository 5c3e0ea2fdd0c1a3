// SPDX-License-Identifier: BSD-3-Clause
//
// Compiles and links with nothing but `nvcc -ccbin mpixcxx`; not run.
#include <mpi.h>
#include <mpix/device.cuh>

__global__ void send(MPIX_Prequest request) { MPI_Pready(static_cast<int>(blockIdx.x), request); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    static char byte;
    MPI_Request request;
    MPIX_Prequest exported;
    MPI_Psend_init(&byte, 1, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPIX_Prequest_create(request, MPI_INFO_NULL, &exported);
    send<<<1, 1>>>(exported);
    return MPI_Finalize();
}
