// SPDX-License-Identifier: BSD-3-Clause
//
// Requests and communicators that come and go leave nothing behind: descriptors, mappings, memory. A ring.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/conformance/constructors.h"
#include "tests/conformance/pairs.h"
#include "tests/conformance/usage.h"

enum { tag = 8 };

static unsigned char data[8 << 20];

static void one_life(int bytes, int epochs) {
    MPI_Request both[2];
    OK(MPI_Psend_init(data, 4, bytes / 4, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(data + bytes, 2, bytes / 2, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (int epoch = 0; epoch < epochs; ++epoch) {
        OK(MPI_Startall(2, both));
        OK(MPI_Pready_range(0, 3, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    }
    const int first = own_below(2);
    OK(MPI_Request_free(&both[first]));
    OK(MPI_Request_free(&both[1 - first]));
}

// What may stay: nothing, but the MPI library's own pools may grow by `allocated` bytes.
static int within(const struct usage *u, const struct usage *before, long allocated) {
    return u->descriptors <= before->descriptors && u->mappings <= before->mappings &&
           u->allocated - before->allocated < allocated;
}

// What a peer's last messages still hold comes back when they have been answered.
static struct usage settled(const struct usage *before, long allocated) {
    struct usage u = look_at_usage();
    for (int round = 0; round < 2000; ++round) {
        MPI_Request request;
        char path[16];
        OK(MPI_Barrier(MPI_COMM_WORLD));
        // A call of ours that makes progress.
        OK(MPI_Psend_init(NULL, 1, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPIX_Request_path(request, path, sizeof path));
        OK(MPI_Request_free(&request));
        u = look_at_usage();
        int done = before == NULL ? round >= 20 : within(&u, before, allocated);
        OK(MPI_Allreduce(MPI_IN_PLACE, &done, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
        if (done) break;
    }
    return u;
}

// What n rounds of something leave behind, beyond what others have left before. The MPI library's own pools may grow by
// `slack` bytes.
static void lives(const char *what, int n, int warm_up, long slack, void (*round)(void)) {
    struct usage before = {0, 0, 0, 0}, after;
    const long allocated = 20L * n + slack;   // anything kept per round would be more
    one_life(4096, 1);                        // maps the peers' pools, which a round may or may not do
    for (int i = 1 - warm_up; i <= n; ++i) {  // pools, ours and the library's, grow to their size
        round();
        // Nothing else keeps a fast rank from burying a slow one under messages.
        if (i % 10 == 0) OK(MPI_Barrier(MPI_COMM_WORLD));
        if (i == 0) before = settled(NULL, 0);
    }
    after = settled(&before, allocated);
    if (world_rank == 0)
        printf(
            "%d rounds of %s: descriptors %ld -> %ld, mappings %ld -> %ld, resident %ld -> %ld KiB, allocated %ld -> "
            "%ld\n",
            n, what, before.descriptors, after.descriptors, before.mappings, after.mappings, before.kibibytes,
            after.kibibytes, before.allocated, after.allocated);
    CHECK(after.descriptors <= before.descriptors);
    CHECK(after.mappings <= before.mappings);
    CHECK(after.kibibytes - before.kibibytes < 600);  // a control message kept per life would be more
    CHECK(after.allocated - before.allocated < allocated);
}

static int message_bytes, message_epochs;
static void message(void) { one_life(message_bytes, message_epochs); }

static void messages(const char *what, int bytes, int n, int epochs) {
    memset(data, 1, sizeof data);
    message_bytes = bytes;
    message_epochs = epochs;
    lives(what, n, n < 100 ? 10 : 200, 100000, message);
}

static void small(void) { messages("4 KiB", 4096, 2000, 2); }
static void large(void) { messages("3 MiB", 3 << 20, 40, 1); }
// Two of these fill a chunk to the page, and the next to a little more.
static void odd_sizes(void) {
    messages("4 MiB less 4096", (4 << 20) - 4096, 20, 1);
    messages("4 MiB less 128", (4 << 20) - 128, 20, 1);
}
static void unstarted(void) { messages("unstarted requests", 4096, 1000, 0); }

// Pairs whose sizes differ.
static void refused(void) {
    MPI_Request both[2];
    OK(MPI_Psend_init(data, 4, 100, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(data + 4096, 2, 300, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    OK(MPI_Startall(2, both));
    OK(MPI_Pready_range(0, 3, both[0]));
    CHECK(MPI_Wait(&both[1], MPI_STATUS_IGNORE) != MPI_SUCCESS);
    OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
    const int first = own_below(2);
    OK(MPI_Request_free(&both[first]));
    OK(MPI_Request_free(&both[1 - first]));
}
static void refused_pairs(void) { lives("refused pairs", 1000, 200, 20000, refused); }

// One communicator at a time, freed before its requests or after them.
static const struct constructor *made_by;
static void communicator(void) {
    static struct pair p;
    int to, from;
    MPI_Comm comm = made_by->make(MPI_COMM_WORLD);
    leave_out(&p);
    if (partners(comm, &to, &from)) {
        make_send(&p, to, tag, comm);
        make_receive(&p, from, tag, comm);
    }
    const int first = shared_below(2), epochs = shared_below(3);
    if (first && comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
    for (int epoch = 1; epoch <= epochs; ++epoch) run_pairs(&p, 1, epoch);
    free_pair(&p);
    if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
}
static void communicators(void) {
    for (int i = 0; i < n_constructors; ++i) {
        if (constructors[i].ranks > world_size) continue;
        made_by = &constructors[i];
        subject = made_by->name;
        lives(made_by->name, 30, 10, 50000, communicator);
    }
}

// A parent and what a group within it makes, whose making the parent's name remembers.
static void family(void) {
    MPI_Comm parent, child;
    MPI_Group all;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_group(parent, &all));
    OK(MPI_Comm_create_group(parent, all, 3, &child));
    OK(MPI_Group_free(&all));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free(&child));
}
static void families(void) { lives("parent and child communicators", 1000, 100, 20000, family); }

// Threads that come and go, each with requests of its own.
static void *some_requests(void *argument) {
    const int t = (int)(uintptr_t)argument;
    for (int i = 0; i < 4; ++i) {
        static unsigned char buffers[4][2][512];
        MPI_Request both[2];
        OK(MPI_Psend_init(buffers[t][0], 4, 128, MPI_BYTE, right_rank, t, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
        OK(MPI_Precv_init(buffers[t][1], 2, 256, MPI_BYTE, left_rank, t, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
        if (i % 2) {
            OK(MPI_Startall(2, both));
            OK(MPI_Pready_range(0, 3, both[0]));
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        }
        OK(MPI_Request_free(&both[i / 2]));
        OK(MPI_Request_free(&both[1 - i / 2]));
    }
    return NULL;
}
static void some_threads(void) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, some_requests, (void *)i) == 0);
    for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}
static void threads(void) { lives("threads", 100, 40, 120000, some_threads); }

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"2000 small requests", 1, small},
        {"large requests", 1, large},
        {"requests whose memory is as large as a pool", 1, odd_sizes},
        {"requests that are never started", 1, unstarted},
        {"refused pairs", 1, refused_pairs},
        {"communicators from every constructor", 1, communicators},
        {"parents and children", 1, families},
        {"threads that come and go", 1, threads},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_MULTIPLE, cases);
}
