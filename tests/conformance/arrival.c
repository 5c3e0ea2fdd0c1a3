// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 7: what MPI_Parrived says, and when. A ring: each rank tells its right neighbour by ordinary messages
// which partitions it has readied.
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/harness.h"

enum { tag = 3, word_tag = 4, most = 64 };

static int arrived(MPI_Request request, int partition) {
    int flag = -1;
    OK(MPI_Parrived(request, partition, &flag));
    CHECK(flag == 0 || flag == 1);
    return flag;
}

// Tell the right neighbour, hear from the left one.
static void pass_on(const char *mine, char *theirs, int n) {
    OK(MPI_Sendrecv(mine, n, MPI_CHAR, right_rank, word_tag, theirs, n, MPI_CHAR, left_rank, word_tag, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
}

// The left neighbour hears that its partitions have been seen.
static void confirm(void) {
    char yes = 1, theirs = 0;
    OK(MPI_Sendrecv(&yes, 1, MPI_CHAR, left_rank, word_tag, &theirs, 1, MPI_CHAR, right_rank, word_tag, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(theirs == 1);
}

static void epoch_by_steps(struct side *out, struct side *in, MPI_Request both[2], uint64_t now) {
    char mine[most] = {0}, theirs[most] = {0}, next[most];
    int order[most], given = 0;
    const uint64_t poison = mix_key(now, 1000), left_key = mix_key(now, (uint64_t)left_rank);
    fill_side(out, mix_key(now, (uint64_t)world_rank));
    fill_side(in, poison);
    shuffle(order, out->partitions);
    OK(MPI_Startall(2, both));
    // Nobody readies anything before all have looked: last epoch's flags must not be taken for this one's.
    for (int round = 0; round < 20; ++round)
        for (int j = 0; j < in->partitions; ++j) CHECK(!arrived(both[1], j));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int step = 0; step < 4; ++step) {
        const int until = step == 3 ? out->partitions : given + own_below(out->partitions - given + 1);
        for (; given < until; ++given) {
            OK(MPI_Pready(order[given], both[0]));
            mine[order[given]] = 1;
        }
        pass_on(mine, next, most);
        memcpy(theirs, next, most);
        for (int j = 0; j < in->partitions; ++j) {
            if (!covered(out, theirs, in, j)) continue;
            UNTIL(arrived(both[1], j)) {}
            check_partition(in, out, left_key, j);
        }
        // And no others, however often we ask.
        for (int round = 0; round < 10; ++round)
            for (int j = 0; j < in->partitions; ++j) CHECK(arrived(both[1], j) == covered(out, theirs, in, j));
        confirm();
    }
    // It does not complete the request: a single Test does.
    int flag = 0, bytes = -1;
    MPI_Status status;
    OK(MPI_Request_get_status(both[1], &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
    flag = 0;
    OK(MPI_Test(&both[1], &flag, &status));
    CHECK(flag);
    OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
    CHECK(bytes == (int)in->bytes && status.MPI_SOURCE == left_rank && status.MPI_TAG == tag);
    check_received(in, poison, out, left_key);
    for (int j = 0; j < in->partitions; ++j) CHECK(arrived(both[1], j));
    OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
}

static void own_data_only(void) {
    static const int counts[][2] = {{1, 1}, {8, 8}, {8, 2}, {2, 8}, {6, 4}, {4, 6}, {7, 3}, {3, 7}, {5, 12}, {64, 48}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i)
        for (int variant = 0; variant < 3; ++variant) {
            const int p = counts[i][0], q = counts[i][1];
            MPI_Datatype out_type = make_type(variant == 1 ? strided_ints : plain_bytes);
            MPI_Datatype in_type = make_type(variant == 2 ? corner : plain_bytes);
            struct side out, in;
            MPI_Request both[2];
            make_side(&out, out_type, p, q);
            make_side(&in, in_type, q, p);
            OK(MPI_Psend_init(out.buffer, p, q, out_type, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
            OK(MPI_Precv_init(in.buffer, q, p, in_type, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
            const uint64_t transfer = shared_random();
            for (int epoch = 1; epoch <= 5; ++epoch)
                epoch_by_steps(&out, &in, both, mix_key(transfer, (uint64_t)epoch));
            OK(MPI_Request_free(&both[0]));
            OK(MPI_Request_free(&both[1]));
            OK(MPI_Type_free(&out_type));
            OK(MPI_Type_free(&in_type));
            free_side(&out);
            free_side(&in);
        }
}

// Nothing but Parrived is called from Start to the end, on any rank.
static void loop_alone(void) {
    struct side out, in;
    MPI_Request both[2];
    make_side(&out, MPI_INT, 12, 10);
    make_side(&in, MPI_INT, 8, 15);
    OK(MPI_Psend_init(out.buffer, 12, 10, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in.buffer, 8, 15, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
        fill_side(&out, mix_key(epoch, (uint64_t)world_rank));
        fill_side(&in, epoch);
        OK(MPI_Startall(2, both));
        OK(MPI_Pready_range(0, 11, both[0]));
        for (int j = 7; j >= 0; --j) UNTIL(arrived(both[1], j)) {
            }
        int flag = 0;
        OK(MPI_Test(&both[1], &flag, MPI_STATUS_IGNORE));
        CHECK(flag);
        check_received(&in, epoch, &out, mix_key(epoch, (uint64_t)left_rank));
        OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

static void null_and_inactive(void) {
    int data[4] = {0}, more[4] = {0};
    MPI_Request both[2], nobody;
    CHECK(arrived(MPI_REQUEST_NULL, 0));
    CHECK(arrived(MPI_REQUEST_NULL, -5));
    OK(MPI_Psend_init(data, 4, 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(more, 4, 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (int epoch = 0; epoch < 3; ++epoch) {
        for (int j = 0; j < 4; ++j) CHECK(arrived(both[1], j));
        OK(MPI_Startall(2, both));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int j = 0; j < 4; ++j) CHECK(!arrived(both[1], j));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready_range(0, 3, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    OK(MPI_Precv_init(more, 4, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &nobody));
    CHECK(arrived(nobody, 3));
    OK(MPI_Start(&nobody));
    CHECK(arrived(nobody, 3));
    OK(MPI_Wait(&nobody, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&nobody));
}

// Once all partitions have been seen, each of the calls that ask once must say yes at once.
static void single_test(void) {
    struct side out, in;
    MPI_Request both[2];
    make_side(&out, MPI_INT, 6, 20);
    make_side(&in, MPI_INT, 4, 30);
    OK(MPI_Psend_init(out.buffer, 6, 20, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in.buffer, 4, 30, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (int epoch = 0; epoch < 40; ++epoch) {
        int flag = 0, index = -1, indices[1], n = 0;
        fill_side(&out, mix_key((uint64_t)epoch, (uint64_t)world_rank));
        fill_side(&in, (uint64_t)epoch);
        OK(MPI_Startall(2, both));
        ready_all(both[0], 6, shuffled);
        for (int j = 0; j < 4; ++j) UNTIL(arrived(both[1], j)) {
            }
        switch (epoch % 4) {
            case 0:
                OK(MPI_Test(&both[1], &flag, MPI_STATUS_IGNORE));
                break;
            case 1:
                OK(MPI_Testall(1, &both[1], &flag, MPI_STATUSES_IGNORE));
                break;
            case 2:
                OK(MPI_Testany(1, &both[1], &index, &flag, MPI_STATUS_IGNORE));
                CHECK(index == 0);
                break;
            default:
                OK(MPI_Testsome(1, &both[1], &n, indices, MPI_STATUSES_IGNORE));
                CHECK(n == 1 && indices[0] == 0);
                flag = 1;
        }
        CHECK(flag);
        check_received(&in, (uint64_t)epoch, &out, mix_key((uint64_t)epoch, (uint64_t)left_rank));
        OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

// The sender runs as fast as it may; the receiver dawdles, and asks at random.
static void sender_runs_ahead(void) {
    struct side out, in;
    MPI_Request request;
    make_side(&out, MPI_SHORT, 9, 40);
    make_side(&in, MPI_SHORT, 6, 60);
    if (world_rank == 0) {
        OK(MPI_Psend_init(out.buffer, 9, 40, MPI_SHORT, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (uint64_t epoch = 1; epoch <= 300; ++epoch) {
            fill_side(&out, mix_key(7, epoch));
            OK(MPI_Start(&request));
            ready_all(request, 9, (enum ready_order)own_below(n_ready_orders));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(&request));
    } else if (world_rank == 1) {
        OK(MPI_Precv_init(in.buffer, 6, 60, MPI_SHORT, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (uint64_t epoch = 1; epoch <= 300; ++epoch) {
            fill_side(&in, epoch);
            OK(MPI_Start(&request));
            for (int asked = own_below(30); asked > 0; --asked) {
                const int j = own_below(6);
                if (arrived(request, j)) check_partition(&in, &out, mix_key(7, epoch), j);
            }
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            for (int look = own_below(3); look > 0; --look) {
                int flag;
                OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
                check_received(&in, epoch, &out, mix_key(7, epoch));  // also while the next epoch is under way
            }
            check_received(&in, epoch, &out, mix_key(7, epoch));
        }
        OK(MPI_Request_free(&request));
    }
    free_side(&out);
    free_side(&in);
}

// Some partitions come before the receiver has started, and so are left to the sender's engine; the others come
// after it has moved those. Then the sender waits in a call of the MPI library's for what the receiver sends only after
// its Wait.
static void reply_after_wait(void) {
    enum { partitions = 8, reply_tag = 5 };
    double values[partitions] = {0}, reply = 0;
    MPI_Request request;
    const int sends = world_rank == 0;
    if (world_rank > 1) return;
    OK(sends ? MPI_Psend_init(values, partitions, 1, MPI_DOUBLE, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request)
             : MPI_Precv_init(values, partitions, 1, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int epoch = 0; epoch < 4; ++epoch) {
        for (int i = 0; i < partitions; ++i) values[i] = sends ? 100 * epoch + i : -1;
        if (sends) {
            int flag, here = 0;
            OK(MPI_Start(&request));
            OK(MPI_Pready(0, request));
            OK(MPI_Send(&reply, 1, MPI_DOUBLE, 1, word_tag, MPI_COMM_WORLD));
            UNTIL(here) {  // the receiver has the first one
                OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
                CHECK(!flag);
                OK(MPI_Iprobe(1, word_tag, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE));
            }
            OK(MPI_Recv(&reply, 1, MPI_DOUBLE, 1, word_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = 1; i < partitions; ++i) OK(MPI_Pready(i, request));
            OK(MPI_Recv(&reply, 1, MPI_DOUBLE, 1, reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(reply == 100 * epoch + partitions - 1);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(&reply, 1, MPI_DOUBLE, 0, word_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Start(&request));
            UNTIL(arrived(request, 0)) {}
            OK(MPI_Send(&reply, 1, MPI_DOUBLE, 0, word_tag, MPI_COMM_WORLD));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            for (int i = 0; i < partitions; ++i) CHECK(values[i] == 100 * epoch + i);
            OK(MPI_Send(&values[partitions - 1], 1, MPI_DOUBLE, 0, reply_tag, MPI_COMM_WORLD));
        }
    }
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 7: true for null and inactive requests", 1, null_and_inactive},
        {"rule 7: true as soon as its own data is there, and no sooner", 1, own_data_only},
        {"rule 7: a loop of Parrived alone makes progress", 1, loop_alone},
        {"rule 14: a single test after all have arrived", 1, single_test},
        {"rule 9: the sender runs ahead", 2, sender_runs_ahead},
        {"rule 9: a reply after the receiver's Wait", 2, reply_after_wait},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
