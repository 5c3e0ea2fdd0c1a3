// SPDX-License-Identifier: BSD-3-Clause
//
// Rules 9 and 11 at their edges: what a status says, arrays with nothing in them that is active, requests that are
// always complete. A ring.
#include <string.h>

#include "tests/conformance/harness.h"

enum { tag = 12 };

static void check_empty(const MPI_Status *status) {
    int bytes = -1, cancelled = -1;
    MPI_Count elements = -1;
    OK(MPI_Get_count(status, MPI_INT, &bytes));
    OK(MPI_Get_elements_x(status, MPI_INT, &elements));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG);
    CHECK(bytes == 0 && elements == 0 && !cancelled);
}

static MPI_Status poisoned(void) {
    MPI_Status status;
    memset(&status, 0x6b, sizeof status);
    return status;
}

// Elements of any kind can be counted in a receive's status.
static void counts_of_a_receive(void) {
    MPI_Datatype types[] = {MPI_INT, make_type(corner), make_type(strided_ints), MPI_SHORT};
    for (int i = 0; i < 4; ++i) {
        struct side out, in;
        MPI_Request both[2];
        make_side(&out, MPI_BYTE, 6, 240);
        const int per_partition = i == 0 ? 90 : i == 3 ? 180 : 30;
        make_side(&in, types[i], 4, per_partition);
        OK(MPI_Psend_init(out.buffer, 6, 240, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
        OK(MPI_Precv_init(in.buffer, 4, per_partition, types[i], left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &both[1]));
        for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
            MPI_Status status = poisoned();
            int elements = -1, cancelled = -1, whole = -1;
            MPI_Count basic = -1;
            fill_side(&out, mix_key(epoch, (uint64_t)world_rank));
            fill_side(&in, epoch);
            OK(MPI_Startall(2, both));
            ready_all(both[0], 6, shuffled);
            OK(MPI_Wait(&both[1], &status));
            OK(MPI_Get_count(&status, types[i], &elements));
            OK(MPI_Get_count(&status, MPI_BYTE, &whole));
            OK(MPI_Get_elements_x(&status, types[i], &basic));
            OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK(elements == 4 * per_partition && whole == 1440 && !cancelled);
            CHECK(basic == (i == 1 || i == 3 ? 720 : 360));
            CHECK(status.MPI_SOURCE == left_rank && status.MPI_TAG == tag);
            check_received(&in, epoch, &out, mix_key(epoch, (uint64_t)left_rank));
            // Of a send's status only this can be asked.
            OK(MPI_Wait(&both[0], &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK(!cancelled);
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
        free_side(&out);
        free_side(&in);
    }
    OK(MPI_Type_free(&types[1]));
    OK(MPI_Type_free(&types[2]));
}

// Every call, on an array of null and inactive requests alone.
static void nothing_active(MPI_Request idle[], int n) {
    MPI_Status status = poisoned(), statuses[4];
    int flag, index, outcount, indices[4];
    for (int i = 0; i < n; ++i) {
        status = poisoned();
        OK(MPI_Wait(&idle[i], &status));
        check_empty(&status);
        status = poisoned(), flag = 0;
        OK(MPI_Test(&idle[i], &flag, &status));
        CHECK(flag);
        check_empty(&status);
        status = poisoned(), flag = 0;
        OK(MPI_Request_get_status(idle[i], &flag, &status));
        CHECK(flag);
        check_empty(&status);
        OK(MPI_Wait(&idle[i], MPI_STATUS_IGNORE));
    }
    status = poisoned(), index = -7;
    OK(MPI_Waitany(n, idle, &index, &status));
    CHECK(index == MPI_UNDEFINED);
    check_empty(&status);
    status = poisoned(), index = -7, flag = 0;
    OK(MPI_Testany(n, idle, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED);
    check_empty(&status);
    for (int i = 0; i < 4; ++i) statuses[i] = poisoned();
    OK(MPI_Waitall(n, idle, statuses));
    for (int i = 0; i < n; ++i) check_empty(&statuses[i]);
    for (int i = 0; i < 4; ++i) statuses[i] = poisoned();
    flag = 0;
    OK(MPI_Testall(n, idle, &flag, statuses));
    CHECK(flag);
    for (int i = 0; i < n; ++i) check_empty(&statuses[i]);
    outcount = -7;
    OK(MPI_Waitsome(n, idle, &outcount, indices, statuses));
    CHECK(outcount == MPI_UNDEFINED);
    outcount = -7;
    OK(MPI_Testsome(n, idle, &outcount, indices, MPI_STATUSES_IGNORE));
    CHECK(outcount == MPI_UNDEFINED);
}

static void null_and_inactive(void) {
    int data[4] = {0}, more[4] = {0};
    MPI_Request idle[4] = {MPI_REQUEST_NULL};
    OK(MPI_Psend_init(data, 2, 2, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &idle[1]));
    OK(MPI_Precv_init(more, 4, 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &idle[2]));
    OK(MPI_Recv_init(more, 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, &idle[3]));
    for (int epoch = 0; epoch < 3; ++epoch) {  // also when they have been used
        for (int first = 0; first < 4; ++first)
            for (int n = 1; n <= 4 - first; ++n) nothing_active(idle + first, n);
        OK(MPI_Startall(2, &idle[1]));
        OK(MPI_Pready_range(0, 1, idle[1]));
        OK(MPI_Waitall(2, &idle[1], MPI_STATUSES_IGNORE));
    }
    for (int i = 1; i < 4; ++i) OK(MPI_Request_free(&idle[i]));
}

// Also while an active request of ours is somewhere else.
static void empty_arrays(void) {
    int data = 0, flag = 0, index = -7, n = -7;
    MPI_Request request, unused[1] = {MPI_REQUEST_NULL};
    MPI_Status status = poisoned(), statuses[1];
    OK(MPI_Psend_init(&data, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Waitall(0, unused, statuses));
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Testall(0, unused, &flag, statuses));
    CHECK(flag);
    OK(MPI_Waitany(0, unused, &index, &status));
    CHECK(index == MPI_UNDEFINED);
    index = -7, flag = 0;
    OK(MPI_Testany(0, unused, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED);
    OK(MPI_Waitsome(0, unused, &n, &index, statuses));
    CHECK(n == MPI_UNDEFINED);
    n = -7;
    OK(MPI_Testsome(0, unused, &n, &index, statuses));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Pready(0, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

// Arrays larger than any that is likely to be held on the stack.
static void many_in_one_array(void) {
    enum { pairs = 150, n = 3 * pairs };
    static int data[pairs][2], more[pairs][2];
    static MPI_Request all[n];
    static MPI_Status statuses[n];
    static int indices[n];
    for (int i = 0; i < pairs; ++i) {
        OK(MPI_Psend_init(data[i], 2, 1, MPI_INT, right_rank, i, MPI_COMM_WORLD, MPI_INFO_NULL, &all[3 * i]));
        OK(MPI_Precv_init(more[i], 1, 2, MPI_INT, left_rank, i, MPI_COMM_WORLD, MPI_INFO_NULL, &all[3 * i + 1]));
        all[3 * i + 2] = MPI_REQUEST_NULL;
    }
    for (int epoch = 0; epoch < 8; ++epoch) {
        char seen[n] = {0};
        int left = 2 * pairs, flag = 0, found = 0, index = -1;
        const int salt = (int)(shared_random() % 1000000);
        for (int i = 0; i < pairs; ++i) {
            data[i][0] = salt + world_rank * 1000 + i, data[i][1] = ~data[i][0];
            more[i][0] = more[i][1] = -1;
            OK(MPI_Start(&all[3 * i]));
            OK(MPI_Start(&all[3 * i + 1]));
            OK(MPI_Pready_range(0, 1, all[3 * i]));
        }
        switch (epoch % 4) {
            case 0:
                OK(MPI_Waitall(n, all, statuses));
                break;
            case 1:
                UNTIL(flag) OK(MPI_Testall(n, all, &flag, statuses));
                break;
            case 2:
                for (; left > 0; --left) {
                    OK(MPI_Waitany(n, all, &index, MPI_STATUS_IGNORE));
                    CHECK(index >= 0 && index < n && index % 3 != 2 && !seen[index]);
                    seen[index] = 1;
                }
                break;
            default:
                for (; left > 0; left -= found) {
                    OK(MPI_Waitsome(n, all, &found, indices, statuses));
                    CHECK(found > 0);
                    for (int k = 0; k < found; ++k) {
                        CHECK(indices[k] % 3 != 2 && !seen[indices[k]]);
                        seen[indices[k]] = 1;
                    }
                }
        }
        for (int i = 0; i < pairs && epoch % 4 < 2; ++i) {
            CHECK(statuses[3 * i + 1].MPI_SOURCE == left_rank && statuses[3 * i + 1].MPI_TAG == i);
            check_empty(&statuses[3 * i + 2]);
        }
        for (int i = 0; i < pairs; ++i) CHECK(more[i][0] == salt + left_rank * 1000 + i && more[i][1] == ~more[i][0]);
    }
    for (int i = 0; i < n; ++i)
        if (all[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&all[i]));
}

// Requests that are complete as soon as they are started, two of ours and two of the library's, and are started again
// whenever they are found.
static int query(void *state, MPI_Status *status) {
    OK(MPI_Status_set_elements(status, MPI_BYTE, 0));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = status->MPI_TAG = 0;
    return state == NULL ? MPI_SUCCESS : MPI_ERR_OTHER;
}
static int forget(void *state) { return state == NULL ? MPI_SUCCESS : MPI_ERR_OTHER; }
static int cancel(void *state, int complete) { return state == NULL && complete ? MPI_SUCCESS : MPI_ERR_OTHER; }

static void start_eager(MPI_Request all[4], int i) {
    if (i < 2) {
        OK(MPI_Start(&all[i]));
        return;
    }
    CHECK(all[i] == MPI_REQUEST_NULL);
    OK(MPI_Grequest_start(query, forget, cancel, NULL, &all[i]));
    OK(MPI_Grequest_complete(all[i]));
}

static void set_up_eager(MPI_Request all[4]) {
    static int data[4];
    for (int i = 0; i < 2; ++i)
        OK(MPI_Precv_init(data, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &all[i]));
    all[2] = all[3] = MPI_REQUEST_NULL;
    for (int i = 0; i < 4; ++i) start_eager(all, i);
}

static void tear_down_eager(MPI_Request all[4]) {
    OK(MPI_Waitall(4, all, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&all[i]));
}

static void waitsome_starves_none(void) {
    MPI_Request all[4];
    int found[4] = {0};
    set_up_eager(all);
    for (int round = 0; round < 100; ++round) {
        int n = 0, indices[4];
        if (round % 2)
            OK(MPI_Waitsome(4, all, &n, indices, MPI_STATUSES_IGNORE));
        else
            UNTIL(n != 0) OK(MPI_Testsome(4, all, &n, indices, MPI_STATUSES_IGNORE));
        for (int k = 0; k < n; ++k) {
            ++found[indices[k]];
            start_eager(all, indices[k]);
        }
    }
    for (int i = 0; i < 4; ++i) CHECK(found[i] > 0);
    tear_down_eager(all);
}

static void waitany_starves_none(void) {
    MPI_Request all[4];
    int found[4] = {0};
    set_up_eager(all);
    for (int round = 0; round < 400; ++round) {
        int index = -1, flag = 0;
        if (round < 200)
            OK(MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE));
        else
            UNTIL(flag) OK(MPI_Testany(4, all, &index, &flag, MPI_STATUS_IGNORE));
        ++found[index];
        start_eager(all, index);
        // Which of its own the library finds is its affair.
        if (round % 200 == 199) {
            CHECK(found[0] > 0 && found[1] > 0 && found[2] + found[3] > 0);
            memset(found, 0, sizeof found);
        }
    }
    tear_down_eager(all);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 11: the status of a receive counts elements of any type", 1, counts_of_a_receive},
        {"rule 9: empty statuses of null and inactive requests, from every call", 1, null_and_inactive},
        {"rule 9: arrays of no requests", 1, empty_arrays},
        {"rule 9: hundreds of requests in one array", 1, many_in_one_array},
        {"rule 9: Waitsome and Testsome find all that are complete", 1, waitsome_starves_none},
        {"beyond the standard: Waitany and Testany starve neither kind of request", 1, waitany_starves_none},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
