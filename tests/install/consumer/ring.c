/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every rank sends four partitions to its right and checks what comes from its left, three times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpix/mpix.h>
#include <stdio.h>
#include <string.h>

enum { PARTITIONS = 4, COUNT = 1000 };

/* mpix must come before the MPI library, or nothing is interposed. */
static int mpix_comes_first(void) {
    Dl_info info;
    void *found = dlsym(RTLD_DEFAULT, "MPI_Waitall");
    return found && dladdr(found, &info) && strstr(info.dli_fname, "libmpix");
}

int main(int argc, char **argv) {
    static int out[PARTITIONS * COUNT], in[PARTITIONS * COUNT];
    int rank, size, wrong = 0;
    MPI_Request request[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!mpix_comes_first()) {
        fprintf(stderr, "MPI_Waitall is not mpix's: libmpix does not come before the MPI library\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Psend_init(out, PARTITIONS, COUNT, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
    MPI_Precv_init(in, PARTITIONS, COUNT, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
    for (int epoch = 0; epoch < 3; ++epoch) {
        MPI_Startall(2, request);
        for (int p = 0; p < PARTITIONS; ++p) {
            for (int i = 0; i < COUNT; ++i) out[p * COUNT + i] = (rank * 10 + epoch) * 10 + p;
            MPI_Pready(p, request[0]);
        }
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        for (int p = 0; p < PARTITIONS; ++p)
            for (int i = 0; i < COUNT; ++i) wrong += in[p * COUNT + i] != (left * 10 + epoch) * 10 + p;
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    MPI_Finalize();
    if (wrong) fprintf(stderr, "rank %d: %d wrong values\n", rank, wrong);
    return wrong ? 1 : 0;
}
