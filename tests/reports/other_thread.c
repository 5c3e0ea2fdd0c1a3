// SPDX-License-Identifier: BSD-3-Clause
//
// A second thread calls MPI, one call at a time. `other_thread single|funneled [checked]`: an error in check mode,
// which names the call and the level, and has no effect. `other_thread serialized checked`: as MPI allows.
#include <pthread.h>

#include "tests/errors/expect.h"

enum { tag = 41, parts = 4, count = 3, length = parts * count };

static int level, refused;  // of the run
static int out[length], in[length];
static MPI_Request send, receive;
static MPI_Comm copy;

#define CALL(call)                                                                          \
    do {                                                                                    \
        if (refused)                                                                        \
            EXPECT(MPI_ERR_OTHER,                                                           \
                   level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE; ask MPI_Init_thread"    \
                                              : "MPI_THREAD_FUNNELED; ask MPI_Init_thread", \
                   call);                                                                   \
        else                                                                                \
            OK(call);                                                                       \
    } while (0)

static void *in_a_second_thread(void *unused) {
    int flag = 0, told = -1;
    CALL(MPI_Pready(0, send));
    CALL(MPI_Pready_range(1, 2, send));
    CALL(MPI_Pready_list(1, (int[]){3}, send));
    CALL(MPI_Parrived(receive, 0, &flag));
    CALL(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    OK(MPI_Query_thread(&told));  // in any thread, at every level
    CHECK(told == level);
    return unused;
}

static void *ends_them(void *unused) {
    CALL(MPI_Waitall(2, (MPI_Request[]){send, receive}, MPI_STATUSES_IGNORE));
    return unused;
}

static void run_thread(void *(*body)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void calls_of_two_threads(void) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Psend_init(out, parts, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, parts, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int epoch = 0; epoch < 3; ++epoch) {
        for (int i = 0; i < length; ++i) out[i] = 1000 * world_rank + 100 * epoch + i, in[i] = -1;
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        run_thread(in_a_second_thread);
        if (refused) {  // none of it has had an effect
            OK(MPI_Pready_range(0, parts - 1, send));
            OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
        }
        run_thread(ends_them);
        if (refused) OK(MPI_Waitall(2, (MPI_Request[]){send, receive}, MPI_STATUSES_IGNORE));
        for (int i = 0; i < length; ++i) CHECK(in[i] == 1000 * left_rank + 100 * epoch + i);
        OK(MPI_Comm_free(&copy));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"calls of two threads, one at a time", 1, calls_of_two_threads}};
    CHECK(argc >= 2);
    level = strcmp(argv[1], "single") == 0     ? MPI_THREAD_SINGLE
            : strcmp(argv[1], "funneled") == 0 ? MPI_THREAD_FUNNELED
                                               : MPI_THREAD_SERIALIZED;
    refused = level != MPI_THREAD_SERIALIZED && argc > 2;
    return RUN_CASES(1, argv, level, cases);
}
