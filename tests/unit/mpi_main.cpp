// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the unit tests that ask the MPI library.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.hpp"

#include <mpi.h>

int main(int argc, char **argv) {
    PMPI_Init(&argc, &argv);
    const int failed = Catch::Session().run(argc, argv);
    PMPI_Finalize();
    return failed != 0;
}
