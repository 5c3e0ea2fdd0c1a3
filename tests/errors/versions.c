// SPDX-License-Identifier: BSD-3-Clause
//
// `versions <n>`: world rank 1 claims a version of mpix that is n patches newer than the others'. MPI_Init says so, and by name.
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t newer_by;

// The first call is mpix's, in MPI_Init: its version and the complement.
int PMPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    static int calls;
    int (*library)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm), rank = 0;
    *(void **)&library = dlsym(RTLD_NEXT, "PMPI_Allreduce");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (calls++ != 0 || rank != 1) return library(mine, all, count, type, op, comm);
    const uint64_t version = *(const uint64_t *)mine + (newer_by << 32), told[2] = {version, ~version};
    return library(told, all, count, type, op, comm);
}

int main(int argc, char **argv) {
    int rank = 0;
    newer_by = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d came through\n", rank);
    return MPI_Finalize();
}
