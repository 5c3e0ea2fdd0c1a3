// SPDX-License-Identifier: BSD-3-Clause
//
// The library's progress thread handles none of the process's signals, and user functions that the MPI library calls in
// it have as much stack as in the main thread.
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/conformance/harness.h"

enum { tag = 5, parts = 4, length = 1000 };

static int out[parts], in[parts];
static MPI_Request both[2];

static void make_pair(void) {
    OK(MPI_Psend_init(out, parts, 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in, parts, 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
}

static void free_pair(void) {
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
}

// The mask of the thread of that name; 0: there is none.
static unsigned long long blocked_by(const char *name) {
    unsigned long long mask = 0;
    DIR *const tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[200] = "";
        int found = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *const status = fopen(path, "r");
        if (status == NULL) continue;
        while (fgets(line, sizeof line, status) != NULL) {
            found |= strncmp(line, "Name:\t", 6) == 0 && strncmp(line + 6, name, strlen(name)) == 0;
            if (found && strncmp(line, "SigBlk:", 7) == 0) sscanf(line + 7, "%llx", &mask);
        }
        fclose(status);
    }
    closedir(tasks);
    return mask;
}

static unsigned long long bit(int number) { return 1ull << (number - 1); }

// A program that takes a signal by sigtimedwait, and had it blocked while MPI_Init made its threads, as is advised.
static void signals(void) {
    make_pair();
    unsigned long long mask = 0;
    const unsigned long long own = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP);
    UNTIL((mask = blocked_by("mpix-progress")) != 0 && (mask & own) == 0);  // a new thread begins with all blocked
    const int others[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGCONT, SIGPIPE, SIGWINCH};
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; ++i) CHECK((mask & bit(others[i])) != 0);

    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    for (int epoch = 0; epoch < 5; ++epoch) {
        for (int i = 0; i < parts; ++i) out[i] = 100 * epoch + 10 * world_rank + i, in[i] = -1;
        OK(MPI_Startall(2, both));
        CHECK(kill(getpid(), SIGUSR2) == 0);  // to whichever thread takes it
        OK(MPI_Pready_range(0, parts - 1, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < parts; ++i) CHECK(in[i] == 100 * epoch + 10 * left_rank + i);
        const struct timespec long_enough = {20, 0};
        CHECK(sigtimedwait(&taken, NULL, &long_enough) == SIGUSR2);
    }
    pthread_sigmask(SIG_UNBLOCK, &taken, NULL);
    free_pair();
}

static pthread_t main_thread;
static atomic_int calls, elsewhere;

// The operator of a reduction, with an automatic array of 24 MiB.
static void add(void *a, void *b, int *n, MPI_Datatype *type) {
    (void)type;
    enum { large = 3 << 20 };
    volatile double copy[large];
    for (int i = 0; i < *n; ++i) copy[(long)i * (large / length)] = ((double *)a)[i];
    for (int i = 0; i < *n; ++i) ((double *)b)[i] += copy[(long)i * (large / length)];
    atomic_fetch_add(&elsewhere, !pthread_equal(main_thread, pthread_self()));
    atomic_fetch_add(&calls, 1);
}

static void stack(void) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
    main_thread = pthread_self();
    make_pair();
    MPI_Op op;
    OK(MPI_Op_create(add, 1, &op));
    static double x[length], y[length];
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < length; ++i) x[i] = world_rank + round + i, y[i] = -1;
        MPI_Request reducing;
        // Rank 1 takes part only once rank 0 has called MPI_Ireduce, so the operator cannot be called in there.
        if (world_rank == 1) OK(MPI_Recv(NULL, 0, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Ireduce(x, y, length, MPI_DOUBLE, op, 0, MPI_COMM_WORLD, &reducing));
        if (world_rank == 0) {
            OK(MPI_Send(NULL, 0, MPI_INT, 1, tag, MPI_COMM_WORLD));
            UNTIL(atomic_load(&calls) > round) usleep(10);  // this thread computes
        }
        OK(MPI_Wait(&reducing, MPI_STATUS_IGNORE));
        if (world_rank != 0) continue;
        for (int i = 0; i < length; ++i) CHECK(y[i] == world_size * (world_size - 1) / 2 + world_size * (round + i));
    }
    // Rarely it is called in MPI_Send.
    CHECK(world_rank != 0 || atomic_load(&elsewhere) > 0);
    OK(MPI_Op_free(&op));
    free_pair();
}

int main(int argc, char **argv) {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGUSR2);
    sigprocmask(SIG_BLOCK, &taken, NULL);
    static const struct test_case cases[] = {
        {"the process's signals are the program's", 2, signals},
        {"the user's functions have stack enough", 2, stack},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
