/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An MPI-4 program that knows nothing of mpix: rank 0 sends to rank 1, whose partitions are coarser, and
 * gets an answer by an ordinary receive in the same Waitall. Valid C and C++. */
#include <mpi.h>
#include <stdio.h>

#ifdef DECLARE_PARTITIONED
/* What an MPI-4 <mpi.h> has; said again where the header is of an older MPI. */
int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Pready(int partition, MPI_Request request);
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request);
int MPI_Parrived(MPI_Request request, int partition, int *flag);
#endif

enum { SEND_PARTITIONS = 12, SEND_COUNT = 100, RECV_PARTITIONS = 4, RECV_COUNT = 300, EPOCHS = 5 };

static double data[SEND_PARTITIONS * SEND_COUNT];

static double value(int epoch, int i) { return epoch * 10000.0 + i; }

static int send_all(void) {
    MPI_Request request[2];
    int answer, wrong = 0;
    MPI_Psend_init(data, SEND_PARTITIONS, SEND_COUNT, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
    for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
        MPI_Start(&request[0]);
        MPI_Irecv(&answer, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &request[1]);
        for (int i = 0; i < SEND_PARTITIONS * SEND_COUNT; ++i) data[i] = value(epoch, i);
        MPI_Pready_range(6, SEND_PARTITIONS - 1, request[0]);
        for (int p = 5; p >= 0; --p) MPI_Pready(p, request[0]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        wrong += answer != epoch;
    }
    MPI_Request_free(&request[0]);
    return wrong;
}

static int receive_all(void) {
    MPI_Request request;
    int wrong = 0;
    MPI_Precv_init(data, RECV_PARTITIONS, RECV_COUNT, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
        MPI_Start(&request);
        for (int p = 0; p < RECV_PARTITIONS; ++p) {
            int arrived = 0;
            while (!arrived) MPI_Parrived(request, p, &arrived);
            for (int i = p * RECV_COUNT; i < (p + 1) * RECV_COUNT; ++i) wrong += data[i] != value(epoch, i);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&epoch, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    }
    MPI_Request_free(&request);
    return wrong;
}

int main(int argc, char **argv) {
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) wrong = send_all();
    if (rank == 1) wrong = receive_all();
    MPI_Finalize();
    if (wrong) fprintf(stderr, "rank %d: %d wrong values\n", rank, wrong);
    return wrong ? 1 : 0;
}
