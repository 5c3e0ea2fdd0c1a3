// SPDX-License-Identifier: BSD-3-Clause
//
// All ranks wait in kernels for a receive whose tag nobody sends, and no MPI call waits. Played by host threads.
#include <cstdio>
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

int main(int argc, char **argv) {
    int rank = 0, in = -1, out = 1, code = MPI_SUCCESS;
    MPI_Request both[2];
    MPIX_Prequest receive;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Psend_init(&out, 1, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(&in, 1, 1, MPI_INT, 1 - rank, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    MPIX_Prequest_create(both[1], MPI_INFO_NULL, &receive);
    MPI_Startall(2, both);
    MPI_Pready(0, both[0]);
    mpix::host_launch(1, 1, [&](const mpix::host_group &block) { code = mpix::wait_arrived(block, receive, 0); });
    std::printf("rank %d: wait_arrived gave up: %d\n", rank, code == MPI_ERR_PENDING);
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 5);
}
