// SPDX-License-Identifier: BSD-3-Clause
//
// Host threads that run kernels' code with MPIX_PROGRESS=never: host_launch makes all progress while they wait,
// including setup.
//
// progress_never stall: the program's own threads wait while it makes no MPI call; the stall report gives the reason.
#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr int partitions = 4, n = 1000;
int rank, size;

int value(int source, int epoch, int p, int i) { return ((source * 100 + epoch) * 100 + p) * 10000 + i; }

void require(bool good, const char *what) {
    if (good) return;
    std::fprintf(stderr, "rank %d: failed: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int main(int argc, char **argv) {
    const bool stall = argc > 1 && std::strcmp(argv[1], "stall") == 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    static int out[partitions * n], in[partitions * n];
    const int peer = size - 1 - rank;
    MPI_Request both[2];
    MPIX_Prequest send, receive;
    MPI_Psend_init(out, partitions, n, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(in, partitions, n, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    MPIX_Prequest_create(both[0], MPI_INFO_NULL, &send);
    MPIX_Prequest_create(both[1], MPI_INFO_NULL, &receive);
    if (stall) {
        MPI_Startall(2, both);
        int code = MPI_SUCCESS;
        std::thread([&] { code = mpix::wait_arrived(mpix::this_thread(), receive, 0); }).join();
        require(code == MPI_ERR_PENDING, "the wait is over at its deadline");
        code = MPI_Wait(&both[1], MPI_STATUS_IGNORE);
        int error_class = MPI_SUCCESS;
        MPI_Error_class(code, &error_class);
        require(error_class == MPI_ERR_PENDING, "MPI_Wait says so");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Pready_range(0, partitions - 1, both[0]);
        require(MPI_Waitall(2, both, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall");
    }
    for (int epoch = 1; !stall && epoch <= 3; ++epoch) {
        std::memset(in, 0xa5, sizeof in);
        MPI_Startall(2, both);
        mpix::host_launch(partitions, 2, [&](const mpix::host_group &block) {
            const int p = block.group_rank();
            for (int i = block.thread_rank(); i < n; i += block.num_threads())
                out[p * n + i] = value(rank, epoch, p, i);
            require(mpix::pready(block, p, send) == MPI_SUCCESS, "pready");
            require(mpix::wait_arrived(block, receive, p) == MPI_SUCCESS, "wait_arrived");
            for (int i = block.thread_rank(); i < n; i += block.num_threads())
                require(in[p * n + i] == value(peer, epoch, p, i), "the data");
        });
        require(MPI_Waitall(2, both, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "MPI_Waitall");
    }
    MPIX_Prequest_free(&send);
    MPIX_Prequest_free(&receive);
    for (MPI_Request &request : both) MPI_Request_free(&request);
    MPI_Finalize();
    if (rank == 0) std::puts("passed");
    return 0;
}
