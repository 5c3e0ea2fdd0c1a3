// SPDX-License-Identifier: BSD-3-Clause
//
// A send and a receive of one process, with random data of their own each epoch: what tests of matching run by the
// dozen, to see whose bytes came.
#ifndef MPIX_TESTS_CONFORMANCE_PAIRS_H
#define MPIX_TESTS_CONFORMANCE_PAIRS_H

#include "tests/conformance/harness.h"

enum { pair_bytes = 48, pair_sends = 4, pair_receives = 3 };  // and how many partitions each has

struct pair {
    MPI_Request request[2];  // send and receive
    int from;                // world rank of who sends to us
    unsigned char out[pair_bytes], in[pair_bytes];
};

void make_send(struct pair *p, int to, int tag, MPI_Comm comm);
void make_receive(struct pair *p, int from, int tag, MPI_Comm comm);
void free_pair(struct pair *p);
// A pair that this process has no part in: the calls below leave it alone.
void leave_out(struct pair *p);

// World rank of a process that one may send to on `comm`.
int world_rank_of(MPI_Comm comm, int rank);

// Data to send by a key, and the destination poisoned by it / whether what came is of that key.
void fill_pair(struct pair *p, uint64_t key);
void check_pair(const struct pair *p, uint64_t key);
// The key of what a process sends as its pair `which`.
uint64_t pair_key(int epoch, int rank, int which);

// One epoch of n pairs, started, readied and completed in random order; the bytes that come to pair i must be those of
// pair i of the process that sends to it.
void run_pairs(struct pair *pairs, int n, int epoch);

#endif  // MPIX_TESTS_CONFORMANCE_PAIRS_H
