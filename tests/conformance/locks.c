// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 13: "without a lock". Every way to take one passes through this program, which counts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "tests/conformance/harness.h"

static _Thread_local int locks;

#define COUNTED(name, type)                                          \
    int name(type object) {                                          \
        static int (*next)(type);                                    \
        if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, #name); \
        ++locks;                                                     \
        return next(object);                                         \
    }
COUNTED(pthread_mutex_lock, pthread_mutex_t *)
COUNTED(pthread_mutex_trylock, pthread_mutex_t *)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t *)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t *)
COUNTED(pthread_spin_lock, pthread_spinlock_t *)
COUNTED(pthread_cond_signal, pthread_cond_t *)
COUNTED(pthread_cond_broadcast, pthread_cond_t *)
COUNTED(sem_wait, sem_t *)

enum { tag = 2, n_threads = 4, partitions = 64, count = 16, epochs = 30 };

static struct side out, in;
static MPI_Request both[2];

static void *ready_and_ask(void *argument) {
    const int me = (int)(uintptr_t)argument;
    locks = 0;
    for (int p = me; p < partitions / 2; p += n_threads) OK(MPI_Pready(p, both[0]));
    OK(MPI_Pready_range(partitions / 2 + me * 8, partitions / 2 + me * 8 + 7, both[0]));
    CHECK(locks == 0);
    for (int p = me; p < partitions; p += n_threads) {
        int flag = 0;
        UNTIL(flag) {
            OK(MPI_Parrived(both[1], p, &flag));  // while the answer is no, it makes progress, with locks
            if (!flag) usleep(50);
        }
        locks = 0;
        OK(MPI_Parrived(both[1], p, &flag));
        CHECK(flag && locks == 0);
    }
    return NULL;
}

// Partitions that need not be deferred: the receiver is known to have started this epoch, or the one before, for which
// the landing has room besides.
static void no_lock(void) {
    make_side(&out, MPI_INT, partitions, count);
    make_side(&in, MPI_INT, partitions, count);
    OK(MPI_Psend_init(out.buffer, partitions, count, MPI_INT, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &both[0]));
    OK(MPI_Precv_init(in.buffer, partitions, count, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        pthread_t threads[n_threads];
        const uint64_t now = mix_key(seed, epoch);
        fill_side(&out, mix_key(now, (uint64_t)world_rank));
        fill_side(&in, now);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Startall(2, both));
        if (epoch % 2) OK(MPIX_Pbuf_prepare(both[0]));
        for (uintptr_t i = 0; i < n_threads; ++i)
            CHECK(pthread_create(&threads[i], NULL, ready_and_ask, (void *)i) == 0);
        for (int i = 0; i < n_threads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
        locks = 0;
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        CHECK(locks > 0);  // the counters count
        check_received(&in, now, &out, mix_key(now, (uint64_t)left_rank));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    free_side(&out);
    free_side(&in);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 13: Pready and Parrived take no lock", 1, no_lock},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_MULTIPLE, cases);
}
