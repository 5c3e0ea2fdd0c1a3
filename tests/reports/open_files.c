// SPDX-License-Identifier: BSD-3-Clause
//
// Many large messages under a low limit on open files: a receive needs no descriptor of its own.
#define _GNU_SOURCE
#include "tests/conformance/harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { messages = 60, few = 24, bytes = 600000, partitions = 8, part = bytes / partitions };

// The limit on open files becomes the lowest number that is free, and a few.
static void limit_files(void) {
    const int lowest = open("/dev/null", O_RDONLY);
    CHECK(lowest >= 0);
    close(lowest);
    const struct rlimit limit = {(rlim_t)lowest + few, (rlim_t)lowest + few};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void many_messages(void) {
    static MPI_Request r[2 * messages];
    static char *sent[messages], *received[messages];
    char *const wanted = malloc(bytes);
    limit_files();
    for (int m = 0; m < messages; ++m) {
        sent[m] = malloc(bytes);
        received[m] = malloc(bytes);
        CHECK(sent[m] != NULL && received[m] != NULL);
        OK(MPI_Psend_init(sent[m], partitions, part, MPI_CHAR, right_rank, m, MPI_COMM_WORLD, MPI_INFO_NULL, &r[m]));
        OK(MPI_Precv_init(received[m], partitions, part, MPI_CHAR, left_rank, m, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &r[messages + m]));
    }
    for (int epoch = 0; epoch < 2; ++epoch) {
        const uint64_t key = shared_random();
        for (int m = 0; m < messages; ++m) {
            random_bytes(sent[m], bytes, mix_key(key, (uint64_t)m));
            memset(received[m], 0x5a, bytes);
        }
        OK(MPI_Startall(2 * messages, r));
        for (int m = 0; m < messages; ++m) OK(MPI_Pready_range(0, partitions - 1, r[m]));
        OK(MPI_Waitall(2 * messages, r, MPI_STATUSES_IGNORE));
        for (int m = 0; m < messages; ++m) {
            random_bytes(wanted, bytes, mix_key(key, (uint64_t)m));
            CHECK(memcmp(received[m], wanted, bytes) == 0);
        }
    }
    for (int m = 0; m < 2 * messages; ++m) OK(MPI_Request_free(&r[m]));
    for (int m = 0; m < messages; ++m) {
        free(sent[m]);
        free(received[m]);
    }
    free(wanted);
}

int main(int argc, char **argv) {
    const struct test_case cases[] = {{"many large messages, few files", 1, many_messages}};
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
