// SPDX-License-Identifier: BSD-3-Clause
//
// Before (docs/migration.md): partitioned calls of mpi-acx 0.3 in a kernel for each step. Needs no mpix.
#include <mpi-acx.h>

#include "band.cuh"

struct handles {
    MPIX_Prequest halo[4];  // from above, from below, to below, to above
};

__global__ void one_step(band b, int step, handles of_field) {
    const auto block = cooperative_groups::this_thread_block();
    const MPIX_Prequest *const halo = of_field.halo;
    if (block.thread_rank() == 0) {
        MPIX_Pready(0, halo[2]);
        MPIX_Pready(0, halo[3]);
    }
    update(block, b, step, 2, b.rows - 1);
    if (block.thread_rank() == 0) {
        for (int i = 0; i < 2; ++i)
            for (int arrived = 0; !arrived;) MPIX_Parrived(halo[i], 0, &arrived);
        __threadfence_system();
    }
    block.sync();
    update(block, b, step, 1, 1);
    update(block, b, step, b.rows, b.rows);
}

int main(int argc, char **argv) {
    int provided, rank, gpus;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cudaGetDeviceCount(&gpus);
    cudaSetDevice(rank % gpus);
    if (MPIX_Init() != 0) MPI_Abort(MPI_COMM_WORLD, 1);

    band b = own_band();
    // In host memory: to move a GPU's, the MPI library may need CUDA, for which the waiting kernel leaves no room.
    for (double *&field : b.fields) cudaMallocHost(&field, b.field_cells() * sizeof(double));
    std::vector<double> rows = first_rows(b);
    cudaMemcpy(b.row(0, 1), rows.data(), rows.size() * sizeof(double), cudaMemcpyDefault);

    MPIX_Request requests[2][4];
    handles all[2];
    for (int f = 0; f < 2; ++f) {
        const MPI_Comm world = MPI_COMM_WORLD;
        MPIX_Request *const r = requests[f];
        const int down = 2 * f, up = down + 1;  // tags
        MPIX_Precv_init(b.row(f, 0), 1, COLUMNS, MPI_DOUBLE, b.above, down, world, MPI_INFO_NULL, &r[0]);
        MPIX_Precv_init(b.row(f, b.rows + 1), 1, COLUMNS, MPI_DOUBLE, b.below, up, world, MPI_INFO_NULL, &r[1]);
        MPIX_Psend_init(b.row(f, b.rows), 1, COLUMNS, MPI_DOUBLE, b.below, down, world, MPI_INFO_NULL, &r[2]);
        MPIX_Psend_init(b.row(f, 1), 1, COLUMNS, MPI_DOUBLE, b.above, up, world, MPI_INFO_NULL, &r[3]);
        for (int i = 0; i < 4; ++i) MPIX_Prequest_create(r[i], &all[f].halo[i]);
    }

    for (int step = 0; step < STEPS; ++step) {
        MPI_Status statuses[4];
        MPIX_Startall(4, requests[step % 2]);
        one_step<<<1, 128>>>(b, step, all[step % 2]);
        cudaDeviceSynchronize();
        MPIX_Waitall(4, requests[step % 2], statuses);
    }

    cudaMemcpy(rows.data(), b.row(STEPS, 1), rows.size() * sizeof(double), cudaMemcpyDefault);
    print_rows(b, rows);
    for (int f = 0; f < 2; ++f)
        for (int i = 0; i < 4; ++i) {
            MPIX_Prequest_free(&all[f].halo[i]);
            MPIX_Request_free(&requests[f][i]);
        }
    for (double *field : b.fields) cudaFreeHost(field);
    MPIX_Finalize();
    MPI_Finalize();
    return 0;
}
