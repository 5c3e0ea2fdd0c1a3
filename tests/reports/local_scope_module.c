// SPDX-License-Identifier: BSD-3-Clause
//
// A module that is linked with mpix, for local_scope.c: epochs of a message to the next rank.
#include <mpi.h>
#include <mpix/mpix.h>
#include <stdio.h>
#include <stdlib.h>

int transfer(void);

enum { partitions = 5, partition_bytes = 700, bytes = partitions * partition_bytes };

static unsigned char byte_of(int rank, int epoch, unsigned seed, int i) {
    return (unsigned char)((unsigned)(i * 31 + rank * 7 + epoch) * 2654435761u + seed) >> 3;
}

int transfer(void) {
    int up = 0, rank = 0, size = 0, wrong = 0;
    char path[16] = "";
    MPI_Comm comm;
    MPI_Request both[2];
    unsigned char *const out = malloc(bytes), *const in = malloc(bytes);
    MPI_Initialized(&up);
    if (!up) MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned seed = (unsigned)MPI_Wtime();
    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, comm);
    const int from = (rank + size - 1) % size;
    MPI_Psend_init(out, partitions, partition_bytes, MPI_BYTE, (rank + 1) % size, 3, comm, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(in, 1, bytes, MPI_BYTE, from, 3, comm, MPI_INFO_NULL, &both[1]);
    for (int epoch = 0; epoch < 20; ++epoch) {
        for (int i = 0; i < bytes; ++i) {
            out[i] = byte_of(rank, epoch, seed, i);
            in[i] = (unsigned char)~byte_of(from, epoch, seed, i);
        }
        MPI_Startall(2, both);
        for (int p = partitions - 1; p >= 0; --p) MPI_Pready(p, both[0]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        for (int i = 0; i < bytes; ++i) wrong += in[i] != byte_of(from, epoch, seed, i);
    }
    MPIX_Request_path(both[1], path, sizeof path);
    printf("rank %d: %d wrong, path %s\n", rank, wrong, path);
    fflush(stdout);
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    MPI_Comm_free(&comm);
    if (!up) MPI_Finalize();
    free(out);
    free(in);
    return wrong != 0;
}
