/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check_layout <case>: a receive whose partitions overlap, leave the buffer's memory, or do neither, with
 * MPIX_CHECK=1; and sends and receives whose datatype has bytes twice, or bytes of two arrays. */
#define _GNU_SOURCE
#include <mpi.h>
#include <mpix/mpix.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A square matrix of doubles, the last bytes of which are the last before memory that is not mapped. */
enum { rows = 512 };
static double *matrix(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof(double) * rows * rows;
    char *const memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + bytes, page, PROT_NONE) != 0) return NULL;
    return (double *)memory;
}

/* Two blocks of which the second begins within the first. Partitions do not overlap, if they are so far apart. */
static MPI_Datatype twice_within(int apart) {
    const int lengths[] = {3, 3}, places[] = {0, 2};
    MPI_Datatype blocks, type;
    MPI_Type_indexed(2, lengths, places, MPI_DOUBLE, &blocks);
    MPI_Type_create_resized(blocks, 0, apart * (MPI_Aint)sizeof(double), &type);
    MPI_Type_free(&blocks);
    MPI_Type_commit(&type);
    return type;
}

static void make(int send, void *buffer, int partitions, MPI_Datatype type) {
    MPI_Request request;
    /* What leaves the buffer's memory is an error, too, where the memory behind it cannot be written. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const int code = send ? MPI_Psend_init(buffer, partitions, 1, type, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request)
                          : MPI_Precv_init(buffer, partitions, 1, type, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    if (code == MPI_SUCCESS) MPI_Request_free(&request);
}

static int twice(const char *which) {
    double buffer[16] = {0};
    const int send = strncmp(which, "send", 4) == 0, overlap = strstr(which, "overlap") != NULL;
    MPI_Datatype type = twice_within(overlap ? 4 : 5);
    make(send, buffer, strstr(which, "one") != NULL ? 1 : 3, type);
    MPI_Type_free(&type);
    MPI_Finalize();
    puts("passed");
    return 0;
}

/* Two doubles, with memory between them that is not there: as of two arrays in one message. */
static int apart(const char *which) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *const memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0) return 3;
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, 2 * (MPI_Aint)page};
    MPI_Datatype type;
    MPI_Type_create_hindexed(2, lengths, places, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    make(strncmp(which, "send", 4) == 0, memory, 1, type);
    MPI_Type_free(&type);
    MPI_Finalize();
    puts("passed");
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    if (strstr(argv[1], "twice") != NULL) return twice(argv[1]);
    if (strstr(argv[1], "apart") != NULL) return apart(argv[1]);
    MPI_Datatype column, type;
    MPI_Type_vector(rows, 1, rows, MPI_DOUBLE, &column);
    if (strcmp(argv[1], "column") == 0) /* the commonest mistake: the next partition begins behind the column's end */
        MPI_Type_dup(column, &type);
    else if (strcmp(argv[1], "overlap") == 0)
        MPI_Type_create_resized(column, 0, 4, &type);
    else
        MPI_Type_create_resized(column, 0, sizeof(double), &type);
    MPI_Type_commit(&type);
    double *const a = matrix();
    if (a == NULL) return 3;
    make(0, a, 8, type);
    MPI_Type_free(&column);
    MPI_Type_free(&type);
    MPI_Finalize();
    puts("passed");
    return 0;
}
