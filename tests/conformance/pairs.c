// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/pairs.h"

#include <stdlib.h>

int world_rank_of(MPI_Comm comm, int rank) {
    int inter = 0, world = MPI_UNDEFINED;
    MPI_Group group, all;
    OK(MPI_Comm_test_inter(comm, &inter));
    if (inter)
        OK(MPI_Comm_remote_group(comm, &group));
    else
        OK(MPI_Comm_group(comm, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_translate_ranks(group, 1, &rank, all, &world));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    return world;
}

void make_send(struct pair *p, int to, int tag, MPI_Comm comm) {
    OK(MPI_Psend_init(p->out, pair_sends, pair_bytes / pair_sends, MPI_BYTE, to, tag, comm, MPI_INFO_NULL,
                      &p->request[0]));
}

void make_receive(struct pair *p, int from, int tag, MPI_Comm comm) {
    OK(MPI_Precv_init(p->in, pair_receives, pair_bytes / pair_receives, MPI_BYTE, from, tag, comm, MPI_INFO_NULL,
                      &p->request[1]));
    p->from = world_rank_of(comm, from);
}

void leave_out(struct pair *p) { p->request[0] = p->request[1] = MPI_REQUEST_NULL; }

static int left_out(const struct pair *p) { return p->request[0] == MPI_REQUEST_NULL; }

void free_pair(struct pair *p) {
    if (left_out(p)) return;
    OK(MPI_Request_free(&p->request[0]));
    OK(MPI_Request_free(&p->request[1]));
    CHECK(p->request[0] == MPI_REQUEST_NULL && p->request[1] == MPI_REQUEST_NULL);
}

void fill_pair(struct pair *p, uint64_t key) {
    random_bytes(p->out, pair_bytes, key);
    random_bytes(p->in, pair_bytes, ~key);
}

void check_pair(const struct pair *p, uint64_t key) {
    unsigned char wanted[pair_bytes];
    random_bytes(wanted, pair_bytes, key);
    for (int i = 0; i < pair_bytes; ++i) CHECK(p->in[i] == wanted[i]);
}

uint64_t pair_key(int epoch, int rank, int which) {
    return mix_key(mix_key((uint64_t)epoch, (uint64_t)rank), (uint64_t)which);
}

// The pairs that are not left out, in random order.
static int chosen(const struct pair *pairs, int n, int *order) {
    int some = 0;
    shuffle(order, n);
    for (int i = 0; i < n; ++i)
        if (!left_out(&pairs[order[i]])) order[some++] = order[i];
    return some;
}

void run_pairs(struct pair *pairs, int n, int epoch) {
    int *const order = malloc((size_t)(n + 1) * sizeof *order), some;
    for (int i = 0; i < n; ++i) fill_pair(&pairs[i], pair_key(epoch, world_rank, i));
    for (int side = 0; side < 2; ++side) {
        some = chosen(pairs, n, order);
        for (int i = 0; i < some; ++i) OK(MPI_Start(&pairs[order[i]].request[(epoch + side) % 2]));
    }
    some = chosen(pairs, n, order);
    for (int i = 0; i < some; ++i) ready_all(pairs[order[i]].request[0], pair_sends, shuffled);
    some = chosen(pairs, n, order);
    for (int i = 0; i < some; ++i) OK(MPI_Waitall(2, pairs[order[i]].request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < some; ++i) check_pair(&pairs[order[i]], pair_key(epoch, pairs[order[i]].from, order[i]));
    free(order);
}
