// SPDX-License-Identifier: BSD-3-Clause
//
// MPI-4.1's Request_get_status_all, _any and _some, on arrays of ours, the library's and null requests. A ring.
#include "tests/errors/expect.h"
#ifdef MPIX_TESTS_BY_FORTRAN
#include "tests/mpi41/by_fortran.h"
#endif

enum { tag = 31, plain_tag = 32 };
enum place { none, receive, plain, send, n_places };

static struct side out, in;
static MPI_Request requests[n_places], plain_send;
static int word;

static void check_status(int place, const MPI_Status *status) {
    int bytes = -1;
    OK(MPI_Get_count(status, MPI_BYTE, &bytes));
    if (place == receive) CHECK(status->MPI_SOURCE == left_rank && status->MPI_TAG == tag && bytes == (int)in.bytes);
    if (place == plain) CHECK(status->MPI_SOURCE == left_rank && status->MPI_TAG == plain_tag && bytes == 4);
    if (place == none) CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && bytes == 0);
}

static void start_epoch(uint64_t epoch) {
    fill_side(&out, mix_key(epoch, (uint64_t)world_rank));
    fill_side(&in, epoch);
    OK(MPI_Start(&requests[receive]));
    OK(MPI_Start(&requests[send]));
    OK(MPI_Irecv(&word, 1, MPI_INT, left_rank, plain_tag, MPI_COMM_WORLD, &requests[plain]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void nothing_yet(void) {
    MPI_Status statuses[n_places];
    int flag = -1, index = -7, n = -7, indices[n_places];
    for (int i = 0; i < 20; ++i) {
        OK(MPI_Request_get_status_all(n_places, requests, &flag, statuses));
        CHECK(!flag);
        OK(MPI_Request_get_status_any(n_places, requests, &index, &flag, statuses));
        CHECK(!flag);
        OK(MPI_Request_get_status_some(n_places, requests, &n, indices, statuses));
        CHECK(n == 0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static MPI_Status *volatile no_status;  // which no compiler knows to be null

static void null_statuses(void) {
#ifdef MPIX_TESTS_BY_FORTRAN
    return;  // a Fortran program has no null pointers
#endif
    if (MPI_STATUS_IGNORE == NULL) return;  // which may be given, then
    int flag = -7, index = -7, n = -7, indices[n_places];
    EXPECT(MPI_ERR_ARG, "array_of_statuses is a null pointer",
           MPI_Request_get_status_all(n_places, requests, &flag, no_status));
    EXPECT(MPI_ERR_ARG, "status is a null pointer",
           MPI_Request_get_status_any(n_places, requests, &index, &flag, no_status));
    EXPECT(MPI_ERR_ARG, "array_of_statuses is a null pointer",
           MPI_Request_get_status_some(n_places, requests, &n, indices, no_status));
    CHECK(flag == -7 && index == -7 && n == -7);
}

static void look_at_all(void) {
    MPI_Status statuses[n_places];
    int flag = 0, n = 0, indices[n_places], index = -1;
    UNTIL(flag) OK(MPI_Request_get_status_all(n_places, requests, &flag, statuses));
    for (int i = 0; i < n_places; ++i) check_status(i, &statuses[i]);
    OK(MPI_Request_get_status_all(n_places, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    OK(MPI_Request_get_status_some(n_places, requests, &n, indices, statuses));
    CHECK(n == 3);
    for (int k = 0; k < n; ++k) {
        CHECK(indices[k] == receive || indices[k] == plain || indices[k] == send);
        check_status(indices[k], &statuses[k]);
    }
    for (int i = 0; i < n_places; ++i) {  // each by itself
        statuses[0].MPI_ERROR = 0x5a5a;
        OK(MPI_Request_get_status_any(1, &requests[i], &index, &flag, statuses));
        CHECK(flag && index == (i == none ? MPI_UNDEFINED : 0));
        if (i != none) check_status(i, statuses);
        if (i == receive || i == send) CHECK(statuses[0].MPI_ERROR == 0x5a5a);
    }
}

static void looks_only(void) {
    make_side(&out, MPI_INT, 4, 6);
    make_side(&in, MPI_INT, 3, 8);
    requests[none] = MPI_REQUEST_NULL;
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[send]));
    OK(MPI_Precv_init(in.buffer, 3, 8, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[receive]));
    for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
        start_epoch(epoch);
        nothing_yet();
        null_statuses();
        OK(MPI_Isend(&world_rank, 1, MPI_INT, right_rank, plain_tag, MPI_COMM_WORLD, &plain_send));
        ready_all(requests[send], 4, shuffled);
        look_at_all();
        null_statuses();
        // They are still active: only now they are completed.
        MPI_Status statuses[n_places];
        OK(MPI_Waitall(n_places, requests, statuses));
        for (int i = 0; i < n_places; ++i) check_status(i, &statuses[i]);
        check_received(&in, epoch, &out, mix_key(epoch, (uint64_t)left_rank));
        CHECK(word == left_rank);
        OK(MPI_Wait(&plain_send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&requests[send]));
    OK(MPI_Request_free(&requests[receive]));
    free_side(&out);
    free_side(&in);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 9: Request_get_status_all, _any and _some", 1, looks_only},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
