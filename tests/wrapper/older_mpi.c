/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The partitioned calls of an MPI library that has them by name only: who gets here was not interposed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int refuse(const char *call) {
    fprintf(stderr, "%s was not taken over by the preloaded library\n", call);
    abort();
}

int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    (void)buf, (void)partitions, (void)count, (void)datatype, (void)dest, (void)tag, (void)comm, (void)info;
    (void)request;
    return refuse("MPI_Psend_init");
}

int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    (void)buf, (void)partitions, (void)count, (void)datatype, (void)source, (void)tag, (void)comm, (void)info;
    (void)request;
    return refuse("MPI_Precv_init");
}

int MPI_Pready(int partition, MPI_Request request) {
    (void)partition, (void)request;
    return refuse("MPI_Pready");
}

int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
    (void)partition_low, (void)partition_high, (void)request;
    return refuse("MPI_Pready_range");
}

int MPI_Parrived(MPI_Request request, int partition, int *flag) {
    (void)request, (void)partition, (void)flag;
    return refuse("MPI_Parrived");
}
