// SPDX-License-Identifier: BSD-3-Clause
//
// A request of an array fails while another one cannot complete: the call on the array tells the error, and the other
// one completes later. Ranks 0 and 1; rank 1's message for the other one is ready only when rank 0 says that it has
// heard of the error.
#include "tests/errors/expect.h"

enum { slow_tag = 51, bad_tag = 52, plain_tag = 53, go_tag = 54, parts = 4, count = 3, length = parts * count };
enum call { waitall, waitsome, testsome, waitany, testany, n_calls };

static int slow_out[length], slow_in[length], bad_out[length], bad_in[2 * length];

static int value(int epoch, int i) { return 100 * epoch + i; }

static void tell(int rank) { OK(MPI_Send(NULL, 0, MPI_BYTE, rank, go_tag, MPI_COMM_WORLD)); }
static void hear(int rank) { OK(MPI_Recv(NULL, 0, MPI_BYTE, rank, go_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

// What the call says of the failed one, `bad`, while the other one is not complete.
static void expect_failure(enum call call, MPI_Request all[2], int bad) {
    static const char words[] = "bytes";
    MPI_Status statuses[2];
    int code = MPI_SUCCESS, flag = 0, n = 0, index = -1, indices[2];
    for (int i = 0; i < 2; ++i) statuses[i].MPI_ERROR = -7;
    switch (call) {
        case waitall:
            EXPECT(MPI_ERR_IN_STATUS, words, MPI_Waitall(2, all, statuses));
            break;
        case waitsome:
            EXPECT(MPI_ERR_IN_STATUS, words, MPI_Waitsome(2, all, &n, indices, statuses));
            break;
        case testsome:
            UNTIL(n != 0) code = MPI_Testsome(2, all, &n, indices, statuses);
            expect_error(__FILE__, __LINE__, "MPI_Testsome()", code, MPI_ERR_IN_STATUS, words);
            break;
        case waitany:
            EXPECT(MPI_ERR_TRUNCATE, words, MPI_Waitany(2, all, &index, statuses));
            break;
        default:
            UNTIL(flag) code = MPI_Testany(2, all, &index, &flag, statuses);
            expect_error(__FILE__, __LINE__, "MPI_Testany()", code, MPI_ERR_TRUNCATE, words);
    }
    if (call == waitall)
        CHECK(statuses[bad].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1 - bad].MPI_ERROR == MPI_ERR_PENDING);
    if (call == waitsome || call == testsome)
        CHECK(n == 1 && indices[0] == bad && statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
    if (call == waitany || call == testany) CHECK(index == bad);
}

// `by_library`: the other one is an ordinary receive.
static void fail_beside(int by_library) {
    MPI_Request slow = MPI_REQUEST_NULL, bad = MPI_REQUEST_NULL;
    if (world_rank > 1) return;
    if (world_rank == 1) {
        OK(MPI_Psend_init(slow_out, parts, count, MPI_INT, 0, slow_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &slow));
        OK(MPI_Psend_init(bad_out, parts, count, MPI_INT, 0, bad_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &bad));
    } else {
        OK(MPI_Precv_init(slow_in, 1, length, MPI_INT, 1, slow_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &slow));
        OK(MPI_Precv_init(bad_in, parts, 2 * count, MPI_INT, 1, bad_tag, MPI_COMM_WORLD, MPI_INFO_NULL, &bad));
    }
    for (int epoch = 0; epoch < 2 * n_calls; ++epoch) {
        for (int i = 0; i < length; ++i) slow_out[i] = bad_out[i] = value(epoch, i), slow_in[i] = -1;
        for (int i = 0; i < 2 * length; ++i) bad_in[i] = -1;
        OK(MPI_Start(&bad));
        if (!by_library) OK(MPI_Start(&slow));
        if (world_rank == 1) {
            OK(MPI_Pready_range(0, parts - 1, bad));
            if (!by_library) OK(MPI_Pready_range(1, parts - 1, slow));
            hear(0);
            if (by_library)
                OK(MPI_Send(slow_out, length, MPI_INT, 0, plain_tag, MPI_COMM_WORLD));
            else
                OK(MPI_Pready(0, slow));
            OK(MPI_Wait(&slow, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&bad, MPI_STATUS_IGNORE));
            continue;
        }
        const int last = epoch % 2;  // where the failed one is
        MPI_Request all[2];
        all[last] = bad;
        all[1 - last] = slow;
        if (by_library) OK(MPI_Irecv(slow_in, length, MPI_INT, 1, plain_tag, MPI_COMM_WORLD, &all[1 - last]));
        expect_failure((enum call)(epoch / 2), all, last);
        CHECK(all[last] == bad && all[1 - last] != MPI_REQUEST_NULL);
        OK(MPI_Wait(&all[last], MPI_STATUS_IGNORE));  // it is inactive now
        tell(1);
        MPI_Status status;
        OK(MPI_Wait(&all[1 - last], &status));
        int bytes = -1;
        OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
        CHECK(bytes == (int)sizeof slow_in && status.MPI_SOURCE == 1);
        for (int i = 0; i < length; ++i) CHECK(slow_in[i] == value(epoch, i));
        for (int i = 0; i < 2 * length; ++i) CHECK(bad_in[i] == -1);
    }
    OK(MPI_Request_free(&slow));
    OK(MPI_Request_free(&bad));
}

static void beside_ours(void) { fail_beside(0); }
static void beside_the_librarys(void) { fail_beside(1); }

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"a request fails beside a partitioned one that is not complete", 2, beside_ours},
        {"a request fails beside one of the library's that is not complete", 2, beside_the_librarys},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
