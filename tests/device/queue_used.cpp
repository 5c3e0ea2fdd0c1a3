// SPDX-License-Identifier: BSD-3-Clause
//
// Over a network what host threads mark ready goes by the work queue, and the end of the epoch with it; by the progress
// engine with MPIX_WORK_QUEUE=0, and where MPI_Pready is called on a request that is not exported.
#include <cstdio>
#include <cstdlib>
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>
#include <vector>

namespace {

void require(bool right, const char *what) {
    if (right) return;
    std::fprintf(stderr, "failed: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int main(int argc, char **argv) {
    constexpr int partitions = 12, count = 100;
    int rank = 0, provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *const knob = std::getenv("MPIX_WORK_QUEUE");
    const bool wanted = knob == nullptr || std::atoi(knob) != 0;
    std::vector<int> out(partitions * count), in(partitions * count);
    MPI_Request both[2];
    MPI_Psend_init(out.data(), partitions, count, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(in.data(), partitions, count, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    std::uint64_t epoch = 0;
    const auto fill = [&] {
        ++epoch;
        for (int i = 0; i < partitions * count; ++i) out[i] = static_cast<int>(epoch) * 100000 + 10000 * rank + i;
        for (int &value : in) value = -1;
    };
    const auto check = [&] {
        bool same = true;
        for (int i = 0; i < partitions * count; ++i)
            same = same && in[i] == static_cast<int>(epoch) * 100000 + 10000 * (1 - rank) + i;
        require(same, "the peer's bytes");
    };
    for (int round = 0; round < 2; ++round) {
        fill();
        MPI_Startall(2, both);
        for (int p = 0; p < partitions; ++p) MPI_Pready(p, both[0]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        check();
        MPIX_Prequest send;
        MPIX_Prequest_create(both[0], MPI_INFO_NULL, &send);
        require(send->words->ended < epoch, "what is not exported does not go by the queue");
        for (int e = 0; e < 3; ++e) {
            fill();
            MPI_Startall(2, both);
            MPIX_Pbuf_prepare_all(2, both);  // clear-to-send is there: nothing is deferred
            mpix::host_launch(3, 2, [&](const mpix::host_group &block) {
                for (int p = block.group_rank(); p < partitions; p += 3) mpix::pready(block, p, send);
            });
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
            check();
            require((send->words->ended == epoch) == wanted, "the epoch's end is posted to the queue");
        }
        // Ranges, by groups and by the host: a payload entry each, one for each three flags, and two for the end.
        for (int e = 0; e < 4; ++e) {
            const bool by_host = e % 2 == 0;
            const std::uint64_t before = send->posted;
            fill();
            MPI_Startall(2, both);
            MPIX_Pbuf_prepare_all(2, both);
            if (by_host)
                MPI_Pready_range(0, partitions - 1, both[0]);
            else
                mpix::host_launch(3, 2, [&](const mpix::host_group &block) {
                    const int low = block.group_rank() * 4;
                    require(mpix::pready_range(block, low, low + 3, send) == MPI_SUCCESS, "pready_range");
                });
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
            check();
            require((send->words->ended == epoch) == wanted, "the epoch's end is posted behind ranges");
            require(send->posted - before == (wanted ? (by_host ? 1 + 4 : 3 * (1 + 2)) + 2u : 0u), "entries of ranges");
        }
        MPIX_Prequest_free(&send);
    }
    for (MPI_Request &r : both) MPI_Request_free(&r);
    MPI_Finalize();
    if (rank == 0) std::printf("passed\n");
}
