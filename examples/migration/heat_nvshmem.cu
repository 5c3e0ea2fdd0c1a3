// SPDX-License-Identifier: BSD-3-Clause
//
// Before (docs/migration.md): one kernel does all steps, and puts its rows with a signal by NVSHMEM. Needs no mpix.
#include <nvshmem.h>
#include <nvshmemx.h>

#include "band.cuh"

__global__ void steps(band b, uint64_t *arrived, int rows_above) {
    const auto block = cooperative_groups::this_thread_block();
    for (int step = 0; step < STEPS; ++step) {
        nvshmemx_double_put_signal_nbi_block(b.row(step, 0), b.row(step, b.rows), COLUMNS, &arrived[0], step + 1,
                                             NVSHMEM_SIGNAL_SET, b.below);
        nvshmemx_double_put_signal_nbi_block(b.row(step, rows_above + 1), b.row(step, 1), COLUMNS, &arrived[1],
                                             step + 1, NVSHMEM_SIGNAL_SET, b.above);
        update(block, b, step, 2, b.rows - 1);
        if (block.thread_rank() == 0) {
            nvshmem_signal_wait_until(&arrived[0], NVSHMEM_CMP_GE, step + 1);
            nvshmem_signal_wait_until(&arrived[1], NVSHMEM_CMP_GE, step + 1);
        }
        block.sync();
        update(block, b, step, 1, 1);
        update(block, b, step, b.rows, b.rows);
        if (block.thread_rank() == 0) nvshmem_quiet();
        block.sync();
    }
}

int main(int argc, char **argv) {
    int rank, ranks, gpus, rows_above;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    cudaGetDeviceCount(&gpus);
    cudaSetDevice(rank % gpus);
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (rank == 0) nvshmemx_get_uniqueid(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(rank, ranks, &id, &attributes);
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);

    band b = own_band();
    MPI_Sendrecv(&b.rows, 1, MPI_INT, b.below, 0, &rows_above, 1, MPI_INT, b.above, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    // As much on each rank: the neighbours' rows are where this rank's would be.
    const std::size_t most = static_cast<std::size_t>(COLUMNS / ranks + 3) * COLUMNS;
    for (double *&field : b.fields) field = static_cast<double *>(nvshmem_malloc(most * sizeof(double)));
    uint64_t *arrived = static_cast<uint64_t *>(nvshmem_malloc(2 * sizeof *arrived));
    std::vector<double> rows = first_rows(b);
    cudaMemcpy(b.row(0, 1), rows.data(), rows.size() * sizeof(double), cudaMemcpyDefault);
    cudaMemset(arrived, 0, 2 * sizeof *arrived);
    cudaDeviceSynchronize();
    nvshmem_barrier_all();

    void *arguments[] = {&b, &arrived, &rows_above};
    nvshmemx_collective_launch(reinterpret_cast<const void *>(steps), 1, 128, arguments, 0, nullptr);
    cudaDeviceSynchronize();

    cudaMemcpy(rows.data(), b.row(STEPS, 1), rows.size() * sizeof(double), cudaMemcpyDefault);
    print_rows(b, rows);
    nvshmem_free(arrived);
    for (double *field : b.fields) nvshmem_free(field);
    nvshmem_finalize();
    MPI_Finalize();
    return 0;
}
