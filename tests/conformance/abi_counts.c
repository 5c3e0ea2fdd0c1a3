// SPDX-License-Identifier: BSD-3-Clause
//
// The standard ABI of MPI 5: its MPI_Psend_init and MPI_Precv_init take the count as an int, as do programs that were
// compiled with the MPI Forum's header, and MPI_Psend_init_c and MPI_Precv_init_c as an MPI_Count. Those that were compiled with
// the header of MPICH 5.0 or Intel MPI 2021.18 pass an MPI_Count to the former.
#include <limits.h>

#include "tests/errors/expect.h"

typedef int send_of_int(const void *, int, int, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int receive_of_int(void *, int, int, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
int MPI_Psend_init_c(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
int MPI_Precv_init_c(void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);

enum { partitions = 6, count = 50, tag = 8, epochs = 4 };

// What the three kinds of program call.
enum kind { of_int, of_count, with_c, n_kinds };
static send_of_int *send_int;
static receive_of_int *receive_int;

static int make_send_of(enum kind kind, const void *buffer, MPI_Request *request) {
    return kind == of_int
               ? send_int(buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, request)
           : kind == with_c ? MPI_Psend_init_c(buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD,
                                               MPI_INFO_NULL, request)
                            : MPI_Psend_init(buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD,
                                             MPI_INFO_NULL, request);
}

static int make_receive_of(enum kind kind, void *buffer, MPI_Request *request) {
    return kind == of_int
               ? receive_int(buffer, partitions, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, request)
           : kind == with_c ? MPI_Precv_init_c(buffer, partitions, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD,
                                               MPI_INFO_NULL, request)
                            : MPI_Precv_init(buffer, partitions, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD,
                                             MPI_INFO_NULL, request);
}

static void each_kind(void) {
    static int out[partitions * count], in[partitions * count], wanted[partitions * count];
    for (int kinds = 0; kinds < n_kinds * n_kinds; ++kinds) {
        MPI_Request both[2];
        OK(make_send_of(kinds % n_kinds, out, &both[0]));
        OK(make_receive_of(kinds / n_kinds, in, &both[1]));
        for (int epoch = 0; epoch < epochs; ++epoch) {
            const uint64_t key = mix_key((uint64_t)kinds, (uint64_t)epoch);
            random_bytes(out, sizeof out, mix_key(key, (uint64_t)world_rank));
            random_bytes(wanted, sizeof wanted, mix_key(key, (uint64_t)left_rank));
            for (int i = 0; i < partitions * count; ++i) in[i] = ~wanted[i];
            OK(MPI_Startall(2, both));
            ready_all(both[0], partitions, in_order);
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            CHECK(memcmp(in, wanted, sizeof in) == 0);
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
}

static void not_an_int(void) {
    const MPI_Count many = (MPI_Count)INT_MAX + 12345, beyond = (MPI_Count)UINT_MAX + 1;
    char byte;
    MPI_Datatype nothing;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    CHECK(send_int(&byte, 1, -7, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_ERR_COUNT);
    CHECK(receive_int(&byte, 1, INT_MIN, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_ERR_COUNT);
    EXPECT(MPI_ERR_COUNT, "count is 2147495992, or -2147471304 if it is an int",
           MPI_Psend_init(&byte, 1, many, nothing, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    EXPECT(MPI_ERR_COUNT, "call MPI_Precv_init_c",
           MPI_Precv_init(&byte, 1, many, nothing, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Psend_init_c(&byte, 1, many, nothing, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Precv_init_c(&byte, 1, many, nothing, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Psend_init(&byte, 1, beyond, nothing, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Type_free(&nothing));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"an int, an MPI_Count, and the calls that end on _c", 1, each_kind},
        {"counts that are no int", 1, not_an_int},
    };
    send_int = (send_of_int *)(void (*)(void))MPI_Psend_init;
    receive_int = (receive_of_int *)(void (*)(void))MPI_Precv_init;
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
