// SPDX-License-Identifier: BSD-3-Clause
//
// After (docs/migration.md): one kernel does all steps and exchanges the halo, as that of heat_nvshmem.cu does.
#include "requests.cuh"

namespace {

/** All steps, by one block. */
struct steps {
    band b;
    handles all;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int) const {
        for (int step = 0; step < STEPS; ++step) {
            const MPIX_Prequest *const halo = all.of_field[step % 2];
            mpix::pready(block, 0, halo[2]);
            mpix::pready(block, 0, halo[3]);
            update(block, b, step, 2, b.rows - 1);
            mpix::wait_arrived(block, halo[0], 0);
            mpix::wait_arrived(block, halo[1], 0);
            update(block, b, step, 1, 1);
            update(block, b, step, b.rows, b.rows);
            mpix::wait(block, 4, halo);  // the rows that were sent may be written
            block.sync();                // all threads have read the ghost rows
            if (step + 2 < STEPS) mpix::start(block, 4, halo);
        }
    }
};

int run() {
    const band b = allocate_band();
    MPI_Request requests[2][4];
    handles all = make_requests(b, requests);

    for (auto &field : requests) MPI_Startall(4, field);
    example::launch(1, steps{b, all});
    for (auto &field : requests) MPI_Waitall(4, field, MPI_STATUSES_IGNORE);

    free_requests(requests, all);
    print_and_free_band(b);
    return 0;
}

}  // namespace

int main(int argc, char **argv) { return example::with_mpi(argc, argv, run); }
