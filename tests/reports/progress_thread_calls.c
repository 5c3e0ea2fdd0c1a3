// SPDX-License-Identifier: BSD-3-Clause
//
// Within a node the MPI library has the thread level that the program asks for, so the progress thread, which sets
// pairs up, calls no function of it, whatever it prints. Run with MPIX_EXPLAIN=1.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/conformance/harness.h"

enum { tag = 6, parts = 4, length = 1000 };

static pthread_t main_thread;
static atomic_int calls, elsewhere;

// In front of the MPI library's, for libmpix too. The library's own calls, from threads of its own, do not come here.
#define COUNTED(name, parameters, arguments)                                 \
    int name parameters {                                                    \
        static int(*_Atomic next) parameters;                                \
        int(*function) parameters = next;                                    \
        if (function == NULL) *(void **)&function = dlsym(RTLD_NEXT, #name); \
        next = function;                                                     \
        atomic_fetch_add(&calls, 1);                                         \
        if (!pthread_equal(main_thread, pthread_self())) {                   \
            atomic_fetch_add(&elsewhere, 1);                                 \
            fprintf(stderr, "the progress thread calls %s\n", #name);        \
        }                                                                    \
        return function arguments;                                           \
    }
COUNTED(PMPI_Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))
COUNTED(PMPI_Comm_get_name, (MPI_Comm comm, char *name, int *bytes), (comm, name, bytes))
COUNTED(PMPI_Type_get_name, (MPI_Datatype type, char *name, int *bytes), (type, name, bytes))
COUNTED(PMPI_Type_size_x, (MPI_Datatype type, MPI_Count *bytes), (type, bytes))
COUNTED(PMPI_Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
COUNTED(PMPI_Isend,
        (const void *from, int count, MPI_Datatype type, int peer, int number, MPI_Comm comm, MPI_Request *request),
        (from, count, type, peer, number, comm, request))
COUNTED(PMPI_Irecv, (void *to, int count, MPI_Datatype type, int peer, int number, MPI_Comm comm, MPI_Request *request),
        (to, count, type, peer, number, comm, request))

static atomic_int explained;  // requests, by whichever thread set up the pair

ssize_t write(int to, const void *from, size_t bytes) {
    if (memmem(from, bytes, "shm       chosen", 16) != NULL) atomic_fetch_add(&explained, 1);
    return syscall(SYS_write, to, from, bytes);
}

static int out[parts * length];
static int in[parts * length];

static void without_calls(void) {
    int level = MPI_THREAD_MULTIPLE;
    OK(PMPI_Query_thread(&level));
    CHECK(level != MPI_THREAD_MULTIPLE);
    MPI_Request both[2];
    OK(MPI_Psend_init(out, parts, length, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in, parts, length, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (int i = 0; i < parts * length; ++i) {
        out[i] = 10000 * world_rank + i;
        in[i] = -1;
    }
    OK(MPI_Startall(2, both));
    OK(MPI_Pready_range(0, parts - 1, both[0]));
    UNTIL(explained >= 2) usleep(100);  // and makes no progress
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    for (int i = 0; i < parts * length; ++i) CHECK(in[i] == 10000 * left_rank + i);
    CHECK(calls > 0);
    CHECK(elsewhere == 0);
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"pairs meet while the main thread makes no progress", 1, without_calls}};
    main_thread = pthread_self();
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
