// SPDX-License-Identifier: BSD-3-Clause
//
// Many requests, and many peers: all bytes arrive, and what a request needs of the system does not grow with their
// number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/harness.h"
#include "tests/conformance/usage.h"

enum { message = 24, epochs = 2 };  // bytes of a message: 1, 2, 3 or 4 partitions

// The requests of one rank, each with its own part of two arrays of messages.
struct crowd {
    int n, *sends;  // whether it is a send
    MPI_Request *requests;
    uint64_t *keys;  // of the data, the same on both sides
    unsigned char *data;
};

static void *must_have(void *memory) {
    CHECK(memory != NULL);
    return memory;
}

static void make_crowd(struct crowd *c, int n) {
    c->n = n;
    c->sends = must_have(malloc((size_t)n * sizeof *c->sends));
    c->requests = must_have(malloc((size_t)n * sizeof *c->requests));
    c->keys = must_have(malloc((size_t)n * sizeof *c->keys));
    c->data = must_have(malloc((size_t)n * message));
}

static void free_crowd(struct crowd *c) {
    for (int i = 0; i < c->n; ++i) OK(MPI_Request_free(&c->requests[i]));
    free(c->sends);
    free(c->requests);
    free(c->keys);
    free(c->data);
}

// Partition counts that differ on the two sides, and need not divide each other.
static int partitions_of(uint64_t key, int send) { return 1 + (int)((send ? key : key >> 8) % 4); }

static void init(struct crowd *c, int i, int send, int peer, int tag, uint64_t key) {
    const int partitions = partitions_of(key, send);
    void *const at = c->data + (size_t)i * message;
    c->sends[i] = send;
    c->keys[i] = key;
    if (send)
        OK(MPI_Psend_init(at, partitions, message / partitions, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &c->requests[i]));
    else
        OK(MPI_Precv_init(at, partitions, message / partitions, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &c->requests[i]));
}

static void run_epochs(struct crowd *c) {
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        for (int i = 0; i < c->n; ++i)
            random_bytes(c->data + (size_t)i * message, message,
                         mix_key(c->keys[i], c->sends[i] ? epoch : epoch + 1000));  // data, or poison
        OK(MPI_Startall(c->n, c->requests));
        for (int i = 0; i < c->n; ++i)
            if (c->sends[i]) OK(MPI_Pready_range(0, partitions_of(c->keys[i], 1) - 1, c->requests[i]));
        OK(MPI_Waitall(c->n, c->requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < c->n; ++i) {
            unsigned char wanted[message];
            random_bytes(wanted, message, mix_key(c->keys[i], epoch));
            CHECK(memcmp(c->data + (size_t)i * message, wanted, message) == 0);
        }
    }
}

static void tell(const char *what, int n, const struct usage *before, const struct usage *after) {
    if (world_rank == 0)
        printf("%d %s: descriptors %ld -> %ld, mappings %ld -> %ld\n", n, what, before->descriptors, after->descriptors,
               before->mappings, after->mappings);
}

// 0 sends all of them to 1: some are of one tag, and matched by their order.
static void ten_thousand_requests(void) {
    enum { n = 10000, tags = 100 };
    const struct usage before = look_at_usage();
    struct crowd c;
    make_crowd(&c, world_rank < 2 ? n : 0);
    for (int i = 0; i < c.n; ++i) init(&c, i, world_rank == 0, 1 - world_rank, i % tags, mix_key(seed, (uint64_t)i));
    run_epochs(&c);
    const struct usage after = look_at_usage();
    tell("requests", n, &before, &after);
    CHECK(after.descriptors - before.descriptors <= 10);
    CHECK(after.mappings - before.mappings <= 20);  // one's own, and the peer's
    free_crowd(&c);
    // And freed unstarted.
    make_crowd(&c, world_rank < 2 ? n : 0);
    for (int i = 0; i < c.n; ++i) init(&c, i, world_rank == 0, 1 - world_rank, i % tags, mix_key(seed, (uint64_t)i));
    free_crowd(&c);
}

// Every rank with its 26 neighbours in a periodic grid.
static void grid(void) {
    const struct usage before = look_at_usage();
    MPI_Comm cartesian;
    int dims[3] = {0, 0, 0}, at[3], periods[3] = {1, 1, 1};
    OK(MPI_Dims_create(world_size, 3, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cartesian));
    OK(MPI_Cart_coords(cartesian, world_rank, 3, at));
    struct crowd c;
    make_crowd(&c, 2 * 26);
    for (int d = 0, i = 0; d < 27; ++d) {
        const int there[3] = {at[0] + d / 9 - 1, at[1] + d / 3 % 3 - 1, at[2] + d % 3 - 1};
        const int here[3] = {2 * at[0] - there[0], 2 * at[1] - there[1], 2 * at[2] - there[2]};
        int to, from;
        if (d == 13) continue;  // oneself
        OK(MPI_Cart_rank(cartesian, there, &to));
        OK(MPI_Cart_rank(cartesian, here, &from));
        init(&c, i++, 1, to, d, mix_key(seed, (uint64_t)(world_rank * 27 + d)));
        init(&c, i++, 0, from, d, mix_key(seed, (uint64_t)(from * 27 + d)));
    }
    run_epochs(&c);
    const struct usage after = look_at_usage();
    tell("ranks", world_size, &before, &after);
    CHECK(after.descriptors - before.descriptors <= 10);    // none for a peer
    CHECK(after.mappings - before.mappings <= 2 * 26 + 2);  // its peers' memory, and its own
    free_crowd(&c);
    OK(MPI_Comm_free(&cartesian));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"10000 requests between two ranks", 2, ten_thousand_requests},
        {"26 neighbours of every rank", 2, grid},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
