// SPDX-License-Identifier: BSD-3-Clause
//
// What ordinary traffic costs in a program without partitioned requests. It is linked without mpix: two ranks of it run
// alone, with the argument "multiple" (what MPI_THREAD_MULTIPLE costs by itself), and with mpix preloaded (mpirun -n 2
// env LD_PRELOAD=libmpix.so ordinary), in turn and several times. With the argument "quick" it makes few calls, of which the
// times say little. CSV: what, least us, median us; of MPI_Init, what it took.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { many = 128, most_rounds = 41 };

static int rank, peer, quick;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void send_receive(void) {
    char byte[8] = "";
    if (rank == 0) MPI_Send(byte, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(byte, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(byte, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void start_and_wait(void) {
    char out[8] = "", in[8];
    MPI_Request r[2];
    MPI_Irecv(in, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
}

static void wait_for_many(void) {
    static char out[8], in[many][8];
    MPI_Request r[2 * many];
    for (int i = 0; i < many; ++i) MPI_Irecv(in[i], 8, MPI_BYTE, peer, i, MPI_COMM_WORLD, &r[i]);
    for (int i = 0; i < many; ++i) MPI_Isend(out, 8, MPI_BYTE, peer, i, MPI_COMM_WORLD, &r[many + i]);
    MPI_Waitall(2 * many, r, MPI_STATUSES_IGNORE);
}

static void wait_for_done(void) {
    char in[8];
    MPI_Request r[many];
    for (int i = 0; i < many; ++i) MPI_Irecv(in, 8, MPI_BYTE, MPI_PROC_NULL, i, MPI_COMM_WORLD, &r[i]);
    MPI_Waitall(many, r, MPI_STATUSES_IGNORE);
}

static void test_nothing(void) {
    MPI_Request r = MPI_REQUEST_NULL;
    int flag;
    MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
}

static void measure(const char *name, void (*body)(void), int calls) {
    double us[most_rounds];
    const int rounds = quick ? 3 : most_rounds;
    if (quick) calls /= 40;
    for (int k = 0; k < rounds; ++k) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < calls; ++i) body();
        us[k] = 1e6 * (MPI_Wtime() - start) / calls;
    }
    qsort(us, (size_t)rounds, sizeof *us, ascending);
    if (rank == 0) printf("%s,%.4f,%.4f\n", name, us[0], us[rounds / 2]);
}

static double now_us(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    int provided;
    int multiple = 0;
    for (int i = 1; i < argc; ++i) {
        multiple |= strcmp(argv[i], "multiple") == 0;
        quick |= strcmp(argv[i], "quick") == 0;
    }
    const double start = now_us();
    if (multiple)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    const double init_us = now_us() - start;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    if (rank == 0) printf("init,%.4f,%.4f\n", init_us, init_us);
    measure("send_recv", send_receive, 2000);
    measure("isend_irecv_wait", start_and_wait, 2000);
    measure("waitall_256", wait_for_many, 40);
    measure("waitall_128_done", wait_for_done, 400);
    measure("test_null", test_nothing, 20000);
    MPI_Finalize();
    return 0;
}
