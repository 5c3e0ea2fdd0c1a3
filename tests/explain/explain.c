// SPDX-License-Identifier: BSD-3-Clause
//
// explain <what>: one pair of requests from rank 0 to rank 1, for what MPIX_EXPLAIN prints of it. Passes whatever that
// is, and whether or not the pair can work.
#include <mpi.h>
#include <mpix/mpix.h>
#include <stdio.h>
#include <string.h>

enum { partitions = 8, count = 512, tag = 7 };

static double buffer[2 * partitions * count];

int main(int argc, char **argv) {
    const char *const what = argc > 1 ? argv[1] : "";
    int rank, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "halo of the north side, with a name that is too long for a line");
    MPI_Datatype column;
    MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Request request;
    const int gaps = strcmp(what, "gaps") == 0 || (strcmp(what, "receiver_gaps") == 0 && rank == 1);
    const MPI_Datatype type = gaps ? column : MPI_DOUBLE;
    MPI_Count n = gaps ? 1 : count;
    if (strcmp(what, "size") == 0 && rank == 1) n = count / 2;
    const int peer = strcmp(what, "null") == 0 ? MPI_PROC_NULL : 1 - rank;
    const int init = rank == 0 ? MPI_Psend_init(buffer, partitions, n, type, peer, tag, comm, MPI_INFO_NULL, &request)
                               : MPI_Precv_init(buffer, partitions, n, type, peer, tag, comm, MPI_INFO_NULL, &request);
    // Neither need be there any more when the table is printed.
    MPI_Type_free(&column);
    if (init != MPI_SUCCESS) failed = 1;
    for (int epoch = 0; !failed && epoch < 3; ++epoch) {
        MPI_Start(&request);
        if (rank == 0) MPI_Pready_range(0, partitions - 1, request);
        if (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    }
    if (!failed) MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    printf("rank %d came through\n", rank);
    MPI_Finalize();
    return failed;
}
