// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 11: MPI_ERR_IN_STATUS, and the error of each status, when one of ours fails (a receive of another size), one of
// the library's (a message longer than its receive), or both. A ring of at least two.
#include <string.h>

#include "tests/errors/expect.h"

enum { tag = 26, bad_tag = 27, plain_tag = 28, long_tag = 29, untouched = 0x5a5a };
enum place { bad_receive, good_receive, none, bad_send, long_receive, good_send, plain_receive, idle, n_places };

static int data[4], more[4], bad_data[4], bad_more[5], plain_out[60], plain_in[60], long_in[60];
static MPI_Request requests[n_places], sends[2];

static void set_up(int ours_fails) {
    requests[none] = MPI_REQUEST_NULL;
    OK(MPI_Psend_init(data, 4, 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[good_send]));
    OK(MPI_Precv_init(more, 2, 2, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[good_receive]));
    OK(MPI_Psend_init(bad_data, 4, 1, MPI_INT, right_rank, bad_tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[bad_send]));
    OK(MPI_Precv_init(bad_more, ours_fails ? 5 : 4, 1, MPI_INT, left_rank, bad_tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[bad_receive]));
    OK(MPI_Precv_init(more, 1, 1, MPI_INT, left_rank, 999, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[idle]));
}

static void tear_down(void) {
    const int persistent[] = {good_send, good_receive, bad_send, bad_receive, idle};
    for (int i = 0; i < 5; ++i) OK(MPI_Request_free(&requests[persistent[i]]));
}

// Everything is complete afterwards, except for the call that says so.
static void start_epoch(int library_fails, int epoch) {
    for (int i = 0; i < 4; ++i) data[i] = bad_data[i] = world_rank * 1000 + epoch * 10 + i, more[i] = -1;
    MPI_Request ours[] = {requests[good_send], requests[good_receive], requests[bad_send], requests[bad_receive]};
    OK(MPI_Startall(4, ours));
    OK(MPI_Irecv(long_in, library_fails ? 1 : 60, MPI_INT, left_rank, long_tag, MPI_COMM_WORLD,
                 &requests[long_receive]));
    OK(MPI_Irecv(plain_in, 60, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &requests[plain_receive]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isend(plain_out, 60, MPI_INT, right_rank, long_tag, MPI_COMM_WORLD, &sends[0]));
    OK(MPI_Isend(plain_out, 60, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD, &sends[1]));
    OK(MPI_Pready_range(0, 3, requests[good_send]));
    OK(MPI_Pready_range(0, 3, requests[bad_send]));
    for (int i = 0; i < n_places; ++i) {
        if (i == none) continue;
        int flag = 0;
        UNTIL(flag) {
            if (MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) flag = 1;
        }
    }
}

static void end_epoch(int epoch) {
    OK(MPI_Waitall(n_places, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; ++i) CHECK(more[i] == left_rank * 1000 + epoch * 10 + i);
}

static int error_class(int code) {
    int result = -1;
    MPI_Error_class(code, &result);
    return result;
}

static int wanted(int place, int ours_fails, int library_fails) {
    if ((place == bad_receive && ours_fails) || (place == long_receive && library_fails)) return MPI_ERR_TRUNCATE;
    return MPI_SUCCESS;
}

static void all_at_once(int test, int ours_fails, int library_fails, int epoch) {
    MPI_Status statuses[n_places];
    MPI_Status *const into = epoch % 2 ? MPI_STATUSES_IGNORE : statuses;
    int code = MPI_SUCCESS, flag = 0;
    for (int i = 0; i < n_places; ++i) statuses[i].MPI_ERROR = untouched;
    start_epoch(library_fails, epoch);
    if (test)
        UNTIL(flag || code != MPI_SUCCESS) code = MPI_Testall(n_places, requests, &flag, into);
    else
        code = MPI_Waitall(n_places, requests, into);
    CHECK(error_class(code) == (ours_fails || library_fails ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
    for (int i = 0; i < n_places && into == statuses; ++i) {
        const int is = error_class(statuses[i].MPI_ERROR);
        if (code == MPI_SUCCESS)
            CHECK(statuses[i].MPI_ERROR == untouched || statuses[i].MPI_ERROR == MPI_SUCCESS);
        else if (i == plain_receive && is == MPI_ERR_PENDING)
            CHECK(requests[i] != MPI_REQUEST_NULL);  // the library may give up early
        else
            CHECK(is == wanted(i, ours_fails, library_fails));
    }
    end_epoch(epoch);
}

static void some_at_a_time(int test, int ours_fails, int library_fails, int epoch) {
    MPI_Status statuses[n_places];
    MPI_Status *const into = epoch % 2 ? MPI_STATUSES_IGNORE : statuses;
    int seen[n_places] = {0}, indices[n_places], n = 0;
    start_epoch(library_fails, epoch);
    for (int found = 0; found < n_places - 2; found += n) {
        int code = MPI_SUCCESS, failures = 0;
        n = 0;
        for (int i = 0; i < n_places; ++i) statuses[i].MPI_ERROR = untouched;
        if (test)
            UNTIL(n != 0) code = MPI_Testsome(n_places, requests, &n, indices, into);
        else
            code = MPI_Waitsome(n_places, requests, &n, indices, into);
        CHECK(n > 0 && n <= n_places - 2);
        for (int k = 0; k < n; ++k) {
            CHECK(indices[k] >= 0 && indices[k] < n_places && !seen[indices[k]]);
            seen[indices[k]] = 1;
            failures += wanted(indices[k], ours_fails, library_fails) != MPI_SUCCESS;
        }
        CHECK(error_class(code) == (failures ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
        for (int k = 0; k < n && into == statuses; ++k)
            CHECK(failures ? error_class(statuses[k].MPI_ERROR) == wanted(indices[k], ours_fails, library_fails)
                           : statuses[k].MPI_ERROR == untouched || statuses[k].MPI_ERROR == MPI_SUCCESS);
    }
    CHECK(!seen[none] && !seen[idle]);
    end_epoch(epoch);
}

static void one_at_a_time(int test, int ours_fails, int library_fails, int epoch) {
    MPI_Status status;
    MPI_Status *const into = epoch % 2 ? MPI_STATUS_IGNORE : &status;
    int seen[n_places] = {0};
    start_epoch(library_fails, epoch);
    for (int found = 0; found < n_places - 2; ++found) {
        int code = MPI_SUCCESS, index = -1, flag = 0;
        status.MPI_ERROR = untouched;
        if (test)
            UNTIL(flag) code = MPI_Testany(n_places, requests, &index, &flag, into);
        else
            code = MPI_Waitany(n_places, requests, &index, into);
        CHECK(index >= 0 && index < n_places && !seen[index]);
        seen[index] = 1;
        CHECK(error_class(code) == wanted(index, ours_fails, library_fails));
        CHECK(status.MPI_ERROR == untouched || index == long_receive || index == plain_receive);
    }
    CHECK(!seen[none] && !seen[idle]);
    end_epoch(epoch);
}

static void every_way(int ours_fails, int library_fails) {
    void (*const calls[])(int, int, int, int) = {all_at_once, some_at_a_time, one_at_a_time};
    set_up(ours_fails);
    int epoch = 0;
    for (int call = 0; call < 3; ++call)
        for (int way = 0; way < 4; ++way) calls[call](way / 2, ours_fails, library_fails, ++epoch);
    tear_down();
}

static void nothing_fails(void) { every_way(0, 0); }
static void ours_fails(void) { every_way(1, 0); }
static void library_fails(void) { every_way(0, 1); }
static void both_fail(void) { every_way(1, 1); }

// Open MPI 5.0's MPI_Waitall says MPI_SUCCESS of requests that had failed before, if it is to ignore the statuses.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
static const int waitall_forgets = 1;
#else
static const int waitall_forgets = 0;
#endif

// Requests of the library's alone, one of which has failed before anybody waits.
static void library_alone(void) {
    for (int epoch = 1; epoch <= 4; ++epoch) {
        MPI_Request two[2];
        MPI_Status statuses[2];
        OK(MPI_Irecv(long_in, 1, MPI_INT, left_rank, long_tag, MPI_COMM_WORLD, &two[0]));
        OK(MPI_Irecv(plain_in, 60, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &two[1]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Isend(plain_out, 60, MPI_INT, right_rank, long_tag, MPI_COMM_WORLD, &sends[0]));
        OK(MPI_Isend(plain_out, 60, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD, &sends[1]));
        int flag = 0;
        UNTIL(flag) {
            if (MPI_Request_get_status(two[0], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) flag = 1;
        }
        const int ignored = epoch % 2, code = MPI_Waitall(2, two, ignored ? MPI_STATUSES_IGNORE : statuses);
        CHECK(error_class(code) == MPI_ERR_IN_STATUS || (ignored && waitall_forgets && code == MPI_SUCCESS));
        if (epoch % 2 == 0) CHECK(error_class(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
        OK(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
        OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    }
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 11: MPI_ERROR of each status, nothing fails", 2, nothing_fails},
        {"rule 11: MPI_ERR_IN_STATUS, a partitioned request fails", 2, ours_fails},
        {"rule 11: MPI_ERR_IN_STATUS, one of the library's fails", 2, library_fails},
        {"rule 11: MPI_ERR_IN_STATUS, both fail", 2, both_fail},
        {"the library's requests alone, one of which has failed", 2, library_alone},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
