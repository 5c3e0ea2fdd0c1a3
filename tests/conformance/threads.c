// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 13: many threads on one request, without a lock. A ring.
#include <pthread.h>
#include <sched.h>

#include "tests/conformance/harness.h"

enum { tag = 2, n_threads = 4, partitions = 64, count = 16, epochs = 60 };

static struct side out, in;
static MPI_Request both[2];
static uint64_t now;

static void on_all_threads(void *(*body)(void *)) {
    pthread_t threads[n_threads];
    for (uintptr_t i = 0; i < n_threads; ++i) CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    for (int i = 0; i < n_threads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

// Every thread fills and marks its own partitions, and asks for its own.
static void *ready_and_ask(void *argument) {
    const int me = (int)(uintptr_t)argument;
    for (int p = me; p < partitions; p += n_threads) {
        random_bytes((char *)out.buffer + (size_t)p * count * sizeof(int), count * sizeof(int),
                     mix_key(now, (uint64_t)(world_rank * partitions + p)));
        OK(MPI_Pready(p, both[0]));
    }
    for (int p = me; p < partitions; p += n_threads) {
        int wanted[count], flag = 0;
        UNTIL(flag) {
            OK(MPI_Parrived(both[1], p, &flag));
            if (!flag) sched_yield();
        }
        random_bytes(wanted, sizeof wanted, mix_key(now, (uint64_t)(left_rank * partitions + p)));
        for (int k = 0; k < count; ++k) CHECK(((int *)in.buffer)[p * count + k] == wanted[k]);
    }
    return NULL;
}

static void distinct_partitions(void) {
    make_side(&out, MPI_INT, partitions, count);
    make_side(&in, MPI_INT, partitions, count);
    OK(MPI_Psend_init(out.buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
    OK(MPI_Precv_init(in.buffer, partitions, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        now = mix_key(seed, epoch);
        fill_side(&in, now);
        OK(MPI_Startall(2, both));
        on_all_threads(ready_and_ask);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

// All threads want all of the receiver's partitions, which are coarser, while another one waits for the whole.
static pthread_barrier_t gate;

static void *ready_or_ask_all(void *argument) {
    const int me = (int)(uintptr_t)argument;
    pthread_barrier_wait(&gate);
    for (int p = me; p < partitions; p += n_threads) OK(MPI_Pready(p, both[0]));
    for (int q = 0; q < 16; ++q) {
        const int j = (q + 4 * me) % 16;
        int flag = 0;
        UNTIL(flag) {
            OK(MPI_Parrived(both[1], j, &flag));
            if (!flag) sched_yield();
        }
        check_partition(&in, &out, mix_key(now, (uint64_t)left_rank), j);
    }
    return NULL;
}

static void everybody_asks_for_everything(void) {
    MPI_Datatype type = make_type(strided_ints);
    CHECK(pthread_barrier_init(&gate, NULL, n_threads) == 0);
    make_side(&out, MPI_INT, partitions, 12);
    make_side(&in, type, 16, 16);
    OK(MPI_Psend_init(out.buffer, partitions, 12, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in.buffer, 16, 16, type, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        now = mix_key(seed, epoch + 1000);
        fill_side(&out, mix_key(now, (uint64_t)world_rank));
        fill_side(&in, now);
        OK(MPI_Startall(2, both));
        on_all_threads(ready_or_ask_all);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check_received(&in, now, &out, mix_key(now, (uint64_t)left_rank));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    OK(MPI_Type_free(&type));
    free_side(&out);
    free_side(&in);
    pthread_barrier_destroy(&gate);
}

// Each thread makes, runs and frees requests of its own, all at once.
static void *whole_lives(void *argument) {
    const int me = (int)(uintptr_t)argument;
    for (int life = 0; life < 25; ++life) {
        int data[12], more[12];
        MPI_Request mine[2];
        OK(MPI_Psend_init(data, 4, 3, MPI_INT, right_rank, me, MPI_COMM_WORLD, MPI_INFO_NULL, &mine[0]));
        OK(MPI_Precv_init(more, 6, 2, MPI_INT, left_rank, me, MPI_COMM_WORLD, MPI_INFO_NULL, &mine[1]));
        for (int epoch = 0; epoch < 4; ++epoch) {
            for (int k = 0; k < 12; ++k) {
                data[k] = (world_rank * n_threads + me) * 100000 + life * 1000 + epoch * 100 + k;
                more[k] = -1;
            }
            OK(MPI_Startall(2, mine));
            OK(MPI_Pready_range(2, 3, mine[0]));
            OK(MPI_Pready_range(0, 1, mine[0]));
            OK(MPI_Waitall(2, mine, MPI_STATUSES_IGNORE));
            for (int k = 0; k < 12; ++k)
                CHECK(more[k] == (left_rank * n_threads + me) * 100000 + life * 1000 + epoch * 100 + k);
        }
        OK(MPI_Request_free(&mine[0]));
        OK(MPI_Request_free(&mine[1]));
    }
    return NULL;
}

static void requests_of_their_own(void) { on_all_threads(whole_lives); }

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 13: threads mark distinct partitions, and ask for them", 1, distinct_partitions},
        {"rule 13: all threads ask for all partitions", 1, everybody_asks_for_everything},
        {"threads with requests of their own", 1, requests_of_their_own},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_MULTIPLE, cases);
}
