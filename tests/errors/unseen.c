// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators whose making mpix has not seen, or that have members of another MPI_COMM_WORLD: refused, by their own
// error handler, with a way out; and so are those that are made from them.
#include <stdlib.h>

#include "tests/errors/expect.h"

enum { tag = 4 };

static int own_calls, world_calls;
static void on_own_error(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, ++own_calls; }
static void on_world_error(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, ++world_calls; }

static void expect_refused(MPI_Comm comm) {
    char data[4] = {0};
    MPI_Request r = MPI_REQUEST_NULL;
    EXPECT(MPI_ERR_COMM, "mpix did not see", MPI_Psend_init(data, 4, 1, MPI_BYTE, 0, tag, comm, MPI_INFO_NULL, &r));
    EXPECT(MPI_ERR_COMM, "MPI_Comm_dup", MPI_Precv_init(data, 2, 2, MPI_BYTE, 0, tag, comm, MPI_INFO_NULL, &r));
    CHECK(r == MPI_REQUEST_NULL);
}

// A message to oneself.
static void expect_good(MPI_Comm comm) {
    MPI_Request both[2];
    int rank, out[4], in[4];
    MPI_Comm_rank(comm, &rank);
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, rank, tag, comm, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, rank, tag, comm, MPI_INFO_NULL, &both[1]));
    for (int epoch = 1; epoch <= 3; ++epoch) {
        for (int i = 0; i < 4; ++i) {
            out[i] = epoch * 100 + i;
            in[i] = -1;
        }
        OK(MPI_Startall(2, both));
        OK(MPI_Pready_range(0, 3, both[0]));
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 4; ++i) CHECK(in[i] == epoch * 100 + i);
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
}

static void made_unseen(void) {
    MPI_Comm unseen, children[4];
    MPI_Errhandler own, world;
    MPI_Group all;
    const int dims[] = {world_size}, periods[] = {0};
    for (int round = 0; round < 3; ++round) {
        // The handle of a communicator that was known, perhaps.
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &unseen));
        expect_good(unseen);
        OK(MPI_Comm_free(&unseen));
        OK(PMPI_Comm_dup(MPI_COMM_WORLD, &unseen));
        OK(MPI_Comm_create_errhandler(on_own_error, &own));
        OK(MPI_Comm_create_errhandler(on_world_error, &world));
        OK(MPI_Comm_set_errhandler(unseen, own));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, world));
        own_calls = world_calls = 0;
        expect_refused(unseen);
        CHECK(own_calls == 2 && world_calls == 0);
        OK(MPI_Comm_group(unseen, &all));
        OK(MPI_Comm_dup(unseen, &children[0]));
        OK(MPI_Comm_split(unseen, 0, 0, &children[1]));
        OK(MPI_Comm_create_group(unseen, all, 2, &children[2]));
        OK(MPI_Cart_create(unseen, 1, dims, periods, 0, &children[3]));
        for (int i = 0; i < 4; ++i) {
            OK(MPI_Comm_set_errhandler(children[i], own));
            expect_refused(children[i]);
            OK(MPI_Comm_free(&children[i]));
        }
        CHECK(own_calls == 10 && world_calls == 0);
        OK(MPI_Group_free(&all));
        OK(PMPI_Comm_free(&unseen));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        OK(MPI_Errhandler_free(&own));
        OK(MPI_Errhandler_free(&world));
        expect_good(MPI_COMM_WORLD);
    }
}

// Debian's MPICH 4.0 can do none of the following.
#if defined(OPEN_MPI) || defined(MPI_ABI_VERSION) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40100000)
#define CAN_SPAWN
#endif

#ifdef CAN_SPAWN

// Of two members of one MPI_COMM_WORLD, and yet unseen.
static void accepted(void) {
    MPI_Comm between = MPI_COMM_NULL;
    char port[MPI_MAX_PORT_NAME];
    int opened = world_rank != 0 || MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS;
    OK(MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD));
#ifdef MPICH_VERSION  // 5.0 may have no room for the name of a port
    if (!opened) return;
#endif
    CHECK(opened);
    if (world_rank == 0) {
        OK(MPI_Send(port, sizeof port, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between));
        OK(MPI_Close_port(port));
    } else if (world_rank == 1) {
        OK(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between));
    }
    if (world_rank > 1) return;
    OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    expect_refused(between);
    OK(MPI_Comm_disconnect(&between));
}

static const char *program;

// All that processes of two MPI_COMM_WORLDs may make together.
static void with_another_world(MPI_Comm bridge, int spawned) {
    MPI_Comm merged, again, beyond, mine;
    OK(MPI_Comm_set_errhandler(bridge, MPI_ERRORS_RETURN));
    expect_refused(bridge);
    OK(MPI_Intercomm_merge(bridge, spawned, &merged));
    OK(MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN));
    expect_refused(merged);
    OK(MPI_Comm_dup(merged, &again));
    expect_refused(again);
    OK(MPI_Comm_split(merged, spawned, 0, &mine));  // of one world; its parent is unseen
    expect_refused(mine);
    OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, merged, spawned ? 0 : world_size, 8, &beyond));
    OK(MPI_Comm_set_errhandler(beyond, MPI_ERRORS_RETURN));
    expect_refused(beyond);
    OK(MPI_Comm_free(&beyond));
    OK(MPI_Comm_free(&mine));
    OK(MPI_Comm_free(&again));
    OK(MPI_Comm_free(&merged));
    expect_good(MPI_COMM_WORLD);
    OK(MPI_Comm_disconnect(&bridge));
}

static void spawned(void) {
    MPI_Comm bridge;
    char *child[] = {"child", NULL};
    OK(MPI_Comm_spawn(program, child, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &bridge, MPI_ERRCODES_IGNORE));
    with_another_world(bridge, 0);
}

static int run_child(void) {
    MPI_Comm parents;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Comm_get_parent(&parents));
    with_another_world(parents, 1);
    MPI_Finalize();
    return 0;
}

#endif

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 12: a communicator that was made unseen", 1, made_unseen},
#ifdef CAN_SPAWN
        {"rule 12: MPI_Comm_accept and MPI_Comm_connect", 2, accepted},
        {"rule 12: MPI_Comm_spawn", 1, spawned},
#endif
    };
#ifdef CAN_SPAWN
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "child") == 0) return run_child();
#endif
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
