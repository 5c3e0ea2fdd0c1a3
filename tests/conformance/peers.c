// SPDX-License-Identifier: BSD-3-Clause
//
// What other implementations have got wrong, each case named after one of them and its fault. A ring.
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/harness.h"

enum { tag = 990 };  // MPIPCL's own

static struct side out, in;
static MPI_Request both[2];

static void make_pair(MPI_Datatype out_type, int sends, int send_count, MPI_Datatype in_type, int receives,
                      int receive_count) {
    make_side(&out, out_type, sends, send_count);
    make_side(&in, in_type, receives, receive_count);
    CHECK(out.bytes == in.bytes);
    OK(MPI_Psend_init(out.buffer, sends, send_count, out_type, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
    OK(MPI_Precv_init(in.buffer, receives, receive_count, in_type, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[1]));
}

static void free_pair(void) {
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

static void fill(uint64_t epoch) {
    fill_side(&out, mix_key(epoch, (uint64_t)world_rank));
    fill_side(&in, mix_key(epoch, 1000));
}

static void check(uint64_t epoch) {
    check_received(&in, mix_key(epoch, 1000), &out, mix_key(epoch, (uint64_t)left_rank));
}

static int arrived(int partition) {
    int flag = -1;
    OK(MPI_Parrived(both[1], partition, &flag));
    return flag;
}

// Round by round, one Startall starts all of them, the first one too.
static void startall_starts_all(void) {
    enum { n = 6 };
    int data[n][3], more[n][3];
    MPI_Request all[2 * n];
    for (int i = 0; i < n; ++i) {
        OK(MPI_Psend_init(data[i], 3, 1, MPI_INT, right_rank, i, MPI_COMM_WORLD, MPI_INFO_NULL, &all[i]));
        OK(MPI_Precv_init(more[i], 3, 1, MPI_INT, left_rank, i, MPI_COMM_WORLD, MPI_INFO_NULL, &all[n + i]));
    }
    for (int epoch = 1; epoch <= 3; ++epoch) {
        for (int k = 0; k < 3 * n; ++k)
            data[k / 3][k % 3] = world_rank * 1000 + epoch * 100 + k, more[k / 3][k % 3] = -1;
        OK(MPI_Startall(2 * n, all));
        for (int i = n - 1; i >= 0; --i) ready_all(all[i], 3, shuffled);
        OK(MPI_Waitall(2 * n, all, MPI_STATUSES_IGNORE));
        for (int k = 0; k < 3 * n; ++k) CHECK(more[k / 3][k % 3] == left_rank * 1000 + epoch * 100 + k);
    }
    for (int i = 0; i < 2 * n; ++i) OK(MPI_Request_free(&all[i]));
}

static void no_second_round_for_free(void) {
    make_pair(MPI_INT, 4, 3, MPI_INT, 4, 3);
    for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
        fill(epoch);
        OK(MPI_Startall(2, both));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 100; ++i) {
            int flag = -1;
            OK(MPI_Test(&both[i % 2], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        ready_all(both[0], 4, shuffled);
        OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
        OK(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
        check(epoch);
    }
    free_pair();
}

// Each of the receiver's partitions is asked for, when the sender has far fewer, and far more.
static void parrived_in_bounds(void) {
    static const int counts[][2] = {{2, 64}, {64, 2}, {3, 64}, {1, 37}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        const int p = counts[i][0], q = counts[i][1];
        make_pair(MPI_SHORT, p, q, MPI_SHORT, q, p);
        for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
            fill(epoch);
            OK(MPI_Startall(2, both));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            for (int j = 0; j < q; ++j) CHECK(!arrived(j));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            ready_all(both[0], p, shuffled);
            for (int j = q - 1; j >= 0; --j) UNTIL(arrived(j)) {
                }
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            check(epoch);
        }
        free_pair();
    }
}

static void extent_is_the_stride(void) {
    MPI_Datatype type = make_type(strided_ints);
    for (int way = 0; way < 3; ++way) {
        make_pair(way == 1 ? MPI_INT : type, 4, way == 1 ? 9 : 3, way == 2 ? MPI_INT : type, 4, way == 2 ? 9 : 3);
        for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
            fill(epoch);
            OK(MPI_Startall(2, both));
            ready_all(both[0], 4, shuffled);
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            check(epoch);
        }
        free_pair();
    }
    OK(MPI_Type_free(&type));
}

// Ordinary messages with the partitioned tag and those next to it, and wildcard receives that were there before.
static void tags_are_the_users(void) {
    enum { n = 5 };
    int words[n], sent[n], flag = -1;
    MPI_Request plain[n], sends[n];
    for (int i = 0; i < n; ++i) {
        words[i] = -1;
        OK(MPI_Irecv(&words[i], 1, MPI_INT, MPI_ANY_SOURCE, tag + i, MPI_COMM_WORLD, &plain[i]));
    }
    make_pair(MPI_INT, n, 4, MPI_INT, n, 4);
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
        fill(epoch);
        OK(MPI_Startall(2, both));
        ready_all(both[0], n, shuffled);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
        OK(MPI_Testall(n, plain, &flag, MPI_STATUSES_IGNORE));
        CHECK(!flag);
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        for (int i = 0; i < n; ++i) CHECK(words[i] == -1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = n - 1; i >= 0; --i) {
        sent[i] = world_rank * 100 + i;
        OK(MPI_Isend(&sent[i], 1, MPI_INT, right_rank, tag + i, MPI_COMM_WORLD, &sends[i]));
    }
    OK(MPI_Waitall(n, plain, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(n, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; ++i) CHECK(words[i] == left_rank * 100 + i);
    free_pair();
}

// One partition of four is there when it has been readied, and no other.
static void parrived_one_by_one(void) {
    make_pair(MPI_INT, 4, 8, MPI_INT, 4, 8);
    for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
        fill(epoch);
        OK(MPI_Startall(2, both));
        for (int given = 0; given < 4; ++given) {
            const int p = (int)((epoch + (uint64_t)given) % 4);
            OK(MPI_Pready(p, both[0]));
            UNTIL(arrived(p)) {}
            check_partition(&in, &out, mix_key(epoch, (uint64_t)left_rank), p);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            for (int k = given + 1; k < 4; ++k) CHECK(!arrived((int)((epoch + (uint64_t)k) % 4)));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

static void parrived_of_null(void) {
    int flag = 0;
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK(flag);
}

static void send_to_nobody(void) {
    int data[4] = {1, 2, 3, 4};
    MPI_Request request;
    OK(MPI_Psend_init(data, 4, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int epoch = 0; epoch < 3; ++epoch) {
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, 3, request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
}

// The second Pready is an error that counts for nothing: while a partition is missing nothing completes.
static void double_pready(void) {
    make_pair(MPI_INT, 3, 2, MPI_INT, 3, 2);
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
        int flag = -1;
        fill(epoch);
        OK(MPI_Startall(2, both));
        OK(MPI_Pready(0, both[0]));
        CHECK(MPI_Pready(0, both[0]) != MPI_SUCCESS);
        OK(MPI_Pready(2, both[0]));
        CHECK(MPI_Pready(2, both[0]) != MPI_SUCCESS);
        for (int i = 0; i < 50; ++i) {
            OK(MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
        OK(MPI_Pready(1, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

// The sum over all partitions, as MPIPCL's test wanted to have it.
static void sum_of_all(void) {
    make_pair(MPI_INT32_T, 10, 100, MPI_INT32_T, 20, 50);
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
        int64_t sent = 0, got = 0, wanted = 0;
        fill(epoch);
        for (int i = 0; i < 1000; ++i) sent += ((int32_t *)out.buffer)[i];
        OK(MPI_Startall(2, both));
        ready_all(both[0], 10, shuffled);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 1000; ++i) got += ((int32_t *)in.buffer)[i];
        OK(MPI_Sendrecv(&sent, 1, MPI_INT64_T, right_rank, 1, &wanted, 1, MPI_INT64_T, left_rank, 1, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        CHECK(got == wanted);
        check(epoch);
    }
    free_pair();
}

static void many_partitions(void) {
    make_pair(MPI_BYTE, 10000, 1, MPI_BYTE, 5000, 2);
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
        fill(epoch);
        OK(MPI_Startall(2, both));
        ready_all(both[0], 10000, shuffled);
        for (int j = 0; j < 5000; ++j) UNTIL(arrived(j)) {
            }
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check(epoch);
    }
    free_pair();
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"Open MPI: Startall of first-use requests starts only the first", 1, startall_starts_all},
        {"Open MPI: the second round completes without a Pready", 1, no_second_round_for_free},
        {"Open MPI: Parrived out of bounds when the counts differ", 1, parrived_in_bounds},
        {"Open MPI: the type's size is taken for its extent", 1, extent_is_the_stride},
        {"Open MPI, MPIPCL: messages of their own on the user's communicator", 1, tags_are_the_users},
        {"MPICH: Parrived is all or nothing", 1, parrived_one_by_one},
        {"MPICH: Parrived of a null request crashes", 1, parrived_of_null},
        {"MPICH: Psend_init to MPI_PROC_NULL crashes", 1, send_to_nobody},
        {"MPICH: a double Pready corrupts the count", 1, double_pready},
        {"MPIPCL: a wrong sum", 1, sum_of_all},
        {"mpi-acx: 4096 flags per process", 1, many_partitions},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
