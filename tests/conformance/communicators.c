// SPDX-License-Identifier: BSD-3-Clause
//
// Rule 1, communicators: each is a world of its own, whichever constructor made it, and whatever else its members have
// made; its making costs no message of ours, and its user's messages and ours never meet.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/constructors.h"
#include "tests/conformance/pairs.h"

enum { tag = 9 };

static void for_each_constructor(void (*test)(const struct constructor *)) {
    for (int i = 0; i < n_constructors; ++i) {
        if (constructors[i].ranks > world_size) continue;
        subject = constructors[i].name;
        test(&constructors[i]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void free_if(MPI_Comm *comm) {
    if (*comm != MPI_COMM_NULL) OK(MPI_Comm_free(comm));
}

// Pair i on communicator i, all with one tag; the init calls of the two sides come in opposite orders.
static void make_pairs(struct pair *pairs, const MPI_Comm *comms, int n) {
    int to, from;
    for (int i = 0; i < n; ++i) leave_out(&pairs[i]);
    for (int i = 0; i < n; ++i)
        if (partners(comms[i], &to, &from)) make_send(&pairs[i], to, tag, comms[i]);
    for (int i = n - 1; i >= 0; --i)
        if (partners(comms[i], &to, &from)) make_receive(&pairs[i], from, tag, comms[i]);
}

// ---- what one constructor makes ------------------------------------------------------------------------

// Communicators of the same members, made by the same call of the same parent; also after one has been freed, with its
// requests still in use, and made anew.
static void made_alike(const struct constructor *c) {
    enum { n = 3 };
    static struct pair pairs[n + 1];
    MPI_Comm comms[n + 1] = {MPI_COMM_WORLD}, *const made = comms + 1;
    for (int i = 0; i < n; ++i) made[i] = c->make(MPI_COMM_WORLD);
    for (int round = 0; round < 3; ++round) {
        make_pairs(pairs, comms, n + 1);
        run_pairs(pairs, n + 1, 1);
        const int again = round % n;
        free_if(&made[again]);
        for (int epoch = 2; epoch <= 3; ++epoch) run_pairs(pairs, n + 1, epoch);
        made[again] = c->make(MPI_COMM_WORLD);
        run_pairs(pairs, n + 1, 4);
        for (int i = 0; i <= n; ++i) free_pair(&pairs[i]);
    }
    for (int i = 0; i < n; ++i) free_if(&made[i]);
}

static void all_made_alike(void) { for_each_constructor(made_alike); }

// The user's own wildcard receives and probes see nothing of ours, nor do we take messages of theirs, whatever their
// tag.
static void nothing_to_see(MPI_Comm comm) {
    for (int i = 0; i < 10; ++i) {
        int flag = -1;
        MPI_Message message;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
}

static void user_traffic_on(MPI_Comm comm) {
    static struct pair p;
    int to = MPI_PROC_NULL, from = MPI_PROC_NULL, word = -1;
    const int mine = partners(comm, &to, &from), token = 1000 + world_rank;
    const int wanted = mine ? 1000 + world_rank_of(comm, from) : -1;
    MPI_Request wild, sent;
    MPI_Status status;
    MPI_Message message;
    if (mine) {
        OK(MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &wild));
        make_send(&p, to, tag, comm);
        make_receive(&p, from, tag, comm);
        for (int epoch = 1; epoch <= 3; ++epoch) {
            int flag = -1;
            run_pairs(&p, 1, epoch);
            OK(MPI_Test(&wild, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag && word == -1);
            nothing_to_see(comm);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // The receive is active while messages with its very source and tag arrive, and is not disturbed.
    if (mine) {
        fill_pair(&p, pair_key(9, world_rank, 0));
        OK(MPI_Startall(2, p.request));
        OK(MPI_Send(&token, 1, MPI_INT, to, tag, comm));
        OK(MPI_Wait(&wild, &status));
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag && word == wanted);
        nothing_to_see(comm);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (mine) {
        OK(MPI_Isend(&token, 1, MPI_INT, to, tag, comm, &sent));
        ready_all(p.request[0], pair_sends, shuffled);
        OK(MPI_Waitall(2, p.request, MPI_STATUSES_IGNORE));
        check_pair(&p, pair_key(9, p.from, 0));
        word = -1;
        OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status));
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag);
        OK(MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        CHECK(word == wanted);
        OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        nothing_to_see(comm);
        free_pair(&p);
    }
}

static void user_traffic(const struct constructor *c) {
    MPI_Comm comm = c->make(MPI_COMM_WORLD);
    user_traffic_on(comm);
    free_if(&comm);
}

static void all_user_traffic(void) {
    user_traffic_on(MPI_COMM_WORLD);
    for_each_constructor(user_traffic);
}

// ---- no message at construction ------------------------------------------------------------------------

// This thread's calls of the MPI library that send something, those by mpix among them: it is linked against these.
static _Thread_local int sending_calls, duplicates;
#define COUNTED(counter, name, types, ...)                           \
    int name types {                                                 \
        static int(*next) types;                                     \
        if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, #name); \
        ++counter;                                                   \
        return next(__VA_ARGS__);                                    \
    }
COUNTED(sending_calls, PMPI_Send, (const void *b, int n, MPI_Datatype d, int to, int t, MPI_Comm c), b, n, d, to, t, c)
COUNTED(sending_calls, PMPI_Isend, (const void *b, int n, MPI_Datatype d, int to, int t, MPI_Comm c, MPI_Request *r), b,
        n, d, to, t, c, r)
COUNTED(sending_calls, PMPI_Bcast, (void *b, int n, MPI_Datatype d, int from, MPI_Comm c), b, n, d, from, c)
COUNTED(sending_calls, PMPI_Allreduce, (const void *b, void *r, int n, MPI_Datatype d, MPI_Op o, MPI_Comm c), b, r, n,
        d, o, c)
COUNTED(sending_calls, PMPI_Allgather,
        (const void *b, int n, MPI_Datatype d, void *r, int m, MPI_Datatype e, MPI_Comm c), b, n, d, r, m, e, c)
COUNTED(sending_calls, PMPI_Barrier, (MPI_Comm c), c)
COUNTED(sending_calls, PMPI_Ibarrier, (MPI_Comm c, MPI_Request *r), c, r)
COUNTED(duplicates, PMPI_Comm_dup, (MPI_Comm c, MPI_Comm *made), c, made)

static void no_message(const struct constructor *c) {
    const int allowed = strncmp(c->name, "MPI_Comm_dup", 12) == 0;
    sending_calls = duplicates = 0;
    MPI_Comm comm = c->make(MPI_COMM_WORLD);
    CHECK(sending_calls == 0 && duplicates <= allowed);
    free_if(&comm);
    CHECK(sending_calls == 0 && duplicates <= allowed);
}

static void no_messages(void) {
    for_each_constructor(no_message);
    sending_calls = 0;
    PMPI_Barrier(MPI_COMM_SELF);
    CHECK(sending_calls == 1);  // the counters count
}

// ---- what several constructors make --------------------------------------------------------------------

static void all_at_once(void) {
    enum { most = 40 };
    static struct pair pairs[most];
    MPI_Comm comms[most] = {MPI_COMM_SELF, MPI_COMM_WORLD};
    int n = 2;
    CHECK(n_constructors + n <= most);
    for (int i = 0; i < n_constructors; ++i)
        if (constructors[i].ranks <= world_size) comms[n++] = constructors[i].make(MPI_COMM_WORLD);
    make_pairs(pairs, comms, n);
    for (int epoch = 1; epoch <= 4; ++epoch) run_pairs(pairs, n, epoch);
    for (int i = 0; i < n; ++i) free_pair(&pairs[i]);
    for (int i = 2; i < n; ++i) free_if(&comms[i]);
}

// Two chains of communicators, each made from the one before by every constructor that leaves nobody out; only the last
// one lives.
static void chains(void) {
    static struct pair pairs[2];
    MPI_Comm ends[2];
    for (int chain = 0; chain < 2; ++chain) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &ends[chain]));
        for (int i = 0; i < n_constructors; ++i) {
            if (constructors[i].ranks > world_size) continue;
            MPI_Comm next = constructors[i].make(ends[chain]);
            int size = 0, inter = 1;
            if (next != MPI_COMM_NULL) {
                OK(MPI_Comm_test_inter(next, &inter));
                OK(MPI_Comm_size(next, &size));
            }
            int whole = size == world_size && !inter;
            OK(MPI_Allreduce(MPI_IN_PLACE, &whole, 1, MPI_INT, MPI_LAND, ends[chain]));
            free_if(whole ? &ends[chain] : &next);
            if (whole) ends[chain] = next;
        }
    }
    make_pairs(pairs, ends, 2);
    for (int epoch = 1; epoch <= 3; ++epoch) run_pairs(pairs, 2, epoch);
    for (int i = 0; i < 2; ++i) {
        free_pair(&pairs[i]);
        free_if(&ends[i]);
    }
}

static MPI_Group group_of(MPI_Comm comm) {
    MPI_Group group;
    OK(MPI_Comm_group(comm, &group));
    return group;
}

// The members have made different numbers of communicators among subsets, of the same parent, before they make one
// together.
static void different_histories(void) {
    static struct pair pairs[3];
    MPI_Comm parent, half, more, comms[3], bridge = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_split(parent, world_rank % 2, 0, &half));
    MPI_Group all = group_of(parent), mine = group_of(half), same;
    OK(MPI_Comm_free(&half));
    OK(MPI_Group_intersection(all, mine, &same));  // of the parent's group, see half_of in constructors.c
    for (int i = 0; i <= 2 * (world_rank % 2); ++i) {
        OK(MPI_Comm_create_group(parent, same, 3, &half));
        for (int k = 0; k <= world_rank % 2; ++k) {
            OK(MPI_Comm_dup(half, &more));
            OK(MPI_Comm_free(&more));
        }
        if (i < 2 * (world_rank % 2)) OK(MPI_Comm_free(&half));
    }
    OK(MPI_Comm_create_group(parent, all, 3, &comms[0]));
    OK(MPI_Comm_create_group(parent, all, 4, &comms[1]));
    comms[2] = MPI_COMM_NULL;
    if (world_size > 1) {
        OK(MPI_Intercomm_create(half, 0, parent, 1 - world_rank % 2, 5, &bridge));
        OK(MPI_Intercomm_merge(bridge, world_rank % 2, &comms[2]));
        OK(MPI_Comm_free(&bridge));
    }
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&parent));
    make_pairs(pairs, comms, 3);
    for (int epoch = 1; epoch <= 3; ++epoch) run_pairs(pairs, 3, epoch);
    for (int i = 0; i < 3; ++i) free_pair(&pairs[i]);
    for (int i = 0; i < 3; ++i) free_if(&comms[i]);
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&same));
}

// Calls that the library refuses, by one member only, are as if they had never been.
static void refused_calls(void) {
    static struct pair pairs[4];
    MPI_Comm parent, comms[4] = {MPI_COMM_WORLD}, none = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    MPI_Group all = group_of(parent);
    if (world_rank == 0) {
        CHECK(MPI_Comm_split(parent, 1, 0, NULL) != MPI_SUCCESS);
        CHECK(MPI_Comm_dup(parent, NULL) != MPI_SUCCESS);
        CHECK(MPI_Comm_create(parent, MPI_GROUP_NULL, &none) != MPI_SUCCESS);
        MPI_Comm_create_group(parent, MPI_GROUP_NULL, 3, &none);  // which Open MPI takes for an empty one
        CHECK(none == MPI_COMM_NULL);
    }
    OK(MPI_Comm_split(parent, 1, 0, &comms[1]));
    OK(MPI_Comm_dup(parent, &comms[2]));
    OK(MPI_Comm_create_group(parent, all, 3, &comms[3]));
    // What may not be freed is still there.
    MPI_Comm world = MPI_COMM_WORLD;
    CHECK(MPI_Comm_free(&world) != MPI_SUCCESS);
    make_pairs(pairs, comms, 4);
    for (int epoch = 1; epoch <= 3; ++epoch) run_pairs(pairs, 4, epoch);
    for (int i = 0; i < 4; ++i) free_pair(&pairs[i]);
    for (int i = 1; i < 4; ++i) OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Group_free(&all));
}

// Duplicates that are still in the making while others are made, and that are waited for in another order.
static void duplicates_of(const MPI_Comm parents[3]) {
    enum { n = 4 };
    static struct pair pairs[n];
    MPI_Comm comms[n];
    MPI_Request requests[2];
    for (int i = 0; i < 2; ++i) OK(MPI_Comm_idup(parents[i], &comms[i], &requests[i]));
    OK(MPI_Comm_dup(parents[2], &comms[2]));
    OK(MPI_Comm_split(comms[2], 0, world_rank, &comms[3]));
    for (int i = 0; i < 2; ++i) OK(MPI_Wait(&requests[world_rank % 2 ? i : 1 - i], MPI_STATUS_IGNORE));
    make_pairs(pairs, comms, n);
    for (int epoch = 1; epoch <= 3; ++epoch) run_pairs(pairs, n, epoch);
    for (int i = 0; i < n; ++i) {
        free_pair(&pairs[i]);
        OK(MPI_Comm_free(&comms[i]));
    }
}

static void pending_duplicates(void) {
    MPI_Comm parents[3];
    for (int i = 0; i < 3; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]));
    duplicates_of(parents);
    for (int i = 0; i < 3; ++i) OK(MPI_Comm_free(&parents[i]));
#ifndef OPEN_MPI
    // Open MPI 4.1.4 itself, also without mpix, now and then gives the members different context ids when two
    // duplicates of one communicator are in the making and some members make progress between the calls.
    const MPI_Comm same[3] = {MPI_COMM_WORLD, MPI_COMM_WORLD, MPI_COMM_WORLD};
    duplicates_of(same);
#endif
}

// ---- intercommunicators --------------------------------------------------------------------------------

// Ranks are those of the other side: everybody exchanges with everybody there. The sides differ in size on three ranks.
static void across_an_intercommunicator(void) {
    MPI_Comm half, bridge;
    const int first = (world_size + 1) / 2, second_half = world_rank >= first;
    OK(MPI_Comm_split(MPI_COMM_WORLD, second_half, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, second_half ? 0 : first, 77, &bridge));
    OK(MPI_Comm_set_errhandler(bridge, MPI_ERRORS_RETURN));
    const int remote = second_half ? first : world_size - first, remote_first = second_half ? 0 : first;
    struct pair *const pairs = calloc((size_t)remote, sizeof *pairs);
    MPI_Request none = MPI_REQUEST_NULL;
    int class = 0;
    MPI_Error_class(MPI_Psend_init(pairs, 1, 1, MPI_BYTE, remote, tag, bridge, MPI_INFO_NULL, &none), &class);
    CHECK(class == MPI_ERR_RANK && none == MPI_REQUEST_NULL);
    for (int r = remote - 1; r >= 0; --r) make_receive(&pairs[r], r, tag, bridge);
    for (int r = 0; r < remote; ++r) make_send(&pairs[r], r, tag, bridge);
    for (int epoch = 1; epoch <= 4; ++epoch) {
        for (int r = 0; r < remote; ++r) fill_pair(&pairs[r], pair_key(epoch, world_rank, remote_first + r));
        for (int r = 0; r < remote; ++r) OK(MPI_Startall(2, pairs[r].request));
        for (int r = 0; r < remote; ++r) ready_all(pairs[r].request[0], pair_sends, shuffled);
        for (int r = 0; r < remote; ++r) {
            MPI_Status statuses[2];
            OK(MPI_Waitall(2, pairs[r].request, statuses));
            CHECK(statuses[1].MPI_SOURCE == r && statuses[1].MPI_TAG == tag);
        }
        for (int r = 0; r < remote; ++r) check_pair(&pairs[r], pair_key(epoch, remote_first + r, world_rank));
    }
    for (int r = 0; r < remote; ++r) free_pair(&pairs[r]);
    free(pairs);
    OK(MPI_Comm_free(&bridge));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 1: each communicator by itself, from every constructor", 1, all_made_alike},
        {"rule 1: communicators from all constructors at once", 1, all_at_once},
        {"rule 1: communicators made from communicators", 1, chains},
        {"rule 1: members with different histories", 1, different_histories},
        {"rule 1: constructors that the library refuses", 1, refused_calls},
        {"rule 1: duplicates in the making", 1, pending_duplicates},
        {"rule 1: intercommunicators", 2, across_an_intercommunicator},
        {"rule 1: no message when a communicator is made", 1, no_messages},
        {"rule 1: the user's wildcards and messages are left alone", 1, all_user_traffic},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
