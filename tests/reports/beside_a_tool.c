// SPDX-License-Identifier: BSD-3-Clause
//
// Run with a profiling library: partitioned and ordinary messages between two ranks, completed one by one and together.
// `beside_a_tool threads` calls MPI_Init_thread.
#include <mpi.h>
#include <mpix/mpix.h>
#include <stdio.h>
#include <string.h>

enum { partitions = 4, count = 8, epochs = 3, tag = 5, plain_tag = 6 };

static int rank, wrong;

#ifdef TAKES_ADDRESSES
// In a program at fixed addresses this makes the linker put a stub of the function into the program.
typedef int wait_function(MPI_Request *, MPI_Status *);
static wait_function *volatile pointer;
static wait_function *take_address(void) {
    pointer = MPI_Wait;
    return pointer;
}
#define MPI_Wait take_address()
#endif

static int value(int from, int epoch, int i) { return 1000000 * (from + 1) + 1000 * epoch + i; }

static void run(MPI_Comm comm) {
    static int out[partitions * count], in[partitions * count], sent, got;
    MPI_Request all[5] = {MPI_REQUEST_NULL};
    MPI_Status statuses[5];
    MPI_Psend_init(out, partitions, count, MPI_INT, 1 - rank, tag, comm, MPI_INFO_NULL, &all[1]);
    MPI_Precv_init(in, partitions, count, MPI_INT, 1 - rank, tag, comm, MPI_INFO_NULL, &all[3]);
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        for (int i = 0; i < partitions * count; ++i) {
            out[i] = value(rank, epoch, i);
            in[i] = -1;
        }
        sent = out[0];
        got = -1;
        MPI_Start(&all[1]);
        MPI_Start(&all[3]);
        MPI_Irecv(&got, 1, MPI_INT, 1 - rank, plain_tag, comm, &all[2]);
        MPI_Isend(&sent, 1, MPI_INT, 1 - rank, plain_tag, comm, &all[4]);
        MPI_Pready_range(0, partitions - 1, all[1]);
        if (epoch == 1) {  // two waits that mpix passes on
            for (int i = 1; i < 5; ++i) MPI_Wait(&all[i], &statuses[i]);
        } else {  // one, for two requests
            MPI_Waitall(5, all, statuses);
        }
        wrong += got != value(1 - rank, epoch, 0) || statuses[2].MPI_TAG != plain_tag;
        wrong += statuses[3].MPI_TAG != tag || statuses[3].MPI_SOURCE != 1 - rank;
        for (int i = 0; i < partitions * count; ++i) wrong += in[i] != value(1 - rank, epoch, i);
        MPI_Wait(&all[3], MPI_STATUS_IGNORE);  // inactive, and still nothing to the tool
        MPI_Waitall(2, &all[3], MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&all[1]);
    MPI_Request_free(&all[3]);
}

int main(int argc, char **argv) {
    int provided = 0;
    MPI_Comm comm;
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    run(comm);
    MPI_Comm_free(&comm);
    printf("rank %d: %d wrong\n", rank, wrong);
    fflush(stdout);
    MPI_Finalize();
    return wrong != 0;
}
