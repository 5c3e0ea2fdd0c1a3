// SPDX-License-Identifier: BSD-3-Clause
//
// Waits that do not end: the early notice, the peer's state in it, and the stall report, once each. The test checks the
// output.
#include "tests/errors/expect.h"

enum { parts = 4 };

static int data[parts];
static MPI_Request request;

static void init_request(int tag) {
    if (world_rank == 0)
        OK(MPI_Psend_init(data, parts, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(data, parts, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
}

static void start(void) {
    OK(MPI_Start(&request));
    if (world_rank == 0) OK(MPI_Pready_range(0, parts - 1, request));
}

static void await_other_rank(void) {
    MPI_Request all;
    int here = 0;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &all));
    while (!here) OK(MPI_Test(&all, &here, MPI_STATUS_IGNORE));
}

// Each side waits for the other, with another tag.
static void wrong_tag(void) {
    init_request(world_rank == 0 ? 1 : 5);
    start();
    EXPECT(MPI_ERR_PENDING,
           world_rank == 0 ? "rank 1 has an unmatched receive with tag 5" : "rank 0 has an unmatched send with tag 1",
           MPI_Wait(&request, MPI_STATUS_IGNORE));
    await_other_rank();  // and active the requests remain
}

// Several, and one on another communicator.
static void others(void) {
    MPI_Comm twin;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    if (world_rank == 0) {
        MPI_Request more[2];
        init_request(1);
        OK(MPI_Psend_init(data, parts, 1, MPI_INT, 1, 7, twin, MPI_INFO_NULL, &more[0]));
        OK(MPI_Psend_init(data, parts, 1, MPI_INT, 1, 5, twin, MPI_INFO_NULL, &more[1]));
        await_other_rank();
        OK(MPI_Request_free(&more[0]));
        OK(MPI_Request_free(&more[1]));
        OK(MPI_Request_free(&request));
    } else {
        init_request(5);
        start();
        EXPECT(MPI_ERR_PENDING,
               "rank 0 has 3 unmatched sends: tag 1, tag 7 on another communicator, tag 5 on another communicator",
               MPI_Wait(&request, MPI_STATUS_IGNORE));
        await_other_rank();
    }
    OK(MPI_Comm_free(&twin));
}

// The sender is there, and has done part of what it has to.
static void half_ready(void) {
    init_request(3);
    for (int epoch = 1; epoch <= 2; ++epoch) {
        if (world_rank == 0) {
            if (epoch == 1) {
                OK(MPI_Start(&request));
                OK(MPI_Pready_range(1, 2, request));
            }
            await_other_rank();
            if (epoch == 1) OK(MPI_Pready(0, request));
            if (epoch == 1) OK(MPI_Pready(3, request));
            if (epoch == 2) start();
        } else {
            OK(MPI_Start(&request));
            EXPECT(MPI_ERR_PENDING,
                   epoch == 1 ? "rank 0 has called MPI_Start once; 2 of 4 partitions not ready: 0, 3"
                              : "rank 0 has completed epoch 1, but not called MPI_Start since",
                   MPI_Wait(&request, MPI_STATUS_IGNORE));
            await_other_rank();
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
}

// The receiver has not called MPI_Start.
static void not_started(void) {
    init_request(3);
    if (world_rank == 0) {
        start();
        EXPECT(MPI_ERR_PENDING, "the receiver has not called MPI_Start", MPI_Wait(&request, MPI_STATUS_IGNORE));
        await_other_rank();
    } else {
        await_other_rank();
        OK(MPI_Start(&request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

// The other process has made no request, and so has no progress thread, and is in a call of the MPI library's.
static void no_answer(void) {
    if (world_rank == 1) {
        init_request(4);
        start();
        EXPECT(MPI_ERR_PENDING, "rank 0 does not answer", MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

// With the default handler, which ends the program.
static void fatal(void) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    if (world_rank == 1) {
        init_request(4);
        start();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 1 - world_rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"a wrong tag", 2, wrong_tag},   {"others", 2, others},       {"half ready", 2, half_ready},
        {"not started", 2, not_started}, {"no answer", 2, no_answer}, {"fatal", 2, fatal},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
