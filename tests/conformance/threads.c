// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 13: many threads on one request, without a lock; and requests and communicators of many threads. A ring.
//
// With MPIX_TESTS_THREADS=serialized or funneled the library is asked for that level, and threads call no more than
// Pready and Parrived at once, and neither while the first one is in another call.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/constructors.h"
#include "tests/conformance/pairs.h"

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
            if (!flag) usleep(50);
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
            if (!flag) usleep(50);
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

// All threads mark partitions ready while the first one waits for the whole.
static void *only_ready(void *argument) {
    const int me = (int)(uintptr_t)argument;
    pthread_barrier_wait(&gate);
    for (int p = me; p < partitions; p += n_threads) OK(MPI_Pready(p, both[0]));
    return NULL;
}

static void waited_for_meanwhile(void) {
    make_side(&out, MPI_INT, partitions, count);
    make_side(&in, MPI_INT, partitions / 2, 2 * count);
    CHECK(pthread_barrier_init(&gate, NULL, n_threads + 1) == 0);
    OK(MPI_Psend_init(out.buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
    OK(MPI_Precv_init(in.buffer, partitions / 2, 2 * count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[1]));
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        pthread_t threads[n_threads];
        now = mix_key(seed, epoch + 2000);
        fill_side(&out, mix_key(now, (uint64_t)world_rank));
        fill_side(&in, now);
        OK(MPI_Startall(2, both));
        for (uintptr_t i = 0; i < n_threads; ++i) CHECK(pthread_create(&threads[i], NULL, only_ready, (void *)i) == 0);
        pthread_barrier_wait(&gate);
        if (epoch % 2) {
            OK(MPI_Wait(&both[0], MPI_STATUS_IGNORE));
            OK(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        }
        check_received(&in, now, &out, mix_key(now, (uint64_t)left_rank));
        for (int i = 0; i < n_threads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
    pthread_barrier_destroy(&gate);
}

// Each thread runs an array of requests that others have made, and completes it by a call of its own choice.
enum { per_thread = 12 };
static struct pair all_pairs[n_threads][per_thread];

static void complete(MPI_Request *requests, int n, int how) {
    int indices[2 * per_thread];
    switch (how) {
        case 0:
            OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
            break;
        case 1:
            for (int done = 0, some; done < n; done += some)
                OK(MPI_Waitsome(n, requests, &some, indices, MPI_STATUSES_IGNORE));
            break;
        case 2:
            for (int i = 0; i < n; ++i) OK(MPI_Waitany(n, requests, indices, MPI_STATUS_IGNORE));
            break;
        default:
            for (int flag = 0; !flag;) {
                OK(MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE));
                if (!flag) usleep(50);
            }
    }
}

static void *run_array(void *argument) {
    const int me = (int)(uintptr_t)argument;
    struct pair *const mine = all_pairs[me];
    MPI_Request requests[2 * per_thread];
    own_thread(me + 1);
    for (int i = 0; i < per_thread; ++i) memcpy(&requests[2 * i], mine[i].request, sizeof mine[i].request);
    for (int epoch = 1; epoch <= 30; ++epoch) {
        for (int i = 0; i < per_thread; ++i) fill_pair(&mine[i], pair_key(epoch, world_rank, me * per_thread + i));
        OK(MPI_Startall(2 * per_thread, requests));
        for (int i = 0; i < per_thread; ++i) ready_all(mine[i].request[0], pair_sends, shuffled);
        complete(requests, 2 * per_thread, (me + epoch) % 4);
        for (int i = 0; i < per_thread; ++i) check_pair(&mine[i], pair_key(epoch, mine[i].from, me * per_thread + i));
    }
    for (int i = 0; i < per_thread; ++i) free_pair(&mine[i]);
    return NULL;
}

static void arrays_of_their_own(void) {
    for (int i = 0; i < per_thread; ++i)
        for (int t = 0; t < n_threads; ++t) {
            make_send(&all_pairs[t][i], right_rank, i % 2, MPI_COMM_WORLD);
            make_receive(&all_pairs[t][i], left_rank, i % 2, MPI_COMM_WORLD);
        }
    on_all_threads(run_array);
}

// Every thread asks for its own partitions while the first one waits for the whole. What has arrived stays so, and is
// brought once: what the thread then writes there stays, too.
enum { written = 0x5e };

static void *ask_and_write(void *argument) {
    const int me = (int)(uintptr_t)argument;
    int seen[partitions] = {0}, missing = partitions / n_threads;
    pthread_barrier_wait(&gate);
    UNTIL(missing == 0) {
        for (int p = me; p < partitions; p += n_threads) {
            int flag = 0;
            OK(MPI_Parrived(both[1], p, &flag));
            CHECK(flag || !seen[p]);
            if (!flag) usleep(50);
            if (!flag || seen[p]) continue;
            seen[p] = 1;
            --missing;
            check_partition(&in, &out, mix_key(now, (uint64_t)left_rank), p);
            memset((int *)in.buffer + p * count, written, count * sizeof(int));
        }
    }
    return NULL;
}

static void asked_for_meanwhile(void) {
    make_side(&out, MPI_INT, partitions, count);
    make_side(&in, MPI_INT, partitions, count);
    CHECK(pthread_barrier_init(&gate, NULL, n_threads + 1) == 0);
    OK(MPI_Psend_init(out.buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
    OK(MPI_Precv_init(in.buffer, partitions, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        pthread_t threads[n_threads];
        now = mix_key(seed, epoch + 4000);
        fill_side(&out, mix_key(now, (uint64_t)world_rank));
        fill_side(&in, now);
        OK(MPI_Startall(2, both));
        for (uintptr_t i = 0; i < n_threads; ++i)
            CHECK(pthread_create(&threads[i], NULL, ask_and_write, (void *)i) == 0);
        if (epoch % 2 == 0) OK(MPI_Pready_range(0, partitions - 1, both[0]));  // or while they ask
        pthread_barrier_wait(&gate);
        if (epoch % 2 == 1) OK(MPI_Pready_range(0, partitions - 1, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n_threads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
        for (size_t i = 0; i < partitions * count * sizeof(int); ++i) CHECK(((char *)in.buffer)[i] == written);
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
    pthread_barrier_destroy(&gate);
}

// Each thread makes hundreds of requests on a communicator of its own, all with few tags, and frees some of them before
// they were started, as its partner does; all at once.
static MPI_Comm comms[n_threads];

static void *hundreds(void *argument) {
    enum { n = 400 };
    const int me = (int)(uintptr_t)argument;
    struct pair *const pairs = calloc(n, sizeof *pairs);
    int *const order = malloc(n * sizeof *order);
    own_thread(me + 1);
    for (int i = 0; i < n; ++i) make_send(&pairs[i], right_rank, i % 3, comms[me]);
    for (int i = 0; i < n; ++i) make_receive(&pairs[i], left_rank, i % 3, comms[me]);
    for (int side = 0; side < 2; ++side) {
        shuffle(order, n);
        for (int i = 0; i < n; ++i)
            if (mix_key(seed + (uint64_t)me, (uint64_t)order[i]) % 4 == 0)
                OK(MPI_Request_free(&pairs[order[i]].request[side]));
    }
    for (int epoch = 1; epoch <= 2; ++epoch) run_pairs(pairs, n, epoch);
    shuffle(order, n);
    for (int i = 0; i < n; ++i) free_pair(&pairs[order[i]]);
    free(pairs);
    free(order);
    return NULL;
}

static void on_communicators_of_their_own(void *(*body)(void *)) {
    for (int i = 0; i < n_threads; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    on_all_threads(body);
    for (int i = 0; i < n_threads; ++i) OK(MPI_Comm_free(&comms[i]));
}

static void order_on_each_communicator(void) { on_communicators_of_their_own(hundreds); }

// Each thread makes communicators out of one of its own, by every constructor, all at once.
static void *make_communicators(void *argument) {
    const int me = (int)(uintptr_t)argument;
    own_thread(me + 1);
    for (int i = 0; i < n_constructors; ++i) {
        struct pair pair;
        int to, from;
        if (constructors[i].ranks > world_size || constructors[i].process_wide) continue;
        MPI_Comm made = constructors[i].make(comms[me]);
        leave_out(&pair);
        if (partners(made, &to, &from)) {
            make_send(&pair, to, tag, made);
            make_receive(&pair, from, tag, made);
        }
        for (int epoch = 1; epoch <= 3; ++epoch) run_pairs(&pair, 1, 10 * me + epoch);
        if (made != MPI_COMM_NULL) OK(MPI_Comm_free(&made));
        free_pair(&pair);
    }
    return NULL;
}

static void constructors_at_once(void) {
    // Once by one thread: Open MPI 4.1 loads what it needs for topologies then, and not in a way for threads.
    for (int i = 0; i < n_constructors; ++i) {
        if (constructors[i].ranks > world_size || constructors[i].process_wide) continue;
        MPI_Comm made = constructors[i].make(MPI_COMM_WORLD);
        if (made != MPI_COMM_NULL) OK(MPI_Comm_free(&made));
    }
    on_communicators_of_their_own(make_communicators);
}

// Threads ask what has arrived while the sender changes its mind: frees its request unstarted, and makes another.
static void *ask(void *argument) {
    const int me = (int)(uintptr_t)argument;
    for (int j = 0; j < 8; ++j) {
        int flag = 0;
        UNTIL(flag) {
            OK(MPI_Parrived(both[1], (j + me) % 8, &flag));
            if (!flag) usleep(50);
        }
        check_partition(&in, &out, mix_key(now, (uint64_t)left_rank), (j + me) % 8);
    }
    return NULL;
}

static void sender_changes_its_mind(void) {
    make_side(&out, MPI_INT, 8, count);
    make_side(&in, MPI_INT, 8, count);
    for (int round = 0; round < 15; ++round) {
        pthread_t threads[n_threads];
        now = mix_key(seed, (uint64_t)round + 3000);
        fill_side(&out, mix_key(now, (uint64_t)world_rank));
        fill_side(&in, now);
        OK(MPI_Precv_init(in.buffer, 8, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
        OK(MPI_Start(&both[1]));
        for (uintptr_t i = 0; i < n_threads; ++i) CHECK(pthread_create(&threads[i], NULL, ask, (void *)i) == 0);
        for (int again = 0;; ++again) {
            char path[16] = "unmatched";
            OK(MPI_Psend_init(out.buffer, 8 >> again, count << again, MPI_INT, right_rank, tag, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &both[0]));
            UNTIL(strcmp(path, "unmatched") != 0) OK(MPIX_Request_path(both[0], path, sizeof path));
            if (again == 2) break;
            OK(MPI_Request_free(&both[0]));
        }
        OK(MPI_Start(&both[0]));
        OK(MPI_Pready_range(0, 1, both[0]));
        for (int i = 0; i < n_threads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check_received(&in, now, &out, mix_key(now, (uint64_t)left_rank));
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
    free_side(&out);
    free_side(&in);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 13: threads mark distinct partitions, and ask for them", 1, distinct_partitions},
        {"rule 13: all threads ask for all partitions", 1, everybody_asks_for_everything},
        {"rule 13: one thread waits while others mark partitions", 1, waited_for_meanwhile},
        {"rule 13: one thread waits while others ask", 1, asked_for_meanwhile},
        {"threads with requests of their own", 1, requests_of_their_own},
        {"threads with arrays of requests of their own", 1, arrays_of_their_own},
        {"threads with communicators of their own: init order, frees", 1, order_on_each_communicator},
        {"threads with communicators of their own: constructors", 1, constructors_at_once},
        {"threads ask while the sender changes its mind", 1, sender_changes_its_mind},
    };
    const char *const name = getenv("MPIX_TESTS_THREADS");
    if (name == NULL) return RUN_CASES(argc, argv, MPI_THREAD_MULTIPLE, cases);
    const int level = strcmp(name, "serialized") == 0 ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;
    return run_cases(argc, argv, level, cases, 2);
}
