// SPDX-License-Identifier: BSD-3-Clause
//
// The system refuses to create threads (RLIMIT_NPROC, or a limit of a container): MPI calls make all progress, and a
// line on stderr says so.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/harness.h"

enum { tag = 5, parts = 6 };

static atomic_int limited, refused;

// In front of the system's.
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    if (atomic_load(&limited)) {
        atomic_fetch_add(&refused, 1);
        return EAGAIN;
    }
    int (*systems)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = NULL;
    *(void **)&systems = dlsym(RTLD_NEXT, "pthread_create");
    return systems(thread, attributes, body, argument);
}

// How often `what` is written to stderr between the two.
static int pipe_ends[2], real_stderr;
static void listen_to_stderr(void) {
    CHECK(pipe(pipe_ends) == 0);
    real_stderr = dup(STDERR_FILENO);
    CHECK(dup2(pipe_ends[1], STDERR_FILENO) >= 0);
}
static int heard(const char *what) {
    static char text[65536];
    CHECK(dup2(real_stderr, STDERR_FILENO) >= 0);
    CHECK(fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK) == 0);
    const ssize_t n = read(pipe_ends[0], text, sizeof text - 1);
    text[n < 0 ? 0 : n] = '\0';
    fputs(text, stderr);
    int times = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; ++at) ++times;
    return times;
}

static void no_thread(void) {
    int out[parts], in[parts];
    MPI_Request both[2];
    listen_to_stderr();
    atomic_store(&limited, 1);
    for (int pair = 0; pair < 3; ++pair) {
        OK(MPI_Psend_init(out, parts, 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
        OK(MPI_Precv_init(in, 3, 2, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
        for (int epoch = 0; epoch < 3; ++epoch) {
            for (int i = 0; i < parts; ++i) out[i] = 100 * epoch + 10 * world_rank + i, in[i] = -1;
            OK(MPI_Startall(2, both));
            OK(MPI_Pready_range(0, parts - 1, both[0]));
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            for (int i = 0; i < parts; ++i) CHECK(in[i] == 100 * epoch + 10 * left_rank + i);
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
    const int told = heard("no thread for progress");
    CHECK(atomic_load(&refused) > 0);
    CHECK(told == 1);
    atomic_store(&limited, 0);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"without a thread progress is made in MPI calls", 2, no_thread}};
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
