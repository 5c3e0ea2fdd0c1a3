// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the unit tests that ask the MPI library.
#include <mpi.h>

#include "tests/catch_runner.hpp"

int main(int argc, char **argv) {
    PMPI_Init(&argc, &argv);
    const int result = run_tests(argc, argv);
    PMPI_Finalize();
    return result;
}
