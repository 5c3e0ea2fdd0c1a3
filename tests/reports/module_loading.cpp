// SPDX-License-Identifier: BSD-3-Clause
//
// module_loading <value>: the expected CUDA_MODULE_LOADING when the program's constructors run, before which it cannot
// initialise CUDA; "unset": not set.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static const char *value_now() {
    const char *const value = std::getenv("CUDA_MODULE_LOADING");
    return value == nullptr ? "unset" : value;
}

static const char *const before_main = value_now();

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    const bool same = std::strcmp(before_main, argv[1]) == 0 && std::strcmp(value_now(), argv[1]) == 0;
    std::printf("CUDA_MODULE_LOADING: %s before main, %s after MPI_Init, expected %s\n", before_main, value_now(),
                argv[1]);
    MPI_Finalize();
    return same ? 0 : 1;
}
