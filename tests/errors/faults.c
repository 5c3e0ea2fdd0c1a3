// SPDX-License-Identifier: BSD-3-Clause
//
// World rank 0 dies, is stopped, or never starts. The others get an error or the stall report, never a hang and
// never wrong bytes. One case a run: `faults <case>`.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <mpix/halo.h>
#include <mpix/halo_gpu.h>

#include "tests/errors/expect.h"

enum { tag = 33, parts = 8, count = 50, early_parts = 5 };

#ifdef MPIX_ERR_PROC_FAILED
enum { process_failed = MPIX_ERR_PROC_FAILED };
#else
enum { process_failed = MPI_ERR_OTHER };
#endif
static const char ended[] = "the process of rank 0 (world rank 0) has ended";

static void tell(int rank) { OK(MPI_Send(NULL, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD)); }
static void hear(int rank) { OK(MPI_Recv(NULL, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

static void die(void) {
    raise(SIGKILL);
    abort();
}

static int rank_0_is_dead;

// mpix ends in a delete callback of MPI_COMM_SELF. What the MPI library's MPI_Finalize does after those without one of
// the processes is its affair: MPICH's waits for all of them for ever, and Open MPI's does so now and then.
static int leave_without_rank_0(MPI_Comm self, int key, void *value, void *extra) {
    (void)self, (void)key, (void)value, (void)extra;
    if (!rank_0_is_dead) return MPI_SUCCESS;
    printf("world rank %d finalized\n", world_rank);
    fflush(stdout);
    _exit(0);
}

// The last to be set is the first to be called: this callback is there before mpix's.
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*library)(int *, char ***, int, int *), key;
    *(void **)&library = dlsym(RTLD_NEXT, "PMPI_Init_thread");
    CHECK(library != NULL);
    const int code = library(argc, argv, required, provided);
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_without_rank_0, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
    OK(MPI_Comm_free_keyval(&key));
    return code;
}

// A case whose rank 0 has died ends here: what the other ranks could still wait for together is not to be had.
static void come_through(void) {
    printf("world rank %d came through\n", world_rank);
    fflush(stdout);
    rank_0_is_dead = 1;
    MPI_Finalize();
    CHECK(!"MPI_Finalize calls the callbacks first");
}

// ---- pairs of rank 0 and each other rank ------------------------------------------------------------------

struct pair {
    struct side out, in;
    MPI_Request send, receive;
};

static void make_pair(struct pair *p, int peer) {
    make_side(&p->out, MPI_INT, parts, count);
    make_side(&p->in, MPI_INT, parts, count);
    OK(MPI_Psend_init(p->out.buffer, parts, count, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &p->send));
    OK(MPI_Precv_init(p->in.buffer, parts, count, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &p->receive));
}

static uint64_t key_of(int from, int to, int epoch) {
    return (uint64_t)from * 1000003u + (uint64_t)to * 1009u + (uint64_t)epoch;
}

static void start_pair(struct pair *p, int peer, int epoch) {
    fill_side(&p->out, key_of(world_rank, peer, epoch));
    fill_side(&p->in, (uint64_t)epoch + 77);
    OK(MPI_Start(&p->receive));
    OK(MPI_Start(&p->send));
}

// What the peer has sent, as it is in its memory; to compare with.
static struct side expected(const struct pair *p, int peer, int epoch) {
    struct side s;
    make_side(&s, MPI_INT, p->in.partitions, p->in.count);
    fill_side(&s, key_of(peer, world_rank, epoch));
    return s;
}

// The stall time of some runs is so short that a busy machine may need longer.
static void complete(MPI_Request *request) {
    int code = MPI_ERR_PENDING;
    UNTIL(code == MPI_SUCCESS) {
        code = MPI_Wait(request, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS || code == MPI_ERR_PENDING);
    }
}

static void whole_epoch(struct pair *p, int peer, int epoch) {
    start_pair(p, peer, epoch);
    ready_all(p->send, parts, shuffled);
    complete(&p->send);
    complete(&p->receive);
    struct side s = expected(p, peer, epoch);
    check_received(&p->in, (uint64_t)epoch + 77, &s, key_of(peer, world_rank, epoch));
    free_side(&s);
}

// ---- the ways to learn of it --------------------------------------------------------------------------------

static void learn(int way, MPI_Request *request) {
    MPI_Status status;
    int flag = 0, index = -1, n = 0, indices[1], code = MPI_SUCCESS;
    switch (way % 9) {
        case 0:
            EXPECT(process_failed, ended, MPI_Wait(request, &status));
            break;
        case 1:
            UNTIL(flag) code = MPI_Test(request, &flag, &status);
            expect_error(__FILE__, __LINE__, "MPI_Test()", code, process_failed, ended);
            break;
        case 2:
            EXPECT(MPI_ERR_IN_STATUS, ended, MPI_Waitall(1, request, &status));
            CHECK(status.MPI_ERROR == process_failed);
            break;
        case 3:
            UNTIL(n == 1) code = MPI_Testsome(1, request, &n, indices, &status);
            expect_error(__FILE__, __LINE__, "MPI_Testsome()", code, MPI_ERR_IN_STATUS, ended);
            CHECK(status.MPI_ERROR == process_failed);
            break;
        case 4:
            EXPECT(process_failed, ended, MPI_Waitany(1, request, &index, &status));
            CHECK(index == 0);
            break;
        case 5:
            UNTIL(flag) code = MPI_Testall(1, request, &flag, &status);
            expect_error(__FILE__, __LINE__, "MPI_Testall()", code, MPI_ERR_IN_STATUS, ended);
            break;
        case 6:
            EXPECT(MPI_ERR_IN_STATUS, ended, MPI_Waitsome(1, request, &n, indices, &status));
            break;
        case 7:
            UNTIL(flag) code = MPI_Testany(1, request, &index, &flag, &status);
            expect_error(__FILE__, __LINE__, "MPI_Testany()", code, process_failed, ended);
            break;
        default:
            // A loop of Parrived alone, on a partition that never comes.
            UNTIL(flag) code = MPI_Parrived(*request, parts - 1, &flag);
            expect_error(__FILE__, __LINE__, "MPI_Parrived()", code, process_failed, ended);
            EXPECT(process_failed, ended, MPI_Wait(request, &status));
    }
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));  // it is inactive now
}

// ---- cases -------------------------------------------------------------------------------------------------

static void dies_mid_epoch(void) {
    struct pair *pairs = calloc((size_t)world_size, sizeof *pairs);
    const int last = 4;
    for (int peer = 0; peer < world_size; ++peer)
        if (peer != world_rank && (world_rank == 0 || peer == 0)) make_pair(&pairs[peer], peer);
    if (world_rank == 0) {
        for (int epoch = 1; epoch < last; ++epoch)
            for (int peer = 1; peer < world_size; ++peer) whole_epoch(&pairs[peer], peer, epoch);
        for (int peer = 1; peer < world_size; ++peer) {
            start_pair(&pairs[peer], peer, last);
            OK(MPI_Pready_range(0, early_parts - 1, pairs[peer].send));
        }
        for (int peer = 1; peer < world_size; ++peer) hear(peer);
        die();
    }
    struct pair *const p = &pairs[0];
    for (int epoch = 1; epoch < last; ++epoch) whole_epoch(p, 0, epoch);
    start_pair(p, 0, last);
    ready_all(p->send, parts, shuffled);
    struct side s = expected(p, 0, last);
    for (int j = 0; j < early_parts; ++j) {
        int flag = 0;
        UNTIL(flag) OK(MPI_Parrived(p->receive, j, &flag));
        check_partition(&p->in, &s, key_of(0, world_rank, last), j);
    }
    tell(0);
    const double start = MPI_Wtime();
    learn(world_rank - 1, &p->receive);
    printf("learnt of it after %.2f s\n", MPI_Wtime() - start);
    // What had arrived is still there.
    for (int j = 0; j < early_parts; ++j) check_partition(&p->in, &s, key_of(0, world_rank, last), j);
    // All its partitions are ready, and the receiver had started: the send may complete or fail, but it ends.
    MPI_Wait(&p->send, MPI_STATUS_IGNORE);
    // And so it goes on, for both.
    OK(MPI_Start(&p->receive));
    learn(world_rank, &p->receive);
    for (int epoch = 0; epoch < 3; ++epoch) {  // there is room for some epochs
        OK(MPI_Start(&p->send));
        ready_all(p->send, parts, shuffled);
        if (epoch == 2)
            EXPECT(process_failed, ended, MPI_Wait(&p->send, MPI_STATUS_IGNORE));
        else
            MPI_Wait(&p->send, MPI_STATUS_IGNORE);
    }
    OK(MPI_Request_free(&p->send));
    OK(MPI_Request_free(&p->receive));
    come_through();
}

// Rank 2 hears of the death of rank 0 in a call that also waits for rank 1, which waits for rank 2 to have heard of it.
static void dies_beside_another(void) {
    struct pair dead, alive;
    if (world_rank != 1) {
        make_pair(&dead, 2 - world_rank);
        whole_epoch(&dead, 2 - world_rank, 1);  // UCX may abort if a process dies while it connects to it
        start_pair(&dead, 2 - world_rank, 2);
        if (world_rank == 0) {
            hear(2);
            die();
        }
    }
    const int peer = 3 - world_rank;
    make_pair(&alive, peer);
    start_pair(&alive, peer, 1);
    if (world_rank == 2) {
        MPI_Status statuses[2];
        tell(0);
        EXPECT(MPI_ERR_IN_STATUS, ended, MPI_Waitall(2, (MPI_Request[]){alive.receive, dead.receive}, statuses));
        CHECK(statuses[0].MPI_ERROR == MPI_ERR_PENDING && statuses[1].MPI_ERROR == process_failed);
        OK(MPI_Wait(&dead.receive, MPI_STATUS_IGNORE));  // it is inactive now
        ready_all(alive.send, parts, in_order);
    }
    OK(MPI_Wait(world_rank == 1 ? &alive.receive : &alive.send, MPI_STATUS_IGNORE));
    if (world_rank == 1) ready_all(alive.send, parts, in_order);
    OK(MPI_Wait(world_rank == 1 ? &alive.send : &alive.receive, MPI_STATUS_IGNORE));
    struct side s = expected(&alive, peer, 1);
    check_received(&alive.in, 1 + 77, &s, key_of(peer, world_rank, 1));
    come_through();
}

// Its requests are made, and known of, before those of the others; but it is dead before they look.
static void dies_unmet(void) {
    struct pair p;
    int process = getpid();
    if (world_rank == 0) {
        for (int peer = 1; peer < world_size; ++peer) {
            make_pair(&p, peer);
            start_pair(&p, peer, 1);
            ready_all(p.send, parts, in_order);
            OK(MPI_Send(&process, 1, MPI_INT, peer, 1, MPI_COMM_WORLD));
        }
        for (int peer = 1; peer < world_size; ++peer) hear(peer);
        die();
    }
    OK(MPI_Recv(&process, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    tell(0);
    UNTIL(kill(process, 0) != 0) usleep(1000);
    make_pair(&p, 0);
    start_pair(&p, 0, 1);
    ready_all(p.send, parts, in_order);
    learn(world_rank - 1, &p.receive);
    EXPECT(process_failed, ended, MPI_Wait(&p.send, MPI_STATUS_IGNORE));
    come_through();
}

// It dies before it has made its requests; and others are made after.
static void dies_unmatched(void) {
    if (world_rank == 0) {
        for (int peer = 1; peer < world_size; ++peer) hear(peer);
        die();
    }
    for (int round = 0; round < 2; ++round) {
        struct pair p;
        make_pair(&p, 0);
        start_pair(&p, 0, 1);
        ready_all(p.send, parts, in_order);
        if (round == 0) tell(0);
        learn(world_rank + round, &p.receive);
        EXPECT(process_failed, ended, MPI_Wait(&p.send, MPI_STATUS_IGNORE));
        OK(MPI_Start(&p.send));
        ready_all(p.send, parts, in_order);
        EXPECT(process_failed, ended, MPI_Wait(&p.send, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&p.send));
        OK(MPI_Request_free(&p.receive));
    }
    come_through();
}

// The pairs are set up, but it has started none of its requests.
static void dies_unstarted(void) {
    struct pair *pairs = calloc((size_t)world_size, sizeof *pairs);
    for (int peer = 0; peer < world_size; ++peer)
        if (peer != world_rank && (world_rank == 0 || peer == 0)) make_pair(&pairs[peer], peer);
    if (world_rank == 0) {
        for (int peer = 1; peer < world_size; ++peer) {
            char path[8] = "";
            UNTIL(strcmp(path, expected_path()) == 0) OK(MPIX_Request_path(pairs[peer].send, path, sizeof path));
            hear(peer);
        }
        die();
    }
    struct pair *const p = &pairs[0];
    start_pair(p, 0, 1);
    OK(MPI_Pready_range(0, 3, p->send));
    tell(0);
    learn(world_rank, &p->receive);
    int flag = 1;
    OK(MPI_Test(&p->send, &flag, MPI_STATUS_IGNORE));  // not all of it is ready
    CHECK(!flag);
    OK(MPI_Pready_range(4, parts - 1, p->send));
    EXPECT(process_failed, ended, MPI_Wait(&p->send, MPI_STATUS_IGNORE));
    // Those that it had not started are as if they had never been, and so are these.
    struct pair unstarted;
    make_pair(&unstarted, 0);
    OK(MPI_Request_free(&unstarted.send));
    OK(MPI_Request_free(&unstarted.receive));
    OK(MPI_Request_free(&p->send));
    OK(MPI_Request_free(&p->receive));
    come_through();
}

// All goes well, but rank 0 never comes to MPI_Finalize.
static void dies_before_finalize(void) {
    struct pair *pairs = calloc((size_t)world_size, sizeof *pairs);
    for (int peer = 0; peer < world_size; ++peer)
        if (peer != world_rank && (world_rank == 0 || peer == 0)) {
            make_pair(&pairs[peer], peer);
            whole_epoch(&pairs[peer], peer, 1);
        }
    if (world_rank == 0) die();
    come_through();
}

// Rank 0 dies between two steps of a ring, of which the others learn from the exchange. Its message never comes.
static void dies_in_a_ring(void) {
    enum { cells = 4, last = 3 };
    const int64_t extent[] = {(int64_t)cells * world_size};
    const MPIX_Halo_grid_options options = {.periodic = {1, 0, 0}};
    MPIX_Halo_grid grid;
    MPIX_Halo_field field;
    MPIX_Halo_stream_exchange x;
    int faces[MPIX_HALO_DIRECTIONS], code = MPI_SUCCESS;
    int64_t *const u = calloc(cells + 2, sizeof *u);
    OK(MPIX_Halo_radius_faces(1, faces));
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 1, extent, &options, &grid));
    OK(MPIX_Halo_field_init(u, MPI_INT64_T, faces, &field));
    OK(MPIX_Halo_stream_create(grid, 1, &field, NULL, &x));
    for (int step = 1; step <= last; ++step) {
        if (step == last && world_rank == 0) die();
        for (int i = 1; i <= cells; ++i) u[i] = step;
        u[0] = u[cells + 1] = -1;
        code = MPIX_Halo_stream_start(x, NULL);
        if (code == MPI_SUCCESS) code = MPIX_Halo_stream_finish(x, NULL);
        if (code != MPI_SUCCESS) break;
        CHECK(u[0] == step && u[cells + 1] == step);
    }
    expect_error(__FILE__, __LINE__, "MPIX_Halo_stream_finish()", code, process_failed, ended);
    EXPECT(MPI_ERR_REQUEST, "an earlier call has failed", MPIX_Halo_stream_check(x));
    OK(MPIX_Halo_stream_free(&x));  // not between start and finish any more
    come_through();
}

static char state_of(pid_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *const f = fopen(path, "r");
    CHECK(f != NULL);
    CHECK(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    const char *const end = strrchr(text, ')');
    CHECK(end != NULL);
    return end[2];
}

// Rank 0 stops in the middle of an epoch: a stall, and after it goes on all is well.
static void stopped(void) {
    struct pair p;
    long pid = (long)getpid();
    OK(MPI_Bcast(&pid, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    const int peer = 1 - world_rank;
    make_pair(&p, peer);
    for (int epoch = 1; epoch <= 3; ++epoch) whole_epoch(&p, peer, epoch);
    for (int epoch = 4; epoch <= 6; ++epoch) {
        start_pair(&p, peer, epoch);
        if (world_rank == 0) {
            OK(MPI_Pready_range(0, early_parts - 1, p.send));
            raise(SIGSTOP);
            OK(MPI_Pready_range(early_parts, parts - 1, p.send));
        } else {
            ready_all(p.send, parts, shuffled);
            UNTIL(state_of((pid_t)pid) == 'T') usleep(1000);
            EXPECT(MPI_ERR_PENDING, "3 of 8 partitions not arrived: 5-7", MPI_Wait(&p.receive, MPI_STATUS_IGNORE));
            CHECK(kill((pid_t)pid, SIGCONT) == 0);
        }
        complete(&p.send);
        complete(&p.receive);
        struct side s = expected(&p, peer, epoch);
        check_received(&p.in, (uint64_t)epoch + 77, &s, key_of(peer, world_rank, epoch));
        free_side(&s);
    }
    OK(MPI_Request_free(&p.send));
    OK(MPI_Request_free(&p.receive));
    free_side(&p.out);
    free_side(&p.in);
}

// The receiver has made its request, and that is all that it ever does.
static void never_starts(void) {
    static struct pair p;  // its buffers are in use to the end
    make_pair(&p, 1 - world_rank);
    if (world_rank == 1) {
        fill_side(&p.out, 5);
        OK(MPI_Start(&p.send));
        ready_all(p.send, parts, shuffled);
        for (int again = 0; again < 2; ++again)
            EXPECT(MPI_ERR_PENDING, "the receiver has not called MPI_Start", MPI_Wait(&p.send, MPI_STATUS_IGNORE));
    } else {
        fill_side(&p.in, 6);
        hear(1);
        struct side nothing;
        make_side(&nothing, MPI_INT, parts, count);
        fill_side(&nothing, 6);
        CHECK(memcmp(p.in.memory, nothing.memory, nothing.memory_bytes) == 0);
        free_side(&nothing);
    }
    if (world_rank == 1) tell(0);
    // Active still; MPI_Finalize must end nevertheless.
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"dies in an epoch", 2, dies_mid_epoch},
        {"dies beside another", 3, dies_beside_another},
        {"dies unmet", 2, dies_unmet},
        {"dies unmatched", 2, dies_unmatched},
        {"dies before it has started", 2, dies_unstarted},
        {"dies before MPI_Finalize", 2, dies_before_finalize},
        {"dies in a ring", 2, dies_in_a_ring},
        {"is stopped", 2, stopped},
        {"never starts", 2, never_starts},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
