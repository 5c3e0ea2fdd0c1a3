// SPDX-License-Identifier: BSD-3-Clause
//
// Waits that run into MPIX_STALL_SECONDS: the error, what can still be done then, and (checked by the test that
// runs this) the report.
#include "tests/errors/expect.h"

enum { tag = 33, parts = 8 };

static int data[parts * 2];
static MPI_Request request;

static void tell(int rank) { OK(MPI_Send(NULL, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD)); }
static void hear(int rank) { OK(MPI_Recv(NULL, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

static void init_request(void) {
    if (world_rank == 0)
        OK(MPI_Psend_init(data, parts, 2, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(data, parts, 2, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
}

// The receiver waits, in every blocking call, for a partition that comes only after it has complained.
static void missing_partition(void) {
    init_request();
    for (int epoch = 1; epoch <= 4; ++epoch) {
        for (int i = 0; i < parts * 2; ++i) data[i] = world_rank == 0 ? epoch * 100 + i : -1;
        OK(MPI_Start(&request));
        if (world_rank == 0) {
            OK(MPI_Pready_range(0, 2, request));
            OK(MPI_Pready_range(4, 7, request));
            hear(1);
            if (epoch == 2) tell(1);
            OK(MPI_Pready(3, request));
        } else {
            MPI_Status status;
            MPI_Request late = MPI_REQUEST_NULL;
            int index, n, indices[1];
            if (epoch == 1) {
                EXPECT(MPI_ERR_PENDING, "not arrived: 3", MPI_Wait(&request, &status));
            } else if (epoch == 2) {
                // The library's is late as well: nobody waits for it any more, and it stays as it is.
                OK(MPI_Irecv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &late));
                MPI_Request all[] = {late, request, MPI_REQUEST_NULL};
                MPI_Status statuses[3];
                EXPECT(MPI_ERR_IN_STATUS, "not arrived: 3", MPI_Waitall(3, all, statuses));
                CHECK(statuses[0].MPI_ERROR == MPI_ERR_PENDING && statuses[1].MPI_ERROR == MPI_ERR_PENDING);
                CHECK(statuses[2].MPI_ERROR == MPI_SUCCESS);
                CHECK(all[0] == late && all[1] == request);
                char text[MPI_MAX_ERROR_STRING];
                OK(MPI_Error_string(statuses[1].MPI_ERROR, text, &n));
                CHECK(strstr(text, "not arrived: 3") != NULL);
            } else if (epoch == 3) {
                EXPECT(MPI_ERR_PENDING, "not arrived: 3", MPI_Waitany(1, &request, &index, &status));
            } else {
                EXPECT(MPI_ERR_PENDING, "not arrived: 3", MPI_Waitsome(1, &request, &n, indices, &status));
            }
            int flag = 1;
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));  // still active
            CHECK(!flag);
            tell(0);
            OK(MPI_Wait(&late, MPI_STATUS_IGNORE));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < parts * 2; ++i) CHECK(data[i] == epoch * 100 + i);
    }
    OK(MPI_Request_free(&request));
}

// The sender itself has forgotten one.
static void forgotten_partition(void) {
    init_request();
    OK(MPI_Start(&request));
    if (world_rank == 0) {
        OK(MPI_Pready_range(1, 4, request));
        OK(MPI_Pready_range(6, 7, request));
        EXPECT(MPI_ERR_PENDING, "2 of 8 partitions not ready: 0, 5", MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Pready(5, request));
        OK(MPI_Pready(0, request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        tell(1);
    } else {
        hear(0);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
}

// Nobody is there, at first.
static void lonely(void) {
    for (int late = 0; late < 2; ++late) {
        if (world_rank != late) {
            init_request();
            OK(MPI_Start(&request));
            if (world_rank == 0) OK(MPI_Pready_range(0, parts - 1, request));
            EXPECT(MPI_ERR_PENDING, world_rank == 0 ? "no matching receive" : "no matching send",
                   MPI_Wait(&request, MPI_STATUS_IGNORE));
            EXPECT(MPI_ERR_PENDING, world_rank == 0 ? "no matching receive" : "no matching send",
                   MPIX_Pbuf_prepare(request));
            tell(late);
        } else {
            hear(1 - late);
            init_request();
            OK(MPI_Start(&request));
            if (world_rank == 0) OK(MPI_Pready_range(0, parts - 1, request));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
}

// The receiver has not started this epoch.
static void late_start(void) {
    init_request();
    for (int epoch = 1; epoch <= 2; ++epoch) {
        if (world_rank == 0) {
            OK(MPI_Start(&request));
            EXPECT(MPI_ERR_PENDING,
                   epoch == 1 ? "the receiver has not called MPI_Start"
                              : "the receiver has called MPI_Start once, but not for this epoch",
                   MPIX_Pbuf_prepare(request));
            tell(1);
            OK(MPIX_Pbuf_prepare(request));
            OK(MPI_Pready_range(0, parts - 1, request));
        } else {
            hear(0);
            OK(MPI_Start(&request));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
}

// The deadline is for active requests of ours. Rank 0 gives up twice, so rank 1 has waited for longer than one deadline
// when the ordinary message comes.
static void slow_message(void) {
    init_request();
    for (int epoch = 1; epoch <= 2; ++epoch) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (world_rank == 0) {
            OK(MPI_Start(&request));
            EXPECT(MPI_ERR_PENDING, "not ready", MPI_Wait(&request, MPI_STATUS_IGNORE));
            EXPECT(MPI_ERR_PENDING, "not ready", MPI_Wait(&request, MPI_STATUS_IGNORE));
            tell(1);
            OK(MPI_Pready_range(0, parts - 1, request));
        } else {
            MPI_Request some[] = {request, MPI_REQUEST_NULL};
            int index = -1, n = -1;
            OK(MPI_Irecv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &some[1]));
            if (epoch == 1)
                OK(MPI_Waitany(2, some, &index, MPI_STATUS_IGNORE));
            else
                OK(MPI_Waitsome(2, some, &n, &index, MPI_STATUSES_IGNORE));
            CHECK(index == 1 && some[1] == MPI_REQUEST_NULL);
            OK(MPI_Start(&request));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
}

static void await_path(const char *wanted) {
    char path[32] = "";
    UNTIL(strcmp(path, wanted) == 0) OK(MPIX_Request_path(request, path, sizeof path));
}

// The peer frees its request: before it has started it, and after an epoch.
static void freed_by_the_peer(void) {
    init_request();
    if (world_rank == 1) {
        OK(MPI_Start(&request));
        EXPECT(MPI_ERR_PENDING, "rank 0 has not called MPI_Start", MPI_Wait(&request, MPI_STATUS_IGNORE));
        tell(0);
        await_path("unmatched");
        EXPECT(MPI_ERR_PENDING, "rank 0 has freed its send, and no other matching send has been found",
               MPI_Wait(&request, MPI_STATUS_IGNORE));
        char text[MPI_MAX_ERROR_STRING];
        int length;
        OK(MPI_Error_string(MPI_ERR_PENDING, text, &length));
        CHECK(strstr(text, "has not called MPI_Start") == NULL);
        tell(0);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        tell(0);
        hear(0);
        OK(MPI_Start(&request));
        EXPECT(MPI_ERR_PENDING, "rank 0 has freed its send", MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        hear(1);
        OK(MPI_Request_free(&request));
        hear(1);
        init_request();
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, parts - 1, request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        hear(1);
        OK(MPI_Request_free(&request));
        tell(1);
    }
    // Rank 1's is active still; MPI_Finalize must end nevertheless.
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"a missing partition", 2, missing_partition},
        {"a forgotten partition", 2, forgotten_partition},
        {"no partner", 2, lonely},
        {"a late start", 2, late_start},
        {"a slow message", 2, slow_message},
        {"freed by the peer", 2, freed_by_the_peer},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
