// SPDX-License-Identifier: BSD-3-Clause
//
// Epoch after epoch between two ranks, both ways, every byte checked, until a call fails: then it says with what, and
// ends at once. No other communication goes on meanwhile, so whatever ends it is ours.
#include <mpi.h>
#include <mpix/mpix.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { partitions = 8, count = 5000 };

static int rank;

static void check(const char *call, int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    printf("rank %d ended by: %s: %s\n", rank, call, text);
    fflush(stdout);
    _exit(3);
}
#define CALL(call) check(#call, call)

static int value(int from, long epoch, int i) {
    return (int)((unsigned)epoch * 2654435761u + (unsigned)(from * 977 + i));
}

int main(int argc, char **argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const long last = argc > 1 ? atol(argv[1]) : 0;  // 0: for ever
    static int out[partitions * count], in[partitions * count];
    MPI_Request both[2];
    CALL(MPI_Psend_init(out, partitions, count, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    CALL(MPI_Precv_init(in, partitions, count, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (long epoch = 1; last == 0 || epoch <= last; ++epoch) {
        for (int i = 0; i < partitions * count; ++i) {
            out[i] = value(rank, epoch, i);
            in[i] = ~0;
        }
        CALL(MPI_Startall(2, both));
        for (int p = 0; p < partitions; ++p) CALL(MPI_Pready((p * 3 + rank) % partitions, both[0]));
        for (int i = 0; i < 2; ++i) CALL(MPI_Wait(&both[i], MPI_STATUS_IGNORE));
        for (int i = 0; i < partitions * count; ++i)
            if (in[i] != value(1 - rank, epoch, i)) {
                printf("rank %d: WRONG BYTES in epoch %ld at %d\n", rank, epoch, i);
                fflush(stdout);
                _exit(4);
            }
        if (epoch == 10) {
            char path[16] = "";
            CALL(MPIX_Request_path(both[0], path, sizeof path));
            printf("rank %d running, path %s\n", rank, path);
            fflush(stdout);
        }
    }
    for (int i = 0; i < 2; ++i) CALL(MPI_Request_free(&both[i]));
    printf("rank %d: %ld epochs, all bytes right\n", rank, last);
    MPI_Finalize();
    return 0;
}
