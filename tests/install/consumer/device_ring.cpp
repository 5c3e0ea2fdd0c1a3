// SPDX-License-Identifier: BSD-3-Clause
//
// The ring by the device functions, with host threads as blocks: block p writes and sends partition p, waits
// for the left neighbour's and checks it.
#include <atomic>
#include <cstdio>
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>
#include <vector>

namespace {
constexpr int partitions = 4, count = 1000;
}

int main(int argc, char **argv) {
    int provided, rank, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;

    std::vector<int> out(partitions * count), in(partitions * count);
    MPI_Request request[2];
    MPIX_Prequest send, receive;
    MPI_Psend_init(out.data(), partitions, count, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
    MPI_Precv_init(in.data(), partitions, count, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
    MPIX_Prequest_create(request[0], MPI_INFO_NULL, &send);
    MPIX_Prequest_create(request[1], MPI_INFO_NULL, &receive);

    std::atomic<int> wrong{0};
    for (int epoch = 0; epoch < 3; ++epoch) {
        MPI_Startall(2, request);
        mpix::host_launch(partitions, 2, [&](const mpix::host_group &block) {
            const int p = block.group_rank();
            for (int i = block.thread_rank(); i < count; i += block.num_threads())
                out[p * count + i] = (rank * 10 + epoch) * 10 + p;
            if (mpix::pready(block, p, send) != MPI_SUCCESS) ++wrong;
            if (mpix::wait_arrived(block, receive, p) != MPI_SUCCESS) ++wrong;
            for (int i = block.thread_rank(); i < count; i += block.num_threads())
                wrong += in[p * count + i] != (left * 10 + epoch) * 10 + p;
        });
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    MPIX_Prequest_free(&send);
    MPIX_Prequest_free(&receive);
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    MPI_Finalize();
    if (wrong) std::fprintf(stderr, "rank %d: %d wrong values\n", rank, wrong.load());
    return wrong ? 1 : 0;
}
