// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 12: every erroneous call gives its class and its sentence, and does no harm.
#include <stdlib.h>

#include "tests/errors/expect.h"

enum { tag = 4, parts = 8, count = 3 };

static int data[parts * count], more[parts * count];
static MPI_Request both[2], plain;

static void make_pair(void) {
    OK(MPI_Psend_init(data, parts, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(more, parts / 2, 2 * count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    OK(MPI_Recv_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plain));
}

static void fill(int epoch) {
    for (int i = 0; i < parts * count; ++i) {
        data[i] = world_rank * 10000 + epoch * 100 + i;
        more[i] = -1;
    }
}

static void check(int epoch) {
    for (int i = 0; i < parts * count; ++i) CHECK(more[i] == left_rank * 10000 + epoch * 100 + i);
}

// The requests still work, whatever was refused before.
static void run_epoch(int epoch) {
    fill(epoch);
    OK(MPI_Startall(2, both));
    OK(MPI_Pready_range(0, parts - 1, both[0]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    check(epoch);
}

static void free_pair(void) {
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    OK(MPI_Request_free(&plain));
}

static void no_wildcards(void) {
    MPI_Request r = MPI_REQUEST_NULL;
    const MPI_Comm world = MPI_COMM_WORLD;
    EXPECT(MPI_ERR_RANK, "MPI_ANY_SOURCE",
           MPI_Precv_init(data, 2, 1, MPI_INT, MPI_ANY_SOURCE, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TAG, "MPI_ANY_TAG", MPI_Precv_init(data, 2, 1, MPI_INT, 0, MPI_ANY_TAG, world, MPI_INFO_NULL, &r));
    CHECK(r == MPI_REQUEST_NULL);
    make_pair();
    run_epoch(1);
    free_pair();
}

static void negative_partitions(void) {
    static const int wrong[] = {-1, -3, -2147483647};
    MPI_Request r = MPI_REQUEST_NULL;
    const MPI_Comm world = MPI_COMM_WORLD;
    for (int i = 0; i < 3; ++i) {
        EXPECT(MPI_ERR_ARG, "partitions is -",
               MPI_Psend_init(data, wrong[i], 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
        EXPECT(MPI_ERR_ARG, "partitions is -",
               MPI_Precv_init(data, wrong[i], 0, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    }
    CHECK(r == MPI_REQUEST_NULL);
}

static void init_arguments(void) {
    MPI_Request r = MPI_REQUEST_NULL;
    const MPI_Comm world = MPI_COMM_WORLD;
    int *bound = NULL, found = 0, rank_count = world_size;
    OK(MPI_Comm_get_attr(world, MPI_TAG_UB, &bound, &found));
    CHECK(found);

    EXPECT(MPI_ERR_ARG, "partitions is -3", MPI_Psend_init(data, -3, 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Psend_init(data, 2, -1, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_COUNT, "count",
           MPI_Psend_init(data, 1 << 30, (MPI_Count)1 << 40, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TYPE, "datatype", MPI_Psend_init(data, 2, 1, MPI_DATATYPE_NULL, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_RANK, "dest is", MPI_Psend_init(data, 2, 1, MPI_INT, rank_count, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_RANK, "dest is -77", MPI_Psend_init(data, 2, 1, MPI_INT, -77, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_RANK, "dest is", MPI_Psend_init(data, 2, 1, MPI_INT, MPI_ANY_SOURCE, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TAG, "tag is", MPI_Psend_init(data, 2, 1, MPI_INT, 0, -5, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TAG, "tag is", MPI_Psend_init(data, 2, 1, MPI_INT, 0, MPI_ANY_TAG, world, MPI_INFO_NULL, &r));
    if (*bound < 2147483647)
        EXPECT(MPI_ERR_TAG, "tag is", MPI_Psend_init(data, 2, 1, MPI_INT, 0, *bound + 1, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_COMM, "comm is", MPI_Psend_init(data, 2, 1, MPI_INT, 0, tag, MPI_COMM_NULL, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_BUFFER, "buf is", MPI_Psend_init(NULL, 2, 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_REQUEST, "request is", MPI_Psend_init(data, 2, 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, NULL));

    EXPECT(MPI_ERR_ARG, "partitions is -1", MPI_Precv_init(data, -1, 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_COUNT, "count is -9", MPI_Precv_init(data, 2, -9, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TYPE, "datatype", MPI_Precv_init(data, 2, 1, MPI_DATATYPE_NULL, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_RANK, "source is", MPI_Precv_init(data, 2, 1, MPI_INT, rank_count, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_RANK, "MPI_ANY_SOURCE",
           MPI_Precv_init(data, 2, 1, MPI_INT, MPI_ANY_SOURCE, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TAG, "MPI_ANY_TAG", MPI_Precv_init(data, 2, 1, MPI_INT, 0, MPI_ANY_TAG, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_TAG, "tag is", MPI_Precv_init(data, 2, 1, MPI_INT, 0, -20, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_COMM, "comm is", MPI_Precv_init(data, 2, 1, MPI_INT, 0, tag, MPI_COMM_NULL, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_BUFFER, "buf is", MPI_Precv_init(NULL, 2, 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_REQUEST, "request is", MPI_Precv_init(data, 2, 1, MPI_INT, 0, tag, world, MPI_INFO_NULL, NULL));
    CHECK(r == MPI_REQUEST_NULL);

    make_pair();  // none of the refused ones has taken a place in the order
    run_epoch(1);
    free_pair();
}

static void pready(void) {
    int list[] = {1, 2, 3}, wrong[] = {0, parts}, again[] = {5, 6, 5};
    make_pair();
    EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPI_Pready(0, MPI_REQUEST_NULL));
    EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPI_Pready_range(0, 1, MPI_REQUEST_NULL));
    EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPI_Pready_list(3, list, MPI_REQUEST_NULL));
    EXPECT(MPI_ERR_REQUEST, "not a partitioned send", MPI_Pready(0, plain));
    EXPECT(MPI_ERR_REQUEST, "partitioned receive", MPI_Pready(0, both[1]));
    for (int epoch = 1; epoch <= 3; ++epoch) {
        // Not started, or complete: inactive.
        EXPECT(MPI_ERR_REQUEST, "not been started", MPI_Pready(0, both[0]));
        EXPECT(MPI_ERR_REQUEST, "not been started", MPI_Pready_range(0, parts - 1, both[0]));
        EXPECT(MPI_ERR_REQUEST, "not been started", MPI_Pready_list(3, list, both[0]));
        fill(epoch);
        OK(MPI_Startall(2, both));
        EXPECT(MPI_ERR_REQUEST, "partitioned receive", MPI_Pready_range(0, 1, both[1]));
        EXPECT(MPI_ERR_ARG, "partition -1", MPI_Pready(-1, both[0]));
        EXPECT(MPI_ERR_ARG, "partition 8 is not within 0 to 7", MPI_Pready(parts, both[0]));
        EXPECT(MPI_ERR_ARG, "2147483647", MPI_Pready(2147483647, both[0]));
        EXPECT(MPI_ERR_ARG, "-1 to 2", MPI_Pready_range(-1, 2, both[0]));
        EXPECT(MPI_ERR_ARG, "6 to 8", MPI_Pready_range(6, parts, both[0]));
        EXPECT(MPI_ERR_ARG, "partition_low 5 is above partition_high 4", MPI_Pready_range(5, 4, both[0]));
        EXPECT(MPI_ERR_ARG, "length is -1", MPI_Pready_list(-1, list, both[0]));
        EXPECT(MPI_ERR_ARG, "array_of_partitions", MPI_Pready_list(2, NULL, both[0]));
        OK(MPI_Pready(4, both[0]));
        EXPECT(MPI_ERR_ARG, "partition 4 is ready already", MPI_Pready(4, both[0]));
        EXPECT(MPI_ERR_ARG, "partition 4 is ready already", MPI_Pready(4, both[0]));
        EXPECT(MPI_ERR_ARG, "partition 8", MPI_Pready_list(2, wrong, both[0]));  // 0 was still good
        EXPECT(MPI_ERR_ARG, "partition 5 is ready already", MPI_Pready_list(3, again, both[0]));
        EXPECT(MPI_ERR_ARG, "partition 0 is ready already", MPI_Pready(0, both[0]));
        EXPECT(MPI_ERR_ARG, "is ready already", MPI_Pready_range(3, 5, both[0]));  // 3 is new
        int flag = 1;
        OK(MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);  // what was refused has not been counted
        OK(MPI_Pready_range(1, 2, both[0]));
        OK(MPI_Pready(7, both[0]));
        EXPECT(MPI_ERR_ARG, "is ready already", MPI_Pready(7, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

static void parrived(void) {
    int flag = 0;
    make_pair();
    for (int epoch = 1; epoch <= 2; ++epoch) {
        EXPECT(MPI_ERR_REQUEST, "partitioned send", MPI_Parrived(both[0], 0, &flag));
        EXPECT(MPI_ERR_REQUEST, "not a partitioned receive", MPI_Parrived(plain, 0, &flag));
        EXPECT(MPI_ERR_ARG, "flag is", MPI_Parrived(both[1], 0, NULL));
        fill(epoch);
        OK(MPI_Startall(2, both));
        EXPECT(MPI_ERR_ARG, "partition -1", MPI_Parrived(both[1], -1, &flag));
        EXPECT(MPI_ERR_ARG, "partition 4 is not within 0 to 3", MPI_Parrived(both[1], parts / 2, &flag));
        EXPECT(MPI_ERR_REQUEST, "partitioned send", MPI_Parrived(both[0], 0, &flag));
        OK(MPI_Pready_range(0, parts - 1, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

static void no_partitions(void) {
    const MPI_Comm world = MPI_COMM_WORLD;
    MPIX_Prequest preq = MPIX_PREQUEST_NULL;
    int flag = 0;
    OK(MPI_Psend_init(NULL, 0, 1, MPI_INT, right_rank, tag, world, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(NULL, 0, 1, MPI_INT, left_rank, tag, world, MPI_INFO_NULL, &both[1]));
    for (int i = 0; i < 2; ++i)
        EXPECT(MPI_ERR_REQUEST, "has no partitions", MPIX_Prequest_create(both[i], MPI_INFO_NULL, &preq));
    CHECK(preq == MPIX_PREQUEST_NULL);
    for (int epoch = 1; epoch <= 2; ++epoch) {
        OK(MPI_Startall(2, both));
        EXPECT(MPI_ERR_ARG, "has no partitions", MPI_Pready(0, both[0]));
        EXPECT(MPI_ERR_ARG, "has no partitions", MPI_Pready_range(0, 0, both[0]));
        EXPECT(MPI_ERR_ARG, "has no partitions", MPI_Parrived(both[1], 0, &flag));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
}

// The receive of no partitions has no bytes; what is said of it names no partition.
static void send_to_no_partitions(void) {
    const MPI_Comm world = MPI_COMM_WORLD;
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, right_rank, tag, world, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(NULL, 0, 1, MPI_INT, left_rank, tag, world, MPI_INFO_NULL, &both[1]));
    OK(MPI_Startall(2, both));
    OK(MPI_Pready_range(0, 1, both[0]));
    EXPECT(MPI_ERR_TRUNCATE, "has 8 bytes in 2 partitions, the receive no bytes",
           MPI_Wait(&both[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
}

// A pointer that no compiler knows to be null.
static MPI_Status *volatile no_status;

static void null_statuses(void) {
    if (MPI_STATUS_IGNORE == NULL) return;  // which may be given, then
    int flag = -7, index = -7, n = -7, indices[2];
    make_pair();
    for (int epoch = 1; epoch <= 2; ++epoch) {
        fill(epoch);
        OK(MPI_Startall(2, both));
        for (int complete = 0; complete < 2; ++complete) {
            EXPECT(MPI_ERR_ARG, "status is a null pointer", MPI_Wait(&both[1], no_status));
            EXPECT(MPI_ERR_ARG, "status is a null pointer", MPI_Test(&both[1], &flag, no_status));
            EXPECT(MPI_ERR_ARG, "status is a null pointer", MPI_Request_get_status(both[1], &flag, no_status));
            EXPECT(MPI_ERR_ARG, "status is a null pointer", MPI_Waitany(2, both, &index, no_status));
            EXPECT(MPI_ERR_ARG, "status is a null pointer", MPI_Testany(2, both, &index, &flag, no_status));
            EXPECT(MPI_ERR_ARG, "array_of_statuses is a null pointer", MPI_Waitall(2, both, no_status));
            EXPECT(MPI_ERR_ARG, "array_of_statuses is a null pointer", MPI_Testall(2, both, &flag, no_status));
            EXPECT(MPI_ERR_ARG, "array_of_statuses is a null pointer", MPI_Waitsome(2, both, &n, indices, no_status));
            EXPECT(MPI_ERR_ARG, "array_of_statuses is a null pointer", MPI_Testsome(2, both, &n, indices, no_status));
            CHECK(flag == -7 && index == -7 && n == -7);
            if (complete) continue;
            OK(MPI_Pready_range(0, parts - 1, both[0]));
            for (int p = 0, arrived = 0; p < parts / 2; ++p, arrived = 0)
                UNTIL(arrived) OK(MPI_Parrived(both[1], p, &arrived));
        }
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

static void start_free_cancel(void) {
    make_pair();
    for (int epoch = 1; epoch <= 3; ++epoch) {
        const MPI_Request before[2] = {both[0], both[1]};
        fill(epoch);
        OK(MPI_Startall(2, both));
        for (int side = 0; side < 2; ++side) {
            MPI_Request mixed[] = {plain, both[side]};
            EXPECT(MPI_ERR_REQUEST, "active already", MPI_Start(&both[side]));
            EXPECT(MPI_ERR_REQUEST, "array_of_requests[1]", MPI_Startall(2, mixed));
            EXPECT(MPI_ERR_REQUEST, "active", MPI_Request_free(&both[side]));
            EXPECT(MPI_ERR_REQUEST, "cancelled", MPI_Cancel(&both[side]));
            CHECK(both[side] == before[side]);
        }
        OK(MPI_Pready_range(0, parts - 1, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

static void extensions(void) {
    char path[16];
    MPIX_Prequest preq = MPIX_PREQUEST_NULL, second = MPIX_PREQUEST_NULL;
    MPIX_Prequest foreign = (MPIX_Prequest)(void *)data;
    MPI_Info info;
    MPI_Datatype gaps = make_type(strided_ints);
    MPI_Request gappy;
    make_pair();
    OK(MPI_Info_create(&info));
    EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPIX_Prequest_create(MPI_REQUEST_NULL, MPI_INFO_NULL, &preq));
    EXPECT(MPI_ERR_REQUEST, "not a partitioned", MPIX_Prequest_create(plain, MPI_INFO_NULL, &preq));
    EXPECT(MPI_ERR_ARG, "preq is", MPIX_Prequest_create(both[0], MPI_INFO_NULL, NULL));
    OK(MPI_Info_set(info, "mpix_contributors", "0"));
    EXPECT(MPI_ERR_INFO_VALUE, "mpix_contributors", MPIX_Prequest_create(both[0], info, &preq));
    OK(MPI_Info_set(info, "mpix_contributors", "2x"));
    EXPECT(MPI_ERR_INFO_VALUE, "mpix_contributors", MPIX_Prequest_create(both[0], info, &preq));
    OK(MPI_Info_set(info, "mpix_contributors", "1"));
    OK(MPI_Info_set(info, "mpix_waiters", "2"));
    EXPECT(MPI_ERR_INFO_VALUE, "mpix_waiters", MPIX_Prequest_create(both[0], info, &preq));
    OK(MPI_Info_set(info, "mpix_waiters", "1"));
    OK(MPI_Info_set(info, "mpix_device", "gpu"));
    EXPECT(MPI_ERR_INFO_VALUE, "mpix_device", MPIX_Prequest_create(both[0], info, &preq));
    OK(MPI_Info_set(info, "mpix_device", "0"));
    EXPECT(MPI_ERR_BUFFER, "", MPIX_Prequest_create(both[0], info, &preq));  // it is host memory
    CHECK(preq == MPIX_PREQUEST_NULL);
    OK(MPI_Psend_init(data, 1, 1, gaps, right_rank, tag + 1, MPI_COMM_WORLD, MPI_INFO_NULL, &gappy));
    OK(MPIX_Prequest_create(gappy, MPI_INFO_NULL, &preq));
    OK(MPIX_Prequest_free(&preq));
    OK(MPI_Request_free(&gappy));

    OK(MPIX_Prequest_create(both[0], MPI_INFO_NULL, &preq));
    EXPECT(MPI_ERR_REQUEST, "exported", MPIX_Prequest_create(both[0], MPI_INFO_NULL, &second));
    EXPECT(MPI_ERR_REQUEST, "exported", MPI_Request_free(&both[0]));
    EXPECT(MPI_ERR_REQUEST, "not an exported handle", MPIX_Prequest_free(&foreign));
    EXPECT(MPI_ERR_ARG, "preq is", MPIX_Prequest_free(NULL));
    EXPECT(MPI_ERR_REQUEST, "not been started", MPIX_Pbuf_prepare(both[0]));
    EXPECT(MPI_ERR_REQUEST, "array_of_requests[0]", MPIX_Pbuf_prepare_all(2, both));
    EXPECT(MPI_ERR_ARG, "count is -1", MPIX_Pbuf_prepare_all(-1, both));
    EXPECT(MPI_ERR_ARG, "array_of_requests", MPIX_Pbuf_prepare_all(1, NULL));
    EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPIX_Pbuf_prepare(MPI_REQUEST_NULL));
    EXPECT(MPI_ERR_REQUEST, "", MPIX_Request_path(plain, path, sizeof path));
    EXPECT(MPI_ERR_ARG, "size", MPIX_Request_path(both[0], path, 0));
    EXPECT(MPI_ERR_ARG, "path", MPIX_Request_path(both[0], NULL, 4));
    fill(1);
    OK(MPI_Startall(2, both));
    EXPECT(MPI_ERR_REQUEST, "active", MPIX_Prequest_free(&preq));
    EXPECT(MPI_ERR_REQUEST, "active", MPIX_Prequest_create(both[1], MPI_INFO_NULL, &second));
    CHECK(preq != MPIX_PREQUEST_NULL && second == MPIX_PREQUEST_NULL);
    OK(MPI_Pready_range(0, parts - 1, both[0]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    check(1);
    OK(MPIX_Request_path(both[0], path, 3));
    CHECK(strlen(path) == 2 && strncmp(path, expected_path(), 2) == 0);  // cut to fit
    OK(MPIX_Prequest_free(&preq));
    CHECK(preq == MPIX_PREQUEST_NULL);
    OK(MPIX_Prequest_free(&preq));
    run_epoch(2);
    free_pair();
    OK(MPI_Info_free(&info));
    OK(MPI_Type_free(&gaps));
}

// ---- error handlers ------------------------------------------------------------------------------------

static MPI_Comm called_with;
static int called, called_class;

static void note(MPI_Comm *comm, int *code, ...) {
    ++called;
    called_with = *comm;
    MPI_Error_class(*code, &called_class);
}

static void handlers(void) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Request r = MPI_REQUEST_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(note, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    EXPECT(MPI_ERR_TAG, "tag", MPI_Psend_init(data, 1, 1, MPI_INT, 0, -200, comm, MPI_INFO_NULL, &r));
    CHECK(called == 1 && called_with == comm && called_class == MPI_ERR_TAG);
    OK(MPI_Psend_init(data, 1, 1, MPI_INT, right_rank, tag, comm, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_REQUEST, "started", MPI_Pready(0, r));
    CHECK(called == 2 && called_with == comm && called_class == MPI_ERR_REQUEST);
    // Nothing else is known of these: MPI_COMM_WORLD's, which only returns.
    EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPI_Pready(0, MPI_REQUEST_NULL));
    CHECK(called == 2);
    OK(MPI_Request_free(&r));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
}

// The library's own sentences are its own.
static void other_errors(void) {
    char text[MPI_MAX_ERROR_STRING], ours[MPI_MAX_ERROR_STRING];
    int n = 0, code;
    EXPECT(MPI_ERR_RANK, "dest is",
           MPI_Psend_init(data, 2, 1, MPI_INT, -77, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    MPI_Error_string(MPI_ERR_RANK, ours, &n);
    code = MPI_Send(data, -1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    CHECK(code != MPI_SUCCESS);
    OK(MPI_Error_string(code, text, &n));
    CHECK(n > 0 && strcmp(text, ours) != 0 && strstr(text, "Psend") == NULL);
    OK(MPI_Error_string(MPI_SUCCESS, text, &n));
    CHECK(strstr(text, "Psend") == NULL);
}

static int ours_told_of(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    OK(MPI_Error_string(code, text, &n));
    return strstr(text, "MPI_P") == text;
}

// Our codes are classes, and the library's may be.
static void errors_of_one_class(void) {
    MPI_Request r = MPI_REQUEST_NULL;
    int n = 0, error_class = MPI_SUCCESS;
    EXPECT(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL", MPI_Pready(0, r));
    OK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &n));
    OK(MPI_Error_class(MPI_ERR_REQUEST, &error_class));
    CHECK(ours_told_of(MPI_ERR_REQUEST));
    int code = MPI_Start(&r);
    CHECK(code != MPI_SUCCESS && !ours_told_of(code) && !ours_told_of(MPI_ERR_REQUEST));

    EXPECT(MPI_ERR_COUNT, "count is -1",
           MPI_Psend_init(data, 1, -1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    CHECK(ours_told_of(MPI_ERR_COUNT));
    code = MPI_Send(data, -1, MPI_INT, 0, tag, MPI_COMM_WORLD);  // which mpix does not see
    if (code == MPI_ERR_COUNT) return;                           // then nobody can tell them apart
    OK(MPI_Error_class(code, &error_class));
    CHECK(error_class == MPI_ERR_COUNT && !ours_told_of(code) && !ours_told_of(error_class));
}

// Calls that launch kernels on a stream, of requests that no stream can use; and the calls that launch nothing.
static void in_stream_order(void) {
    MPIX_Prequest preq = MPIX_PREQUEST_NULL;
    const MPI_Request nulls[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    make_pair();
    const MPI_Request with_null[] = {MPI_REQUEST_NULL, both[0]}, with_plain[] = {MPI_REQUEST_NULL, plain};
    for (int exported = 0; exported < 2; ++exported) {
        const char *const why = exported ? "exported to host threads" : "call MPIX_Prequest_create before MPI_Start";
        if (exported) OK(MPIX_Prequest_create(both[0], MPI_INFO_NULL, &preq));
        EXPECT(MPI_ERR_REQUEST, why, MPIX_Start_enqueue(both[0], NULL));
        EXPECT(MPI_ERR_REQUEST, why, MPIX_Startall_enqueue(1, both, NULL));
        EXPECT(MPI_ERR_REQUEST, why, MPIX_Pready_enqueue(parts - 1, both[0], NULL));
        EXPECT(MPI_ERR_REQUEST, why, MPIX_Pready_range_enqueue(0, parts - 1, both[0], NULL));
        EXPECT(MPI_ERR_REQUEST, why, MPIX_Pwait_enqueue(both[0], NULL));
        EXPECT(MPI_ERR_REQUEST, "array_of_requests[1]: request is", MPIX_Pwaitall_enqueue(2, with_null, NULL));
    }
    OK(MPIX_Prequest_free(&preq));
    EXPECT(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL", MPIX_Start_enqueue(MPI_REQUEST_NULL, NULL));
    EXPECT(MPI_ERR_REQUEST, "request is not a partitioned", MPIX_Start_enqueue(plain, NULL));
    EXPECT(MPI_ERR_REQUEST, "array_of_requests[0]: request is MPI_REQUEST_NULL", MPIX_Startall_enqueue(2, nulls, NULL));
    EXPECT(MPI_ERR_ARG, "count is -1", MPIX_Startall_enqueue(-1, both, NULL));
    EXPECT(MPI_ERR_ARG, "array_of_requests is a null", MPIX_Startall_enqueue(1, NULL, NULL));
    EXPECT(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL", MPIX_Pready_enqueue(0, MPI_REQUEST_NULL, NULL));
    EXPECT(MPI_ERR_REQUEST, "request is a receive", MPIX_Pready_enqueue(0, both[1], NULL));
    EXPECT(MPI_ERR_ARG, "partition -1", MPIX_Pready_enqueue(-1, both[0], NULL));
    EXPECT(MPI_ERR_ARG, "partition 8 is not within 0 to 7", MPIX_Pready_enqueue(parts, both[0], NULL));
    EXPECT(MPI_ERR_REQUEST, "request is not a partitioned", MPIX_Pready_range_enqueue(0, 1, plain, NULL));
    EXPECT(MPI_ERR_ARG, "partition_low 3 to partition_high 2", MPIX_Pready_range_enqueue(3, 2, both[0], NULL));
    EXPECT(MPI_ERR_ARG, "partition_high 8", MPIX_Pready_range_enqueue(0, parts, both[0], NULL));
    EXPECT(MPI_ERR_REQUEST, "request is not a partitioned", MPIX_Pwait_enqueue(plain, NULL));
    EXPECT(MPI_ERR_REQUEST, "array_of_requests[1]: request is not a", MPIX_Pwaitall_enqueue(2, with_plain, NULL));
    EXPECT(MPI_ERR_ARG, "count is -2", MPIX_Pwaitall_enqueue(-2, both, NULL));
    EXPECT(MPI_ERR_ARG, "array_of_requests is a null", MPIX_Pwaitall_enqueue(1, NULL, NULL));
    OK(MPIX_Startall_enqueue(0, NULL, NULL));
    OK(MPIX_Pwait_enqueue(MPI_REQUEST_NULL, NULL));
    OK(MPIX_Pwaitall_enqueue(2, nulls, NULL));
#ifdef MPIX_Wait_enqueue  // no function of the MPI library's
    OK(MPIX_Wait_enqueue(MPI_REQUEST_NULL, NULL));
    OK(MPIX_Waitall_enqueue(0, NULL, NULL));
#endif
    run_epoch(1);
    free_pair();
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 2: no wildcards on Precv_init", 1, no_wildcards},
        {"rule 3: a negative number of partitions", 1, negative_partitions},
        {"rule 3: without partitions every number is an error", 1, no_partitions},
        {"rule 4: a send to a receive of no partitions", 1, send_to_no_partitions},
        {"rule 12: arguments of the init calls", 1, init_arguments},
        {"rule 6: Pready", 1, pready},
        {"rule 7: Parrived", 1, parrived},
        {"rule 12: null pointers to statuses", 1, null_statuses},
        {"rule 8: Start, free and cancel of an active request", 1, start_free_cancel},
        {"rule 12: MPIX calls", 1, extensions},
        {"rule 12: MPIX calls in the order of a stream", 1, in_stream_order},
        {"rule 12: the communicator's error handler", 1, handlers},
        {"the library's own errors", 1, other_errors},
        {"beyond the standard: an error of the library, of the class of ours before", 1, errors_of_one_class},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
