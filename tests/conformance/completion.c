// SPDX-License-Identifier: BSD-3-Clause
//
// Rules 9 and 11: Wait*, Test* and Request_get_status on arrays that mix our requests with the library's own
// (nonblocking, persistent, collective, generalized), null and inactive ones, with their statuses. A ring: everything
// goes to the right.
#include <string.h>

#include "tests/conformance/harness.h"

enum { tag = 5, plain_tag = 6, persistent_tag = 7, general_tag = 77, general_bytes = 5, untouched = 0x5a5a };

// Places in the array.
enum place {
    null,
    idle_send,
    send,
    plain_send,
    receive,
    plain_receive,
    idle_receive,
    plain_idle,
    nobody,
    persistent,
    general,
    collective,
    persistent_send,
    n_places
};

static const char becomes_ready[n_places] = {
    [send] = 1,       [plain_send] = 1, [receive] = 1,    [plain_receive] = 1,  [nobody] = 1,
    [persistent] = 1, [general] = 1,    [collective] = 1, [persistent_send] = 1};
enum { n_ready = 9 };

// Those that are null once they are complete.
static int is_temporary(int place) {
    return place == plain_send || place == plain_receive || place == general || place == collective;
}

static int is_ours(int place) {
    return place == send || place == receive || place == nobody || place == idle_send || place == idle_receive;
}

static struct side out, in;
static int plain_out[3], plain_in[5], persistent_in[2], persistent_out[2], idle_data[4];
static int sum_in, sum_out;
static MPI_Request requests[n_places];
static uint64_t key;

static int query(void *state, MPI_Status *status) {
    (void)state;
    OK(MPI_Status_set_elements(status, MPI_BYTE, general_bytes));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = world_rank;
    status->MPI_TAG = general_tag;
    return MPI_SUCCESS;
}
static int forget(void *state) { return state == NULL ? MPI_SUCCESS : MPI_ERR_OTHER; }
static int cancel(void *state, int complete) { return state == NULL && complete ? MPI_SUCCESS : MPI_ERR_OTHER; }

static void set_up(void) {
    make_side(&out, MPI_INT, 6, 4);
    make_side(&in, MPI_INT, 4, 6);
    for (int i = 0; i < n_places; ++i) requests[i] = MPI_REQUEST_NULL;
    OK(MPI_Psend_init(out.buffer, 6, 4, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[send]));
    OK(MPI_Precv_init(in.buffer, 4, 6, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[receive]));
    OK(MPI_Psend_init(idle_data, 2, 1, MPI_INT, right_rank, 100, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[idle_send]));
    OK(MPI_Precv_init(idle_data, 2, 1, MPI_INT, left_rank, 100, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[idle_receive]));
    OK(MPI_Recv_init(idle_data, 1, MPI_INT, left_rank, 101, MPI_COMM_WORLD, &requests[plain_idle]));
    OK(MPI_Precv_init(idle_data, 2, 2, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[nobody]));
    OK(MPI_Recv_init(persistent_in, 2, MPI_INT, left_rank, persistent_tag, MPI_COMM_WORLD, &requests[persistent]));
    OK(MPI_Send_init(persistent_out, 2, MPI_INT, right_rank, persistent_tag, MPI_COMM_WORLD,
                     &requests[persistent_send]));
}

static void tear_down(void) {
    for (int i = 0; i < n_places; ++i)
        if (requests[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&requests[i]));
    free_side(&out);
    free_side(&in);
}

// Start everything; nothing that depends on another rank can complete before release().
static void start_epoch(void) {
    key = shared_random();
    fill_side(&out, mix_key(key, (uint64_t)world_rank));
    fill_side(&in, key);
    memset(plain_in, 0, sizeof plain_in);
    memset(persistent_in, 0, sizeof persistent_in);
    // One Startall over ours and the library's.
    MPI_Request started[] = {requests[send], requests[persistent], requests[receive], requests[nobody]};
    OK(MPI_Startall(4, started));
    CHECK(started[0] == requests[send] && started[1] == requests[persistent]);
    OK(MPI_Irecv(plain_in, 5, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &requests[plain_receive]));
    OK(MPI_Grequest_start(query, forget, cancel, NULL, &requests[general]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void release(void) {
    for (int i = 0; i < 3; ++i) plain_out[i] = world_rank * 10 + i;
    persistent_out[0] = persistent_out[1] = world_rank;
    OK(MPI_Isend(plain_out, 3, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD, &requests[plain_send]));
    OK(MPI_Start(&requests[persistent_send]));
    OK(MPI_Grequest_complete(requests[general]));
    sum_in = world_rank + 1;
    OK(MPI_Iallreduce(&sum_in, &sum_out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[collective]));
    ready_all(requests[send], 6, shuffled);
}

static void check_status(int place, const MPI_Status *status) {
    int bytes = -1, cancelled = -1;
    OK(MPI_Get_count(status, MPI_BYTE, &bytes));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(!cancelled);
    switch (place) {
        case receive:
            CHECK(status->MPI_SOURCE == left_rank && status->MPI_TAG == tag && bytes == (int)in.bytes);
            break;
        case plain_receive:
            CHECK(status->MPI_SOURCE == left_rank && status->MPI_TAG == plain_tag && bytes == 12);
            break;
        case persistent:
            CHECK(status->MPI_SOURCE == left_rank && status->MPI_TAG == persistent_tag && bytes == 8);
            break;
        case nobody:
            CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && bytes == 0);
            break;
        case general:
            CHECK(status->MPI_SOURCE == world_rank && status->MPI_TAG == general_tag && bytes == general_bytes);
            break;
        case send:
        case plain_send:
        case persistent_send:
        case collective:
            break;  // nothing is said of these
        default:    // the empty status
            CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && bytes == 0);
    }
}

static void check_end(const MPI_Request before[n_places]) {
    check_received(&in, key, &out, mix_key(key, (uint64_t)left_rank));
    CHECK(plain_in[0] == left_rank * 10 && plain_in[2] == left_rank * 10 + 2);
    CHECK(persistent_in[1] == left_rank);
    CHECK(sum_out == world_size * (world_size + 1) / 2);
    for (int i = 0; i < n_places; ++i) CHECK(requests[i] == (is_temporary(i) ? MPI_REQUEST_NULL : before[i]));
}

// MPICH 5.0 writes MPI_ERROR in calls with one status, and a null request is the library's.
static int null_is_left_alone(void) {
    MPI_Request nothing = MPI_REQUEST_NULL;
    MPI_Status status = {.MPI_ERROR = untouched};
    int flag;
    PMPI_Test(&nothing, &flag, &status);
    return status.MPI_ERROR == untouched;
}

// Calls with one status leave its MPI_ERROR alone; calls with several say something there only if they fail.
static void check_error_field(int place, const MPI_Status *status, int several) {
    if (is_ours(place) || (place == null && null_is_left_alone()))
        CHECK(status->MPI_ERROR == untouched || (several && status->MPI_ERROR == MPI_SUCCESS));
}

static void all_of_them(int test) {
    set_up();
    for (int epoch = 0; epoch < 8; ++epoch) {
        MPI_Status statuses[n_places];
        MPI_Request before[n_places];
        const int ignore = epoch % 2;
        int flag = 0;
        memset(statuses, 0x55, sizeof statuses);
        for (int i = 0; i < n_places; ++i) statuses[i].MPI_ERROR = untouched;
        start_epoch();
        if (test) {
            // Several are complete (or inactive) already, but not all: nothing changes.
            memcpy(before, requests, sizeof before);
            for (int i = 0; i < 50; ++i) {
                OK(MPI_Testall(n_places, requests, &flag, ignore ? MPI_STATUSES_IGNORE : statuses));
                CHECK(!flag);
            }
            CHECK(memcmp(before, requests, sizeof before) == 0);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        release();
        memcpy(before, requests, sizeof before);
        if (test)
            UNTIL(flag) OK(MPI_Testall(n_places, requests, &flag, ignore ? MPI_STATUSES_IGNORE : statuses));
        else
            OK(MPI_Waitall(n_places, requests, ignore ? MPI_STATUSES_IGNORE : statuses));
        for (int i = 0; i < n_places && !ignore; ++i) {
            check_status(i, &statuses[i]);
            check_error_field(i, &statuses[i], 1);
        }
        check_end(before);
        // Nothing is active any more: at once, with empty statuses.
        flag = 0;
        OK(MPI_Testall(n_places, requests, &flag, statuses));
        CHECK(flag);
        for (int i = 0; i < n_places; ++i) check_status(null, &statuses[i]);
        OK(MPI_Waitall(n_places, requests, statuses));
        for (int i = 0; i < n_places; ++i) check_status(null, &statuses[i]);
    }
    tear_down();
}

static void waitall(void) { all_of_them(0); }
static void testall(void) { all_of_them(1); }

static void one_by_one(int test) {
    set_up();
    for (int epoch = 0; epoch < 8; ++epoch) {
        MPI_Status status;
        MPI_Request before[n_places];
        char seen[n_places] = {0};
        const int ignore = epoch % 2;
        start_epoch();
        release();
        memcpy(before, requests, sizeof before);
        for (int found = 0; found < n_ready; ++found) {
            int index = -1, flag = 0;
            status.MPI_ERROR = untouched;
            if (test)
                UNTIL(flag) OK(MPI_Testany(n_places, requests, &index, &flag, ignore ? MPI_STATUS_IGNORE : &status));
            else
                OK(MPI_Waitany(n_places, requests, &index, ignore ? MPI_STATUS_IGNORE : &status));
            CHECK(index >= 0 && index < n_places);
            CHECK(becomes_ready[index] && !seen[index]);
            seen[index] = 1;
            if (ignore) continue;
            check_status(index, &status);
            check_error_field(index, &status, 0);
        }
        check_end(before);
        int index = -1, flag = 0;
        memset(&status, 0x55, sizeof status);
        OK(MPI_Testany(n_places, requests, &index, &flag, &status));
        CHECK(flag && index == MPI_UNDEFINED);
        check_status(null, &status);
        memset(&status, 0x55, sizeof status);
        OK(MPI_Waitany(n_places, requests, &index, &status));
        CHECK(index == MPI_UNDEFINED);
        check_status(null, &status);
    }
    tear_down();
}

static void waitany(void) { one_by_one(0); }
static void testany(void) { one_by_one(1); }

static void some_of_them(int test) {
    set_up();
    for (int epoch = 0; epoch < 8; ++epoch) {
        MPI_Status statuses[n_places];
        MPI_Request before[n_places];
        char seen[n_places] = {0};
        int indices[n_places], n;
        const int ignore = epoch % 2;
        start_epoch();
        release();
        memcpy(before, requests, sizeof before);
        for (int i = 0; i < n_places; ++i) statuses[i].MPI_ERROR = untouched;
        for (int found = 0; found < n_ready; found += n) {
            n = 0;
            MPI_Status *const into = ignore ? MPI_STATUSES_IGNORE : statuses;
            if (!test) OK(MPI_Waitsome(n_places, requests, &n, indices, into));
            while (n == 0) OK(MPI_Testsome(n_places, requests, &n, indices, into));
            CHECK(n > 0 && n <= n_ready);
            for (int k = 0; k < n; ++k) {
                CHECK(indices[k] >= 0 && indices[k] < n_places);
                CHECK(becomes_ready[indices[k]] && !seen[indices[k]]);
                seen[indices[k]] = 1;
                if (!ignore) check_status(indices[k], &statuses[k]);
                if (!ignore) check_error_field(indices[k], &statuses[k], 1);
            }
        }
        check_end(before);
        OK(MPI_Testsome(n_places, requests, &n, indices, statuses));
        CHECK(n == MPI_UNDEFINED);
        OK(MPI_Waitsome(n_places, requests, &n, indices, statuses));
        CHECK(n == MPI_UNDEFINED);
    }
    tear_down();
}

static void waitsome(void) { some_of_them(0); }
static void testsome(void) { some_of_them(1); }

// With all but a few partitions ready nothing completes, by any of the calls.
static void not_before_all_are_ready(void) {
    set_up();
    for (int epoch = 0; epoch < 4; ++epoch) {
        key = shared_random();
        fill_side(&out, mix_key(key, (uint64_t)world_rank));
        fill_side(&in, key);
        MPI_Request some[] = {MPI_REQUEST_NULL, requests[idle_send], requests[send], requests[receive]};
        OK(MPI_Startall(2, some + 2));
        for (int left_out = 6; left_out >= 1; --left_out) {
            if (left_out < 6) OK(MPI_Pready(left_out, requests[send]));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            for (int i = 0; i < 20; ++i) {
                int flag = -1, index = -1, n = -1, indices[4];
                MPI_Status statuses[4];
                OK(MPI_Test(&some[2], &flag, statuses));
                CHECK(!flag);
                OK(MPI_Test(&some[3], &flag, statuses));
                CHECK(!flag);
                OK(MPI_Testall(4, some, &flag, statuses));
                CHECK(!flag);
                OK(MPI_Testany(4, some, &index, &flag, statuses));
                CHECK(!flag && index == MPI_UNDEFINED);
                OK(MPI_Testsome(4, some, &n, indices, statuses));
                CHECK(n == 0);
                OK(MPI_Request_get_status(some[2], &flag, statuses));
                CHECK(!flag);
                OK(MPI_Request_get_status(some[3], &flag, statuses));
                CHECK(!flag);
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        OK(MPI_Pready(0, requests[send]));
        OK(MPI_Waitall(4, some, MPI_STATUSES_IGNORE));
        check_received(&in, key, &out, mix_key(key, (uint64_t)left_rank));
    }
    tear_down();
}

static void get_status(void) {
    set_up();
    for (int epoch = 0; epoch < 4; ++epoch) {
        MPI_Status status;
        int flag = 0;
        start_epoch();
        release();
        for (int place = 0; place < n_places; ++place) {
            if (place == null) continue;
            flag = 0;
            status.MPI_ERROR = untouched;
            UNTIL(flag) OK(MPI_Request_get_status(requests[place], &flag, &status));
            check_status(place, &status);
            check_error_field(place, &status, 0);
            // It is still there, and says the same again.
            flag = 0;
            OK(MPI_Request_get_status(requests[place], &flag, MPI_STATUS_IGNORE));
            CHECK(flag);
        }
        // Still active: Wait gives the real status, not the empty one.
        OK(MPI_Wait(&requests[receive], &status));
        check_status(receive, &status);
        OK(MPI_Request_get_status(requests[receive], &flag, &status));
        CHECK(flag);
        check_status(null, &status);
        OK(MPI_Waitall(n_places, requests, MPI_STATUSES_IGNORE));
    }
    tear_down();
}

static void single(void) {
    set_up();
    for (int epoch = 0; epoch < 6; ++epoch) {
        MPI_Status status;
        int flag = 0;
        start_epoch();
        release();
        for (int place = n_places - 1; place >= 0; --place) {
            status.MPI_ERROR = untouched;
            if (epoch % 2) {
                flag = 0;
                UNTIL(flag) OK(MPI_Test(&requests[place], &flag, &status));
            } else {
                OK(MPI_Wait(&requests[place], &status));
            }
            check_status(place, &status);
            check_error_field(place, &status, 0);
            status.MPI_ERROR = untouched;
            OK(MPI_Wait(&requests[place], &status));  // inactive or null by now
            check_status(null, &status);
            check_error_field(place, &status, 0);
            flag = 0;
            OK(MPI_Test(&requests[place], &flag, MPI_STATUS_IGNORE));
            CHECK(flag);
        }
    }
    tear_down();
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 9: Wait and Test, one at a time", 1, single},
        {"rule 9: Waitall", 1, waitall},
        {"rule 9: Testall", 1, testall},
        {"rule 9: Waitany", 1, waitany},
        {"rule 9: Testany", 1, testany},
        {"rule 9: Waitsome", 1, waitsome},
        {"rule 9: Testsome", 1, testsome},
        {"rule 9: Request_get_status", 1, get_status},
        {"rule 5: a send completes only after every partition was marked ready", 1, not_before_all_are_ready},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
