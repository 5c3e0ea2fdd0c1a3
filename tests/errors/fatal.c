// SPDX-License-Identifier: BSD-3-Clause
//
// Errors under MPI_ERRORS_ARE_FATAL, which is what a program starts with. `fatal <which>`; the program must
// not get to its end.
#include <mpi.h>
#include <mpix/mpix.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int data[8] = {0}, rank = 0;
    MPI_Request request;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *const which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "tag") == 0) MPI_Psend_init(data, 8, 1, MPI_INT, 0, -4, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Psend_init(data, 8, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (strcmp(which, "freed") == 0) {  // the handler of a communicator that is no more
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Psend_init(data, 8, 1, MPI_INT, rank, 0, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Comm_free(&comm);
        MPI_Pready(11, request);
    }
    if (strcmp(which, "pready") == 0) MPI_Pready(9, request);
    if (strcmp(which, "twice") == 0) {
        MPI_Pready(2, request);
        MPI_Pready(2, request);
    }
    printf("went on after the error\n");
    MPI_Abort(MPI_COMM_WORLD, 0);
    return 0;
}
