// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 4: a size mismatch is an error at the receiver, and no byte moves. A ring.
#include <stdlib.h>
#include <string.h>

#include "tests/errors/expect.h"

enum { tag = 6 };

// The ways to learn of it; each gives the receive's error, and completes both requests.
static void complete(int way, MPI_Request both[2]) {
    MPI_Status statuses[2], status;
    int flag = 0, index = -1, n = 0, indices[2];
    if (way < 6) OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
    switch (way) {
        case 0:
            EXPECT(MPI_ERR_TRUNCATE, "bytes", MPI_Wait(&both[1], MPI_STATUS_IGNORE));
            break;
        case 1: {
            int code = MPI_SUCCESS;
            UNTIL(flag) code = MPI_Test(&both[1], &flag, &status);
            expect_error(__FILE__, __LINE__, "MPI_Test()", code, MPI_ERR_TRUNCATE, "bytes");
            break;
        }
        case 2:
            EXPECT(MPI_ERR_TRUNCATE, "bytes", MPI_Waitany(2, both, &index, &status));
            CHECK(index == 1);
            break;
        case 3: {
            int code = MPI_SUCCESS;
            UNTIL(index == 1) code = MPI_Testany(2, both, &index, &flag, &status);
            expect_error(__FILE__, __LINE__, "MPI_Testany()", code, MPI_ERR_TRUNCATE, "bytes");
            CHECK(flag);
            break;
        }
        case 4:
            EXPECT(MPI_ERR_IN_STATUS, "bytes", MPI_Waitsome(2, both, &n, indices, statuses));
            CHECK(n == 1 && indices[0] == 1 && statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
            break;
        case 5: {
            int code = MPI_SUCCESS;
            UNTIL(n == 1) code = MPI_Testsome(2, both, &n, indices, statuses);
            expect_error(__FILE__, __LINE__, "MPI_Testsome()", code, MPI_ERR_IN_STATUS, "bytes");
            CHECK(indices[0] == 1 && statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
            break;
        }
        case 6:
            EXPECT(MPI_ERR_IN_STATUS, "bytes", MPI_Waitall(2, both, statuses));
            CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE);
            break;
        case 7: {
            int code = MPI_SUCCESS;
            UNTIL(flag) code = MPI_Testall(2, both, &flag, statuses);
            expect_error(__FILE__, __LINE__, "MPI_Testall()", code, MPI_ERR_IN_STATUS, "bytes");
            CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE);
            break;
        }
        case 8: {
            // A loop over Parrived ends. It is told that nothing has arrived, and so is Wait.
            int code = MPI_SUCCESS;
            UNTIL(flag) code = MPI_Parrived(both[1], 1, &flag);
            expect_error(__FILE__, __LINE__, "MPI_Parrived()", code, MPI_ERR_TRUNCATE, "bytes");
            EXPECT(MPI_ERR_TRUNCATE, "bytes", MPI_Wait(&both[1], &status));
            break;
        }
        default:
            EXPECT(MPI_ERR_IN_STATUS, "bytes", MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    }
    // Both are inactive now.
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
}

static void differ_by(int more) {
    struct side out, in;
    MPI_Request both[2];
    make_side(&out, MPI_SHORT, 4, 6);
    make_side(&in, MPI_SHORT, 3, 8 + more);
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in.buffer, 3, 8 + more, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    struct side same;
    make_side(&same, MPI_SHORT, 3, 8 + more);
    for (int way = 0; way < 10; ++way) {
        fill_side(&out, (uint64_t)way);
        fill_side(&in, (uint64_t)way + 100);
        fill_side(&same, (uint64_t)way + 100);
        OK(MPI_Startall(2, both));
        ready_all(both[0], 4, shuffled);
        complete(way, both);
        CHECK(memcmp(in.memory, same.memory, in.memory_bytes) == 0);
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&same);
    free_side(&out);
    free_side(&in);
}

static void longer(void) { differ_by(1); }
static void shorter(void) { differ_by(-1); }
static void empty(void) { differ_by(-8); }

// The same tag is good again for a pair that fits.
static void afterwards(void) {
    struct side out, in;
    MPI_Request both[2];
    differ_by(2);
    make_side(&out, MPI_SHORT, 4, 6);
    make_side(&in, MPI_SHORT, 3, 8);
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in.buffer, 3, 8, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    fill_side(&out, (uint64_t)world_rank);
    fill_side(&in, 100);
    OK(MPI_Startall(2, both));
    ready_all(both[0], 4, shuffled);
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    check_received(&in, 100, &out, (uint64_t)left_rank);
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

static void await_path(MPI_Request request, const char *wanted) {
    char path[32] = "";
    UNTIL(strcmp(path, wanted) == 0) OK(MPIX_Request_path(request, path, sizeof path));
}

static void some_epochs(MPI_Request both[2], struct side *out, struct side *in, int p) {
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
        fill_side(out, 10 * epoch + (uint64_t)world_rank);
        fill_side(in, 100);
        OK(MPI_Startall(2, both));
        ready_all(both[0], p, shuffled);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check_received(in, 100, out, 10 * epoch + (uint64_t)left_rank);
    }
}

// A pair that has failed an epoch is one for good: when one side is freed, the next receive belongs to the next send.
static void one_is_freed(int send_first) {
    struct side bad_out, bad_in, out, in;
    MPI_Request bad[2], good[2];
    make_side(&bad_out, MPI_SHORT, 4, 6);
    make_side(&bad_in, MPI_SHORT, 3, 7);
    make_side(&out, MPI_SHORT, 4, 6);
    make_side(&in, MPI_SHORT, 3, 8);
    OK(MPI_Psend_init(bad_out.buffer, 4, 6, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &bad[0]));
    OK(MPI_Precv_init(bad_in.buffer, 3, 7, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &bad[1]));
    fill_side(&bad_out, 1);
    OK(MPI_Startall(2, bad));
    ready_all(bad[0], 4, shuffled);
    OK(MPI_Wait(&bad[0], MPI_STATUS_IGNORE));
    EXPECT(MPI_ERR_TRUNCATE, "bytes", MPI_Wait(&bad[1], MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&bad[send_first ? 0 : 1]));
    OK(MPI_Precv_init(in.buffer, 3, 8, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &good[1]));
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &good[0]));
    some_epochs(good, &out, &in, 4);
    OK(MPI_Request_free(&bad[send_first ? 1 : 0]));
    OK(MPI_Request_free(&good[0]));
    OK(MPI_Request_free(&good[1]));
    free_side(&bad_out);
    free_side(&bad_in);
    free_side(&out);
    free_side(&in);
}

static void freed_after_failing(void) {
    for (int way = 0; way < 20; ++way) one_is_freed(way & 1);
}

// The pair that fits: the epoch that is running, if it is, then some more, and the end of it.
static void complete_and_go_on(int running, MPI_Request both[2], struct side *out, struct side *in) {
    if (running) {
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check_received(in, 100, out, (uint64_t)left_rank);
    }
    some_epochs(both, out, in, 4);
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(out);
    free_side(in);
}

// What is freed before it was ever started is as if it had never been, also if it met a partner that it does not fit.
static void receive_never_started(int send_started) {
    struct side out, small, in;
    MPI_Request both[2], early;
    make_side(&out, MPI_SHORT, 4, 6);
    make_side(&small, MPI_SHORT, 3, 7);
    make_side(&in, MPI_SHORT, 3, 8);
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(small.buffer, 3, 7, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &early));
    await_path(early, "none");
    await_path(both[0], "none");
    fill_side(&out, (uint64_t)world_rank);
    fill_side(&in, 100);
    if (send_started) {
        OK(MPI_Start(&both[0]));
        ready_all(both[0], 4, shuffled);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Request_free(&early));
    OK(MPI_Precv_init(in.buffer, 3, 8, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    if (send_started) OK(MPI_Start(&both[1]));
    complete_and_go_on(send_started, both, &out, &in);
    free_side(&small);
}

static void send_never_started(int receive_started) {
    struct side small, out, in;
    MPI_Request both[2], early;
    make_side(&small, MPI_SHORT, 3, 7);
    make_side(&out, MPI_SHORT, 4, 6);
    make_side(&in, MPI_SHORT, 3, 8);
    OK(MPI_Precv_init(in.buffer, 3, 8, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    OK(MPI_Psend_init(small.buffer, 3, 7, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &early));
    await_path(early, "none");
    await_path(both[1], "none");
    fill_side(&out, (uint64_t)world_rank);
    fill_side(&in, 100);
    if (receive_started) {
        // Nobody is told of a send that may still be freed.
        int flag = 1;
        OK(MPI_Start(&both[1]));
        OK(MPI_Parrived(both[1], 1, &flag));
        CHECK(!flag);
        OK(MPI_Test(&both[1], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Request_get_status(both[1], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Request_free(&early));
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_SHORT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    if (receive_started) {
        await_path(both[1], expected_path());
        OK(MPI_Start(&both[0]));
        ready_all(both[0], 4, shuffled);
    }
    complete_and_go_on(receive_started, both, &out, &in);
    free_side(&small);
}

static void never_started(void) {
    for (int way = 0; way < 10; ++way) {
        receive_never_started(way & 1);
        send_never_started(way & 1);
    }
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 4: the receive is longer", 1, longer},
        {"rule 4: the receive is shorter", 1, shorter},
        {"rule 4: the receive is empty", 1, empty},
        {"rule 4: a pair that fits, afterwards", 1, afterwards},
        {"rule 4: one of a pair that failed is freed, and others come", 1, freed_after_failing},
        {"rule 8: freed before it was started, by one whose size does not fit", 1, never_started},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
