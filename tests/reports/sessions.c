// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions: beside MPI_Init a communicator made from one is served; without it, the first partitioned call says what is
// missing, and the library's own messages work as ever. (Where the library itself begins as by MPI_Init with a session,
// as Intel MPI does, the call is refused; otherwise it ends the program.)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/pairs.h"

enum { tag = 6, epochs = 5 };

static MPI_Comm of_session(MPI_Session session) {
    MPI_Group all;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Comm_create_from_group(all, "mpix.tests.sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&all));
    return comm;
}

static void beside_init(void) {
    MPI_Session session;
    struct pair pairs[3];
    int rank, size;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Comm comm = of_session(session);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 3; ++i) {
        make_send(&pairs[i], (rank + 1) % size, tag + i, comm);
        make_receive(&pairs[i], (rank + size - 1) % size, tag + i, comm);
    }
    for (int epoch = 0; epoch < epochs; ++epoch) run_pairs(pairs, 3, epoch);
    for (int i = 0; i < 3; ++i) free_pair(&pairs[i]);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
}

static int alone(void) {
    MPI_Session session;
    MPI_Request request = MPI_REQUEST_NULL;
    int rank, size, got = -1;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 1;
    MPI_Comm comm = of_session(session);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int mine = 100 + rank, from = (rank + size - 1) % size;
    OK(MPI_Isend(&mine, 1, MPI_INT, (rank + 1) % size, tag, comm, &request));
    OK(MPI_Recv(&got, 1, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    printf("rank %d: %s\n", rank, got == 100 + from ? "got its message" : "FAILED");
    fflush(stdout);
    OK(MPI_Barrier(comm));  // the launcher ends the others with the first
    const int code = MPI_Psend_init(&got, 1, 1, MPI_INT, rank, tag, comm, MPI_INFO_NULL, &request);
    if (code == MPI_SUCCESS) {
        printf("rank %d went on\n", rank);
        return 0;
    }
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, reason, &length);
    printf("rank %d is refused: %s\n", rank, reason);
    return 1;
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"beside MPI_Init", 1, beside_init}};
    if (argc > 1 && strcmp(argv[1], "alone") == 0) return alone();
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
