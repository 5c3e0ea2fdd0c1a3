// SPDX-License-Identifier: BSD-3-Clause
//
// How far a sender runs ahead between nodes: once the receiver has started its first epoch, short messages of 15 more
// epochs are sent while the receiver makes none of its calls, and the next one only after its next Start. Then epochs in
// one direction, without an answer.
#include "tests/errors/expect.h"

enum { data_tag = 61, sent_tag = 62, ahead = 15, streamed = 2000 };

static void send_epoch(MPI_Request *request, double *value, double epoch) {
    *value = epoch;
    OK(MPI_Start(request));
    OK(MPI_Pready(0, *request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void receive_epoch(MPI_Request *request, double *value, double epoch) {
    *value = -1;
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    CHECK(*value == epoch);
}

static void run(void) {
    if (world_rank > 1) return;
    double value = 0;
    int epoch = 1, flag = 0;
    MPI_Request request;
    if (world_rank == 0) {
        OK(MPI_Psend_init(&value, 1, 1, MPI_DOUBLE, 1, data_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (; epoch <= 1 + ahead; ++epoch) send_epoch(&request, &value, epoch);
        value = epoch;
        OK(MPI_Start(&request));
        OK(MPI_Pready(0, request));
        for (int look = 0; look < 1000; ++look) {
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, sent_tag, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (++epoch; epoch <= streamed; ++epoch) send_epoch(&request, &value, epoch);
    } else {
        OK(MPI_Precv_init(&value, 1, 1, MPI_DOUBLE, 0, data_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        receive_epoch(&request, &value, epoch);
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, sent_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (++epoch; epoch <= streamed; ++epoch) receive_epoch(&request, &value, epoch);
    }
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"a sender between nodes runs ahead by 15 epochs", 2, run}};
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
