// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 12: which error handler is called, with what, and how often. A ring.
#include <sys/resource.h>
#include <unistd.h>

#include "tests/errors/expect.h"

enum { tag = 16, parts = 4 };

static int data[parts], more[2 * parts];

// Two handlers that count, and remember what they were called with.
static struct record {
    int calls, error_class;
    MPI_Comm comm;
    char sentence[MPI_MAX_ERROR_STRING];
} first, second;

static void note(struct record *r, const MPI_Comm *comm, const int *code) {
    int n = 0;
    ++r->calls;
    r->comm = *comm;
    MPI_Error_class(*code, &r->error_class);
    MPI_Error_string(*code, r->sentence, &n);
}
static void note_first(MPI_Comm *comm, int *code, ...) { note(&first, comm, code); }
static void note_second(MPI_Comm *comm, int *code, ...) { note(&second, comm, code); }

static void set_handler(MPI_Comm comm, MPI_Comm_errhandler_function *function) {
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(function, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
}

static void reset(void) { memset(&first, 0, sizeof first), memset(&second, 0, sizeof second); }

// The call has gone to the first handler, once, and to it alone.
#define GOES_TO_FIRST(on, wanted, words, call)                                   \
    do {                                                                         \
        reset();                                                                 \
        EXPECT(wanted, words, call);                                             \
        CHECK(first.calls == 1 && first.error_class == (wanted));                \
        CHECK(first.comm == (on) && second.calls == 0);                          \
        CHECK(getenv("MPIX_TESTS_CLASS_ONLY") || strstr(first.sentence, words)); \
    } while (0)

static void every_call_on(MPI_Comm comm, int to, int from) {
    MPI_Request r[2], none = MPI_REQUEST_NULL;
    MPI_Status statuses[2];
    int flag, list[] = {parts};
    GOES_TO_FIRST(comm, MPI_ERR_TAG, "tag is -200",
                  MPI_Psend_init(data, 1, 1, MPI_INT, to, -200, comm, MPI_INFO_NULL, &none));
    GOES_TO_FIRST(comm, MPI_ERR_COUNT, "count is -2",
                  MPI_Precv_init(more, 1, -2, MPI_INT, from, tag, comm, MPI_INFO_NULL, &none));
    OK(MPI_Psend_init(data, parts, 1, MPI_INT, to, tag, comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(more, parts, 2, MPI_INT, from, tag, comm, MPI_INFO_NULL, &r[1]));  // twice the size
    GOES_TO_FIRST(comm, MPI_ERR_REQUEST, "not been started", MPI_Pready(0, r[0]));
    GOES_TO_FIRST(comm, MPI_ERR_REQUEST, "partitioned send", MPI_Parrived(r[0], 0, &flag));
    OK(MPI_Startall(2, r));
    GOES_TO_FIRST(comm, MPI_ERR_REQUEST, "active", MPI_Start(&r[0]));
    GOES_TO_FIRST(comm, MPI_ERR_REQUEST, "active", MPI_Startall(2, r));
    GOES_TO_FIRST(comm, MPI_ERR_ARG, "partition -1", MPI_Pready(-1, r[0]));
    GOES_TO_FIRST(comm, MPI_ERR_ARG, "range 3 to 4", MPI_Pready_range(3, 4, r[0]));
    GOES_TO_FIRST(comm, MPI_ERR_ARG, "partition 4", MPI_Pready_list(1, list, r[0]));
    GOES_TO_FIRST(comm, MPI_ERR_ARG, "partition 9", MPI_Parrived(r[1], 9, &flag));
    GOES_TO_FIRST(comm, MPI_ERR_REQUEST, "active", MPI_Request_free(&r[1]));
    GOES_TO_FIRST(comm, MPI_ERR_REQUEST, "cancelled", MPI_Cancel(&r[0]));
    OK(MPI_Pready_range(0, parts - 1, r[0]));
    OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    GOES_TO_FIRST(comm, MPI_ERR_TRUNCATE, "bytes", MPI_Wait(&r[1], &statuses[1]));
    OK(MPI_Startall(2, r));
    OK(MPI_Pready_range(0, parts - 1, r[0]));
    GOES_TO_FIRST(comm, MPI_ERR_IN_STATUS, "bytes", MPI_Waitall(2, r, statuses));
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static void of_a_duplicate(void) {
    MPI_Comm comm;
    set_handler(MPI_COMM_WORLD, note_second);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    set_handler(comm, note_first);
    every_call_on(comm, right_rank, left_rank);
    OK(MPI_Comm_free(&comm));
}

static void of_world(void) {
    set_handler(MPI_COMM_WORLD, note_first);
    every_call_on(MPI_COMM_WORLD, right_rank, left_rank);
}

static void of_self(void) {
    MPI_Errhandler before;
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &before));
    set_handler(MPI_COMM_WORLD, note_second);
    set_handler(MPI_COMM_SELF, note_first);
    every_call_on(MPI_COMM_SELF, 0, 0);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, before));
    OK(MPI_Errhandler_free(&before));
}

static void inherited(void) {
    MPI_Comm parent, child;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    set_handler(parent, note_first);
    OK(MPI_Comm_dup(parent, &child));
    set_handler(parent, note_second);  // too late for the child
    every_call_on(child, right_rank, left_rank);
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free(&child));
}

// The handler that counts is the one at the time of the error.
static void set_later(void) {
    MPI_Comm comm;
    MPI_Request r;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    set_handler(comm, note_second);
    OK(MPI_Psend_init(data, parts, 1, MPI_INT, MPI_PROC_NULL, tag, comm, MPI_INFO_NULL, &r));
    OK(MPI_Start(&r));
    set_handler(comm, note_first);
    GOES_TO_FIRST(comm, MPI_ERR_ARG, "partition 77", MPI_Pready(77, r));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    reset();
    EXPECT(MPI_ERR_ARG, "partition 78", MPI_Pready(78, r));
    CHECK(first.calls == 0 && second.calls == 0);
    OK(MPI_Pready_range(0, parts - 1, r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r));
    OK(MPI_Comm_free(&comm));
}

// The communicator is freed under its request, and another one may get its handle: the request's errors still go to
// the handler that its own communicator had.
static void freed_communicator(void) {
    MPI_Comm comm, next;
    MPI_Request r;
    set_handler(MPI_COMM_WORLD, note_second);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int returns = 0; returns < 2; ++returns) {
        if (returns)
            OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        else
            set_handler(comm, note_first);
        OK(MPI_Psend_init(data, parts, 1, MPI_INT, MPI_PROC_NULL, tag, comm, MPI_INFO_NULL, &r));
        OK(MPI_Start(&r));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &next));  // with the second handler
        reset();
        EXPECT(MPI_ERR_ARG, "partition 5", MPI_Pready(5, r));
        EXPECT(MPI_ERR_REQUEST, "active", MPI_Start(&r));
        CHECK(second.calls == 0 && first.calls == (returns ? 0 : 2));
        if (!returns) CHECK(first.error_class == MPI_ERR_REQUEST);
        OK(MPI_Pready_range(0, parts - 1, r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&r));
        comm = next;
    }
    OK(MPI_Comm_free(&comm));
}

// A handler that calls MPI, and makes an error of its own.
static MPI_Request other, in_handler;

static void busy(MPI_Comm *comm, int *code, ...) {
    int rank, token = 5, answer = 0;
    note(&first, comm, code);
    OK(MPI_Comm_rank(*comm, &rank));
    OK(MPI_Sendrecv(&token, 1, MPI_INT, rank, 1, &answer, 1, MPI_INT, rank, 1, *comm, MPI_STATUS_IGNORE));
    CHECK(answer == 5);
    EXPECT(MPI_ERR_ARG, "partition 91", MPI_Pready(91, other));  // goes to the second handler
    OK(MPI_Pready(0, in_handler));
    OK(MPI_Wait(&in_handler, MPI_STATUS_IGNORE));
}

static void handler_that_calls(void) {
    MPI_Comm comm;
    MPI_Request r;
    set_handler(MPI_COMM_WORLD, note_second);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    set_handler(comm, busy);
    OK(MPI_Psend_init(data, 1, 1, MPI_INT, MPI_PROC_NULL, tag, comm, MPI_INFO_NULL, &r));
    OK(MPI_Psend_init(data, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &other));
    OK(MPI_Psend_init(data, 1, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &in_handler));
    OK(MPI_Start(&r));
    OK(MPI_Start(&other));
    OK(MPI_Start(&in_handler));
    reset();
    EXPECT(MPI_ERR_ARG, "partition 92", MPI_Pready(92, r));  // its own sentence, not the handler's
    CHECK(first.calls == 1 && second.calls == 1);
    CHECK(getenv("MPIX_TESTS_CLASS_ONLY") || strstr(second.sentence, "partition 91"));
    OK(MPI_Pready(0, r));
    OK(MPI_Pready(0, other));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r));
    OK(MPI_Request_free(&other));
    OK(MPI_Request_free(&in_handler));
    OK(MPI_Comm_free(&comm));
}

// A request that is too large for this process is an error, and the process goes on.
static void no_memory(void) {
    struct rlimit before, less;
    MPI_Request r = MPI_REQUEST_NULL;
    unsigned long pages = 0;
    FILE *const statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%lu", &pages) == 1);
    fclose(statm);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    less = before;
    less.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)4 << 30);
    CHECK(setrlimit(RLIMIT_AS, &less) == 0);
    const int code =
        MPI_Psend_init(NULL, 2147483647, 0, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    expect_error(__FILE__, __LINE__, "MPI_Psend_init()", code, MPI_ERR_NO_MEM, "2147483647");
}

// Each starts with MPI_COMM_WORLD's errors returned.
static void run(void (*body)(void)) {
    body();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}
static void run_of_a_duplicate(void) { run(of_a_duplicate); }
static void run_of_world(void) { run(of_world); }
static void run_of_self(void) { run(of_self); }
static void run_freed_communicator(void) { run(freed_communicator); }
static void run_handler_that_calls(void) { run(handler_that_calls); }

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 12: every call's error goes to the communicator's handler, once", 1, run_of_a_duplicate},
        {"rule 12: the handler of MPI_COMM_WORLD", 1, run_of_world},
        {"rule 12: the handler of MPI_COMM_SELF", 1, run_of_self},
        {"rule 12: a handler that was inherited", 1, inherited},
        {"rule 12: a handler that was set after the init call", 1, set_later},
        {"rule 12: the handler of a communicator that was freed under its request", 1, run_freed_communicator},
        {"rule 12: a handler that calls MPI", 1, run_handler_that_calls},
        {"rule 12: no memory for a request", 1, no_memory},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
