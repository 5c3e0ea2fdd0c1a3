// SPDX-License-Identifier: BSD-3-Clause
//
// `versions <n>`: world rank 1 claims a version of mpix that is n patches newer than the others'. MPI_Init says so, and
// by name. `versions late`: it does not come before rank 0 has said twice that it waits.
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t newer_by;
static int late;
static char said[64];  // a file: what rank 0 says meanwhile

static int has_said(const char *what) {
    char text[4096] = "";
    FILE *const file = fopen(said, "r");
    if (file == NULL) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, what) != NULL;
}

// Rank 0 says it to a file, and rank 1 looks there.
static void come_late(int rank) {
    int number = (int)getpid();
    PMPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(said, sizeof said, "versions_late_%d", number);
    if (rank == 0 && (freopen(said, "w", stderr) == NULL || setvbuf(stderr, NULL, _IONBF, 0) != 0)) exit(2);
    PMPI_Barrier(MPI_COMM_WORLD);
    while (rank == 1 && !(has_said("WAITING in MPI_Init for") && has_said("STALL in MPI_Init"))) usleep(1000);
}

// The first call is mpix's, in MPI_Init: its version and the complement.
int PMPI_Iallreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request) {
    static int calls;
    static uint64_t told[2];
    int (*library)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *), rank = 0;
    *(void **)&library = dlsym(RTLD_NEXT, "PMPI_Iallreduce");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (calls++ != 0) return library(mine, all, count, type, op, comm, request);
    if (late) come_late(rank);
    told[0] = *(const uint64_t *)mine + (rank == 1 ? newer_by << 32 : 0);
    told[1] = ~told[0];
    return library(told, all, count, type, op, comm, request);
}

int main(int argc, char **argv) {
    int rank = 0;
    late = argc > 1 && strcmp(argv[1], "late") == 0;
    newer_by = argc > 1 && !late ? strtoull(argv[1], NULL, 10) : 0;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (late && rank == 0) {
        puts(has_said("not all processes have called it, or some run without mpix") ? "rank 0 has waited and said so"
                                                                                    : "rank 0 has said something else");
        remove(said);
    }
    printf("rank %d came through\n", rank);
    return MPI_Finalize();
}
