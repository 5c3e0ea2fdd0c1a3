// SPDX-License-Identifier: BSD-3-Clause
//
// Rules 8, 9 and 12: Start, Startall, Request_free and Cancel, of requests in every state, alone and in arrays with the
// library's. A ring.
#include <stdlib.h>

#include "tests/errors/expect.h"

enum { tag = 14, plain_tag = 15, parts = 5 };

static int data[parts], more[parts], word, plain_word;
static MPI_Request both[2];

static void make_pair(void) {
    OK(MPI_Psend_init(data, parts, 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(more, 1, parts, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
}

static void fill(int epoch) {
    for (int i = 0; i < parts; ++i) {
        data[i] = (int)(mix_key(seed, (uint64_t)(epoch * 1000 + world_rank * 10 + i)) >> 34);
        more[i] = ~data[i];
    }
}

static void check(int epoch) {
    for (int i = 0; i < parts; ++i)
        CHECK(more[i] == (int)(mix_key(seed, (uint64_t)(epoch * 1000 + left_rank * 10 + i)) >> 34));
}

// Both have just been started.
static void finish_epoch(int epoch) {
    OK(MPI_Pready_range(0, parts - 1, both[0]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    check(epoch);
}

static void free_pair(void) {
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    CHECK(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL);
}

static int fails(int code) { return code != MPI_SUCCESS; }

static void double_start(void) {
    make_pair();
    for (int epoch = 1; epoch <= 3; ++epoch) {
        fill(epoch);
        for (int side = 0; side < 2; ++side) {
            OK(MPI_Start(&both[side]));
            EXPECT(MPI_ERR_REQUEST, "active already", MPI_Start(&both[side]));
        }
        OK(MPI_Pready(2, both[0]));
        EXPECT(MPI_ERR_REQUEST, "active already", MPI_Start(&both[0]));
        OK(MPI_Pready_range(0, 1, both[0]));
        OK(MPI_Pready_range(3, 4, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

// One wrong element: an error, and no other request has been started.
static void startall_refused(void) {
    MPI_Request persistent, active;
    make_pair();
    OK(MPI_Recv_init(&word, 1, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &persistent));
    OK(MPI_Precv_init(&plain_word, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &active));
    for (int epoch = 1; epoch <= 3; ++epoch) {
        OK(MPI_Start(&active));
        MPI_Request ours_wrong[] = {persistent, both[0], active, both[1]};
        EXPECT(MPI_ERR_REQUEST, "array_of_requests[2] is active already", MPI_Startall(4, ours_wrong));
        OK(MPI_Wait(&active, MPI_STATUS_IGNORE));
        MPI_Request null_in_it[] = {both[0], both[1], MPI_REQUEST_NULL, persistent};
        CHECK(fails(MPI_Startall(4, null_in_it)));
        CHECK(null_in_it[0] == both[0] && null_in_it[1] == both[1] && null_in_it[3] == persistent);
        // So all of them can be started.
        fill(epoch);
        word = -1;
        MPI_Request all[] = {both[1], persistent, both[0], active};
        OK(MPI_Startall(4, all));
        OK(MPI_Send(&epoch, 1, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD));
        OK(MPI_Pready_range(0, parts - 1, both[0]));
        OK(MPI_Waitall(4, all, MPI_STATUSES_IGNORE));
        check(epoch);
        CHECK(word == epoch && all[1] == persistent);
    }
    OK(MPI_Request_free(&persistent));
    OK(MPI_Request_free(&active));
    free_pair();
}

static void startall_arguments(void) {
    make_pair();
    OK(MPI_Startall(0, both));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Startall(-1, both));
    EXPECT(MPI_ERR_ARG, "array_of_requests is a null pointer", MPI_Startall(1, NULL));
    fill(1);
    MPI_Request twice[] = {both[0], both[0]};
    EXPECT(MPI_ERR_REQUEST, "array_of_requests[1] is in the array twice", MPI_Startall(2, twice));
    OK(MPI_Startall(2, both));  // neither was started
    finish_epoch(1);
    free_pair();
}

// A persistent send and receive of the library's, and ours, in one array.
static void startall_mixed(void) {
    MPI_Request all[5];
    make_pair();
    all[1] = both[0], all[3] = both[1];
    OK(MPI_Send_init(&plain_word, 1, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD, &all[0]));
    OK(MPI_Recv_init(&word, 1, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &all[2]));
    OK(MPI_Psend_init(NULL, 1, 0, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &all[4]));
    for (int epoch = 1; epoch <= 50; ++epoch) {
        fill(epoch);
        plain_word = world_rank * 1000 + epoch;
        word = -1;
        OK(MPI_Startall(5, all));
        CHECK(all[1] == both[0] && all[3] == both[1]);
        OK(MPI_Pready(0, all[4]));
        OK(MPI_Pready_range(0, parts - 1, both[0]));
        OK(MPI_Waitall(5, all, MPI_STATUSES_IGNORE));
        check(epoch);
        CHECK(word == left_rank * 1000 + epoch);
    }
    for (int i = 0; i < 5; ++i) OK(MPI_Request_free(&all[i]));
}

static void freed(void) {
    MPI_Request null = MPI_REQUEST_NULL;
    for (int uses = 0; uses < 3; ++uses) {
        make_pair();
        for (int epoch = 1; epoch <= uses; ++epoch) {
            fill(epoch);
            OK(MPI_Startall(2, both));
            for (int side = 0; side < 2; ++side) {
                const MPI_Request before = both[side];
                EXPECT(MPI_ERR_REQUEST, "active", MPI_Request_free(&both[side]));
                CHECK(both[side] == before);
            }
            finish_epoch(epoch);
        }
        free_pair();
        CHECK(fails(MPI_Start(&both[0])));
        CHECK(fails(MPI_Startall(2, both)));
        CHECK(fails(MPI_Request_free(&both[1])));
        EXPECT(MPI_ERR_REQUEST, "MPI_REQUEST_NULL", MPI_Pready(0, both[0]));
    }
    CHECK(fails(MPI_Request_free(&null)) && fails(MPI_Start(&null)));
}

static void cancelled(void) {
    MPI_Request plain = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag = 0;
    make_pair();
    for (int epoch = 1; epoch <= 3; ++epoch) {
        EXPECT(MPI_ERR_REQUEST, "cannot be cancelled", MPI_Cancel(&both[0]));
        EXPECT(MPI_ERR_REQUEST, "cannot be cancelled", MPI_Cancel(&both[1]));
        fill(epoch);
        OK(MPI_Startall(2, both));
        EXPECT(MPI_ERR_REQUEST, "cannot be cancelled", MPI_Cancel(&both[0]));
        EXPECT(MPI_ERR_REQUEST, "cannot be cancelled", MPI_Cancel(&both[1]));
        OK(MPI_Pready_range(0, parts - 1, both[0]));
        OK(MPI_Wait(&both[1], &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag);
        OK(MPI_Wait(&both[0], &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag);
        check(epoch);
        // The library's are its own affair.
        OK(MPI_Irecv(&word, 1, MPI_INT, left_rank, 999, MPI_COMM_WORLD, &plain));
        OK(MPI_Cancel(&plain));
        OK(MPI_Wait(&plain, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
    }
    free_pair();
}

static void negative_counts(void) {
    MPI_Status statuses[2];
    int flag = 0, index = 0, n = 0, indices[2];
    make_pair();
    fill(1);
    OK(MPI_Startall(2, both));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Waitall(-1, both, statuses));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Testall(-1, both, &flag, statuses));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Waitany(-1, both, &index, statuses));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Testany(-1, both, &index, &flag, statuses));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Waitsome(-1, both, &n, indices, statuses));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPI_Testsome(-1, both, &n, indices, statuses));
    finish_epoch(1);
    free_pair();
}

// Requests in every state, left to MPI_Finalize: their owner cleans up in a delete callback of MPI_COMM_SELF.
static MPI_Request left_unstarted[2], left_used[2], left_active[2];
static int callbacks_set, callbacks_run;

static void use_those_left(MPI_Request *pair, int epoch) {
    memcpy(both, pair, sizeof both);
    fill(epoch);
    OK(MPI_Startall(2, both));
    finish_epoch(epoch);
}

static int clean_up(MPI_Comm self, int key, void *value, void *extra) {
    (void)self, (void)key, (void)value, (void)extra;
    memcpy(both, left_active, sizeof both);
    finish_epoch(2);
    free_pair();
    memcpy(both, left_unstarted, sizeof both);
    free_pair();
    use_those_left(left_used, 3);
    free_pair();
    make_pair();  // it is not too late for that
    use_those_left(both, 4);
    make_pair();
    ++callbacks_run;
    return MPI_SUCCESS;
}

static void left_to_finalize(void) {
    int key;
    make_pair();
    memcpy(left_unstarted, both, sizeof both);
    make_pair();
    use_those_left(both, 1);
    memcpy(left_used, both, sizeof both);
    make_pair();
    fill(2);
    OK(MPI_Startall(2, both));
    memcpy(left_active, both, sizeof both);
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, clean_up, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
    OK(MPI_Comm_free_keyval(&key));
    ++callbacks_set;
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 9: Start of an active request", 1, double_start},
        {"rule 9: Startall with one wrong element starts none", 1, startall_refused},
        {"rule 9: Startall, its arguments", 1, startall_arguments},
        {"rule 9: Startall of ours and the library's persistent requests", 1, startall_mixed},
        {"rule 8: free of an active request, of an inactive one after use, of a freed one", 1, freed},
        {"rule 8: Cancel", 1, cancelled},
        {"rule 12: negative counts", 1, negative_counts},
        {"rule 8: use and free in a delete callback of MPI_COMM_SELF", 1, left_to_finalize},
    };
    const int code = RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
    return code == 0 && callbacks_run < callbacks_set ? 1 : code;
}
