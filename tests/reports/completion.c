// SPDX-License-Identifier: BSD-3-Clause
//
// Completion calls on arrays that mix partitioned requests and the library's, in a ring of ranks.
#include <pthread.h>
#include <unistd.h>

#include "tests/errors/expect.h"

enum { tag = 21, plain_tag = 22, count = 6 };

static int out[count], in[2 * count];
static MPI_Request both[2];

static void start_epoch(int epoch) {
    for (int i = 0; i < count; ++i) out[i] = 1000 * world_rank + 10 * epoch + i;
    for (int i = 0; i < 2 * count; ++i) in[i] = -1;
    OK(MPI_Startall(2, both));
    OK(MPI_Pready_range(0, 1, both[0]));
}

static void check_data(int epoch) {
    for (int i = 0; i < 2 * count; ++i) CHECK(in[i] == (i < count ? 1000 * left_rank + 10 * epoch + i : -1));
}

static void make_pair(int received) {
    OK(MPI_Psend_init(out, 2, count / 2, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in, 1, received, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
}

static void free_pair(void) {
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
}

// ---- generalized requests ------------------------------------------------------------------------------

static int queries, frees;
static MPI_Request generalized[2];

static int query(void *state, MPI_Status *status) {
    (void)state;
    ++queries;
    MPI_Status_set_elements(status, MPI_BYTE, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 5;
    status->MPI_TAG = 6;
    return MPI_SUCCESS;
}
static int release(void *state) {
    (void)state;
    ++frees;
    return MPI_SUCCESS;
}
static int cancel(void *state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void *complete_later(void *unused) {
    usleep(20000);  // any moment is right; most often the other thread waits by then
    for (int i = 0; i < 2; ++i) OK(MPI_Grequest_complete(generalized[i]));
    return unused;
}

static void asked_no_more(void) {
    make_pair(count);
    for (int epoch = 1; epoch <= 4; ++epoch) {
        MPI_Status statuses[5];
        pthread_t thread;
        const int waits = epoch % 2 != 0;
        queries = frees = 0;
        for (int i = 0; i < 2; ++i) OK(MPI_Grequest_start(query, release, cancel, NULL, &generalized[i]));
        start_epoch(epoch);
        MPI_Request all[5] = {generalized[0], both[0], MPI_REQUEST_NULL, generalized[1], both[1]};
        CHECK(pthread_create(&thread, NULL, complete_later, NULL) == 0);
        int flag = 0;
        if (waits)
            OK(MPI_Waitall(5, all, statuses));
        else
            UNTIL(flag) OK(MPI_Testall(5, all, &flag, statuses));
        CHECK(pthread_join(thread, NULL) == 0);
        // MPICH's own MPI_Testall asks a request that is complete again while another one is not.
        CHECK((waits ? queries == 2 : queries >= 2) && frees == 2);
        check_data(epoch);
        for (int i = 0; i < 5; ++i) {
            int bytes = -1;
            OK(MPI_Get_count(&statuses[i], MPI_BYTE, &bytes));
            if (i == 0 || i == 3)
                CHECK(bytes == 3 && statuses[i].MPI_SOURCE == 5 && statuses[i].MPI_TAG == 6);
            else
                CHECK(bytes == (i == 4 ? (int)sizeof out : 0));
        }
        CHECK(all[0] == MPI_REQUEST_NULL && all[1] == both[0] && all[3] == MPI_REQUEST_NULL && all[4] == both[1]);
    }
    free_pair();
}

// ---- statuses ------------------------------------------------------------------------------------------

// A receive that is longer than its send is refused, and its status says that nothing came.
static void nothing_of_a_longer_receive(void) {
    make_pair(2 * count);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        MPI_Status statuses[2];
        int bytes[2] = {-1, -1}, flag = 0;
        start_epoch(epoch);
        UNTIL(flag) OK(MPI_Request_get_status(both[1], &flag, &statuses[0]));
        OK(MPI_Get_count(&statuses[0], MPI_BYTE, &bytes[0]));
        if (epoch < 3) {
            EXPECT(MPI_ERR_TRUNCATE, "bytes", MPI_Wait(&both[1], &statuses[1]));
            OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
        } else {
            CHECK(MPI_Waitall(2, both, statuses) != MPI_SUCCESS);
            CHECK(statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE);
            OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));  // it may have been pending
        }
        OK(MPI_Get_count(&statuses[1], MPI_BYTE, &bytes[1]));
        CHECK(bytes[0] == 0 && bytes[1] == 0);
        for (int i = 0; i < 2 * count; ++i) CHECK(in[i] == -1);
    }
    free_pair();
}

enum call { waitall, testall, waitsome, testsome, n_calls };

// The statuses of three requests, in the array's order, by one of the calls.
static void complete(enum call call, MPI_Request all[3], MPI_Status statuses[3]) {
    MPI_Status some[3];
    int flag = 0, n = 0, indices[3], done = 0;
    for (int i = 0; i < 3; ++i) some[i].MPI_ERROR = statuses[i].MPI_ERROR = 77;
    if (call == waitall) OK(MPI_Waitall(3, all, statuses));
    if (call == testall) UNTIL(flag) OK(MPI_Testall(3, all, &flag, statuses));
    if (call == waitall || call == testall) return;
    UNTIL(done == 3) {
        if (call == waitsome) OK(MPI_Waitsome(3, all, &n, indices, some));
        if (call == testsome) OK(MPI_Testsome(3, all, &n, indices, some));
        done += n;
        for (int k = 0; k < n; ++k) {
            statuses[indices[k]] = some[k];
            some[k].MPI_ERROR = 77;
        }
    }
}

// Programs read MPI_ERROR of statuses where the library writes it, though nothing has failed.
static void success_is_written(void) {
    make_pair(count);
    for (int epoch = 1; epoch <= 2 * n_calls; ++epoch) {
        MPI_Status mixed[3], plain[3];
        MPI_Request all[3];
        int words[4];
        const enum call call = (enum call)(epoch % n_calls);
        for (int i = 0; i < 3; ++i) OK(MPI_Irecv(&words[i], 1, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &all[i]));
        for (int i = 0; i < 3; ++i) OK(MPI_Send(&epoch, 1, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD));
        complete(call, all, plain);
        start_epoch(epoch);
        OK(MPI_Irecv(&words[3], 1, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &all[1]));
        OK(MPI_Send(&epoch, 1, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD));
        all[0] = both[0];
        all[2] = both[1];
        complete(call, all, mixed);
        check_data(epoch);
        CHECK(words[3] == epoch);
        for (int i = 0; i < 3; ++i) CHECK(mixed[i].MPI_ERROR == plain[i].MPI_ERROR);
    }
    free_pair();
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"generalized requests beside ours are asked once", 1, asked_no_more},
        {"a receive that is longer than its send has no bytes", 1, nothing_of_a_longer_receive},
        {"MPI_SUCCESS is written where the library writes it", 1, success_is_written},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_MULTIPLE, cases);
}
