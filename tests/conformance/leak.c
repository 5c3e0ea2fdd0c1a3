// SPDX-License-Identifier: BSD-3-Clause
//
// Requests that come and go leave nothing behind: descriptors, mappings, memory. A ring.
#include <stdio.h>
#include <string.h>

#include "tests/conformance/harness.h"
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

// What a peer's last messages still hold comes back when they have been answered.
static struct usage settled(const struct usage *wanted) {
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
        int done =
            wanted == NULL ? round >= 20 : u.descriptors <= wanted->descriptors && u.mappings <= wanted->mappings;
        OK(MPI_Allreduce(MPI_IN_PLACE, &done, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
        if (done) break;
    }
    return u;
}

static void some_lives(int bytes, int n, int epochs) {
    for (int i = 1; i <= n; ++i) {
        one_life(bytes, epochs);
        // Nothing else keeps a fast rank from burying a slow one under messages.
        if (i % 10 == 0) OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void lives(int bytes, int n, int epochs) {
    memset(data, 1, sizeof data);
    some_lives(bytes, n < 100 ? 10 : 200, epochs);  // pools, ours and the library's, grow to their size
    const struct usage before = settled(NULL);
    some_lives(bytes, n, epochs);
    const struct usage after = settled(&before);
    if (world_rank == 0)
        printf("%d requests of %d bytes: descriptors %ld -> %ld, mappings %ld -> %ld, resident %ld -> %ld KiB\n", n,
               bytes, before.descriptors, after.descriptors, before.mappings, after.mappings, before.kibibytes,
               after.kibibytes);
    CHECK(after.descriptors <= before.descriptors);
    CHECK(after.mappings <= before.mappings);
    CHECK(after.kibibytes - before.kibibytes < 600);  // a control message kept per life would be more
}

static void small(void) { lives(4096, 2000, 2); }
static void large(void) { lives(3 << 20, 40, 1); }
// Two of these fill a chunk to the page, and the next to a little more.
static void odd_sizes(void) {
    lives((4 << 20) - 4096, 20, 1);
    lives((4 << 20) - 128, 20, 1);
}
static void never_started(void) { lives(4096, 1000, 0); }

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"2000 small requests", 1, small},
        {"large requests", 1, large},
        {"requests whose memory is as large as a pool", 1, odd_sizes},
        {"requests that are never started", 1, never_started},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
