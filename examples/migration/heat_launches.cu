// SPDX-License-Identifier: BSD-3-Clause
//
// After (docs/migration.md): the host starts and completes the epochs around a kernel for each step, as in heat_acx.cu.
#include "requests.cuh"

namespace {

struct one_step {
    band b;
    int step;
    handles all;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int) const {
        const MPIX_Prequest *const halo = all.of_field[step % 2];
        mpix::pready(block, 0, halo[2]);
        mpix::pready(block, 0, halo[3]);
        update(block, b, step, 2, b.rows - 1);
        mpix::wait_arrived(block, halo[0], 0);
        mpix::wait_arrived(block, halo[1], 0);
        update(block, b, step, 1, 1);
        update(block, b, step, b.rows, b.rows);
    }
};

int run() {
    const band b = allocate_band();
    MPI_Request requests[2][4];
    handles all = make_requests(b, requests);

    for (int step = 0; step < STEPS; ++step) {
        MPI_Startall(4, requests[step % 2]);
        example::launch(1, one_step{b, step, all});
        MPI_Waitall(4, requests[step % 2], MPI_STATUSES_IGNORE);
    }

    free_requests(requests, all);
    print_and_free_band(b);
    return 0;
}

}  // namespace

int main(int argc, char **argv) { return example::with_mpi(argc, argv, run); }
