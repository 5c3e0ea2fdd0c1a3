// SPDX-License-Identifier: BSD-3-Clause
//
// All constructors of communicators, as a table that tests run over.
#ifndef MPIX_TESTS_CONFORMANCE_CONSTRUCTORS_H
#define MPIX_TESTS_CONFORMANCE_CONSTRUCTORS_H

#include "tests/conformance/harness.h"

struct constructor {
    const char *name;
    int ranks;  // at least, of the parent
    // Collective over `parent`, an intracommunicator of all processes. Leaves nothing behind but what it gives, which
    // is MPI_COMM_NULL where this process is not in it. Any number of threads may be at it, on parents of their own,
    // ...
    MPI_Comm (*make)(MPI_Comm parent);
    int process_wide;  // ... but not if there is nothing that tells their calls apart
};

extern const struct constructor constructors[];
extern const int n_constructors;

// With whom a process exchanges messages on `comm`, by rank: its neighbours in a ring; over an intercommunicator the
// one that has its rank on the other side. 0: with nobody.
int partners(MPI_Comm comm, int *to, int *from);

#endif  // MPIX_TESTS_CONFORMANCE_CONSTRUCTORS_H
