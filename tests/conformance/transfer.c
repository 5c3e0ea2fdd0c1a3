// SPDX-License-Identifier: BSD-3-Clause
//
// Every byte of every epoch: partition counts, datatypes, orders of Pready, sizes, restart. Each rank sends to
// its right neighbour and receives from its left one (itself, if it is alone).
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/harness.h"

enum { tag = 17 };

struct shape {
    enum type_kind type;
    int partitions, count;
};

// Both ends complete, in one of the ways that there are.
static void complete(MPI_Request both[2]) {
    int flag = 0, index = 0;
    switch (own_below(5)) {
        case 0:
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            break;
        case 1:
            OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
            OK(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
            break;
        case 2:
            OK(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
            UNTIL(flag) OK(MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE));
            break;
        case 3:
            UNTIL(flag) OK(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
            break;
        default:
            OK(MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE));
            CHECK(index == 0 || index == 1);
            OK(MPI_Wait(&both[1 - index], MPI_STATUS_IGNORE));
    }
}

static void start(MPI_Request both[2]) {
    const int way = own_below(3);
    if (way == 0) {
        OK(MPI_Startall(2, both));
    } else {
        OK(MPI_Start(&both[way - 1]));
        OK(MPI_Start(&both[2 - way]));
    }
}

// `order` < 0: another one in every epoch.
static void exchange_types(MPI_Datatype out_type, int out_partitions, int out_count, MPI_Datatype in_type,
                           int in_partitions, int in_count, int epochs, int order) {
    struct side out, in;
    make_side(&out, out_type, out_partitions, out_count);
    make_side(&in, in_type, in_partitions, in_count);
    CHECK(out.bytes == in.bytes);
    const uint64_t transfer = shared_random();
    MPI_Request both[2];
    OK(MPI_Psend_init(out.buffer, out_partitions, out_count, out_type, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
    OK(MPI_Precv_init(in.buffer, in_partitions, in_count, in_type, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[1]));
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        const uint64_t now = mix_key(transfer, (uint64_t)epoch), poison = mix_key(now, 1000);
        // The send buffer too is new in each epoch: bytes that leave it late are wrong.
        fill_side(&out, mix_key(now, (uint64_t)world_rank));
        fill_side(&in, poison);
        start(both);
        ready_all(both[0], out_partitions,
                  order < 0 ? (enum ready_order)own_below(n_ready_orders) : (enum ready_order)order);
        complete(both);
        check_received(&in, poison, &out, mix_key(now, (uint64_t)left_rank));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

static void exchange(struct shape out, struct shape in, int epochs, int order) {
    MPI_Datatype out_type = make_type(out.type), in_type = make_type(in.type);
    exchange_types(out_type, out.partitions, out.count, in_type, in.partitions, in.count, epochs, order);
    OK(MPI_Type_free(&out_type));
    OK(MPI_Type_free(&in_type));
}

static void restart(void) {
    exchange((struct shape){plain_bytes, 4, 5}, (struct shape){plain_bytes, 4, 5}, 1000, -1);
    exchange((struct shape){plain_bytes, 6, 2}, (struct shape){plain_bytes, 4, 3}, 300, -1);
}

static void unequal_partitions(void) {
    static const int counts[][2] = {{1, 8},  {8, 1},  {4, 6},   {6, 4},   {3, 7}, {7, 3},
                                    {12, 5}, {5, 12}, {24, 16}, {64, 48}, {1, 1}, {100, 25}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        const int p = counts[i][0], q = counts[i][1];
        for (int factor = 1; factor <= 3; ++factor)
            exchange((struct shape){plain_bytes, p, q * factor}, (struct shape){three_ints, q, p * factor}, 5, -1);
    }
}

static void different_types(void) {
    for (int out = 0; out < n_type_kinds; ++out)
        for (int in = 0; in < n_type_kinds; ++in) {
            exchange((struct shape){(enum type_kind)out, 4, 3}, (struct shape){(enum type_kind)in, 4, 3}, 3, -1);
            exchange((struct shape){(enum type_kind)out, 6, 5}, (struct shape){(enum type_kind)in, 10, 3}, 3, -1);
        }
}

// Elements that do not even agree in size: the receiver's partition boundaries cut the sender's elements.
static void different_element_sizes(void) {
    MPI_Datatype row;
    OK(MPI_Type_vector(5, 1, 3, MPI_DOUBLE, &row));
    OK(MPI_Type_commit(&row));
    exchange_types(row, 3, 2, MPI_INT, 12, 5, 5, -1);
    exchange_types(MPI_BYTE, 16, 15, row, 2, 3, 5, -1);
    OK(MPI_Type_free(&row));
}

// Elements that lie in each other: legal in a send.
static void overlapping_send(void) {
    MPI_Datatype row, close;
    OK(MPI_Type_contiguous(6, MPI_SHORT, &row));
    OK(MPI_Type_create_resized(row, 0, 4, &close));
    OK(MPI_Type_commit(&close));
    exchange_types(close, 5, 4, MPI_BYTE, 12, 20, 5, -1);
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&close));
}

static void orders(void) {
    for (int order = 0; order < n_ready_orders; ++order)
        for (int partitions = 1; partitions <= 33; partitions += 8)
            exchange((struct shape){plain_bytes, partitions, 2}, (struct shape){plain_bytes, partitions, 2}, 4, order);
}

// The status of a receive from the left without bytes.
static void check_empty_message(const MPI_Status *status) {
    int bytes = -1;
    OK(MPI_Get_count(status, MPI_BYTE, &bytes));
    CHECK(bytes == 0);
    CHECK(status->MPI_SOURCE == left_rank);
    CHECK(status->MPI_TAG == tag);
}

static void count_zero(void) {
    MPI_Request both[2];
    static const int counts[][2] = {{1, 1}, {5, 5}, {4, 7}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        OK(MPI_Psend_init(NULL, counts[i][0], 0, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
        OK(MPI_Precv_init(NULL, counts[i][1], 0, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
        for (int epoch = 0; epoch < 3; ++epoch) {
            MPI_Status status[2];
            OK(MPI_Startall(2, both));
            ready_all(both[0], counts[i][0], shuffled);
            OK(MPI_Waitall(2, both, status));
            check_empty_message(&status[1]);
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
}

// The other side may have partitions, if they are empty. A send without partitions needs no MPI_Pready.
static void no_partitions(void) {
    static const int counts[][2] = {{0, 0}, {0, 3}, {5, 0}};
    MPI_Request both[2];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        const int p = counts[i][0], q = counts[i][1];
        OK(MPI_Psend_init(NULL, p, p == 0 ? 7 : 0, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
        OK(MPI_Precv_init(NULL, q, q == 0 ? 9 : 0, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
        for (int epoch = 0; epoch < 4; ++epoch) {
            MPI_Status status[2];
            int flag = 0;
            if (epoch % 2 == 0) {
                OK(MPI_Startall(2, both));
            } else {
                OK(MPI_Start(&both[1]));
                OK(MPI_Start(&both[0]));
            }
            ready_all(both[0], p, shuffled);
            OK(MPI_Pready_list(0, NULL, both[0]));
            for (int j = 0; j < q; ++j)
                for (flag = 0; !flag;) OK(MPI_Parrived(both[1], j, &flag));
            OK(MPI_Waitall(2, both, status));
            check_empty_message(&status[1]);
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
    for (int to_all = 0; to_all < 2; ++to_all) {  // freed unstarted, and with MPI_PROC_NULL
        const int to = to_all ? right_rank : MPI_PROC_NULL, from = to_all ? left_rank : MPI_PROC_NULL;
        OK(MPI_Psend_init(NULL, 0, 1, MPI_INT, to, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
        OK(MPI_Precv_init(NULL, 0, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
        if (!to_all) {
            OK(MPI_Startall(2, both));
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
}

static void large(void) {
    static const int counts[][2] = {{8, 8}, {1, 16}, {64, 3}};
    const int bytes = 8 * 1024 * 1024 * 3 / 3;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        const int p = counts[i][0], q = counts[i][1], unit = bytes / (p * q);
        exchange_types(MPI_BYTE, p, q * unit, MPI_BYTE, q, p * unit, 3, -1);
    }
    exchange((struct shape){strided_ints, 8, 40000}, (struct shape){corner, 10, 32000}, 2, -1);
}

// Around the size from which on there is room for one epoch only.
static void around_eager_size(void) {
    for (int more = -1; more <= 1; ++more) {
        const int count = (1 << 20) / 16 + more;
        exchange_types(MPI_BYTE, 16, count, MPI_BYTE, 16, count, 4, -1);
    }
}

// Around the sizes at which a network copies bytes into a message, sends them from where they are, or in several messages.
static void around_network_sizes(void) {
    static const int sizes[] = {8191, 8193, 16384, 16385, 53248, 53249, 57345, 110001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        exchange_types(MPI_BYTE, 3, sizes[i], MPI_BYTE, 3, sizes[i], 4, -1);
}

static void random_shapes(void) {
    for (int i = 0; i < 120; ++i) {
        const int p = 1 + shared_below(40), q = 1 + shared_below(40), factor = 1 + shared_below(4);
        const struct shape out = {(enum type_kind)shared_below(n_type_kinds), p, q * factor};
        const struct shape in = {(enum type_kind)shared_below(n_type_kinds), q, p * factor};
        exchange(out, in, 1 + shared_below(4), -1);
    }
}

// Until the first Pready nothing is written to the receive buffer, and after it only what that partition covers.
static void nothing_before_ready(void) {
    struct side out, in, before;
    MPI_Request both[2];
    make_side(&out, MPI_INT, 4, 6);
    make_side(&in, MPI_INT, 4, 6);
    make_side(&before, MPI_INT, 4, 6);
    OK(MPI_Psend_init(out.buffer, 4, 6, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in.buffer, 4, 6, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
        int flag = -1;
        fill_side(&in, epoch);
        fill_side(&before, epoch);
        OK(MPI_Startall(2, both));
        fill_side(&out, mix_key(epoch, (uint64_t)world_rank));  // the buffer is still the user's
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 50; ++i) {
            OK(MPI_Test(&both[1], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag && memcmp(in.memory, before.memory, in.memory_bytes) == 0);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready(1, both[0]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 50; ++i) {
            OK(MPI_Test(&both[1], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag && memcmp(in.buffer, before.buffer, 24) == 0);
            CHECK(memcmp((char *)in.buffer + 48, (char *)before.buffer + 48, 48) == 0);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready(0, both[0]));
        OK(MPI_Pready_range(2, 3, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check_received(&in, epoch, &out, mix_key(epoch, (uint64_t)left_rank));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
    free_side(&before);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 9: restart, epoch after epoch", 1, restart},
        {"rule 5: neither init nor Start transfers data", 1, nothing_before_ready},
        {"rule 4: partition counts may differ", 1, unequal_partitions},
        {"rule 4: datatypes may differ; the extent is the stride", 1, different_types},
        {"rule 4: elements may differ in size", 1, different_element_sizes},
        {"rule 4: the extent may be smaller than the size", 1, overlapping_send},
        {"rule 6: range and list equal single calls in any order", 1, orders},
        {"rule 3: count 0, with a null buffer", 1, count_zero},
        {"rule 3: no partitions", 1, no_partitions},
        {"large messages", 1, large},
        {"messages around the eager size", 1, around_eager_size},
        {"messages around the sizes of a network's own", 1, around_network_sizes},
        {"random shapes", 1, random_shapes},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
