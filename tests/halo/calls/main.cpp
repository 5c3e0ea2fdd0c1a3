// SPDX-License-Identifier: BSD-3-Clause
//
// What the calls answer, and what is wrong gets a sentence that names it, on all ranks. On two ranks.
//
//   calls [stall | unmapped | by_host]
#include <mpi.h>

#include <string>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &halo_test::rank);
    if (argc > 1 && argv[1] == std::string("unmapped")) {
        unmapped_memory();
    } else if (argc > 1 && argv[1] == std::string("by_host")) {
        by_host();
    } else if (argc > 1) {
        stalls();
        made_late();
        never_started();
    } else {
        grids();
        exchanges();
        answers();
        own_memory();
        arrays();
        staggered();
        several_boxes();
        order_of_sums();
        in_stream();
        destroyed_arrays();
    }
    const int status = halo_test::any_failures();
    MPI_Finalize();
    return status;
}
