// SPDX-License-Identifier: BSD-3-Clause
//
// Misspelt environment variables and info keys: one warning for each, which suggests the right name; the calls succeed.
// The test sets such variables and checks the output.
#include "tests/conformance/harness.h"

static void misspelt_keys(void) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpix_waiter", "1"));
    OK(MPI_Info_set(info, "mpix_contributors", "1"));
    OK(MPI_Info_set(info, "somebody_elses", "1"));
    char sent = 0, received = 0;
    for (int n = 0; n < 2; ++n) {
        MPI_Request r[2];
        MPIX_Prequest exported;
        OK(MPI_Psend_init(&sent, 1, 1, MPI_CHAR, right_rank, 0, MPI_COMM_WORLD, info, &r[0]));
        OK(MPI_Precv_init(&received, 1, 1, MPI_CHAR, left_rank, 0, MPI_COMM_WORLD, info, &r[1]));
        OK(MPIX_Prequest_create(r[0], info, &exported));
        OK(MPI_Startall(2, r));
        OK(MPI_Pready(0, r[0]));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        OK(MPIX_Prequest_free(&exported));
        OK(MPI_Request_free(&r[0]));
        OK(MPI_Request_free(&r[1]));
    }
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    const struct test_case cases[] = {{"info keys that mpix does not know", 1, misspelt_keys}};
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
