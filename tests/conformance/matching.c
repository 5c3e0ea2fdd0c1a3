// SPDX-License-Identifier: BSD-3-Clause
//
// Rules 1, 8 and 10: which send meets which receive, what nobody else may notice of it, and requests that are
// freed before they were ever started.
#include <stdlib.h>

#include "tests/conformance/harness.h"

enum { tag = 9, length = 48 };

// A pair of requests in the ring, with buffers of its own.
struct pair {
    MPI_Request request[2];  // send to `to`, receive from `from`
    unsigned char out[length], in[length];
};

static void make_send(struct pair *p, int to, int t, MPI_Comm comm) {
    OK(MPI_Psend_init(p->out, 4, length / 4, MPI_BYTE, to, t, comm, MPI_INFO_NULL, &p->request[0]));
}

static void make_receive(struct pair *p, int from, int t, MPI_Comm comm) {
    OK(MPI_Precv_init(p->in, 3, length / 3, MPI_BYTE, from, t, comm, MPI_INFO_NULL, &p->request[1]));
}

static void fill(struct pair *p, uint64_t key) {
    random_bytes(p->out, length, key);
    random_bytes(p->in, length, ~key);
}

static void check(const struct pair *p, uint64_t key) {
    unsigned char wanted[length];
    random_bytes(wanted, length, key);
    for (int i = 0; i < length; ++i) CHECK(p->in[i] == wanted[i]);
}

static void free_both(struct pair *p) {
    OK(MPI_Request_free(&p->request[0]));
    OK(MPI_Request_free(&p->request[1]));
    CHECK(p->request[0] == MPI_REQUEST_NULL && p->request[1] == MPI_REQUEST_NULL);
}

static uint64_t key_of(int epoch, int rank, int which) {
    return mix_key(mix_key((uint64_t)epoch, (uint64_t)rank), (uint64_t)which);
}

// One epoch of n pairs, started and completed in any order; pair i's data must come from the left one's pair i.
static void run_epoch(struct pair *pairs, int n, int epoch, int from, int me) {
    int *const order = malloc((size_t)n * sizeof *order);
    for (int i = 0; i < n; ++i) fill(&pairs[i], key_of(epoch, me, i));
    for (int side = 0; side < 2; ++side) {
        shuffle(order, n);
        for (int i = 0; i < n; ++i) OK(MPI_Start(&pairs[order[i]].request[(epoch + side) % 2]));
    }
    shuffle(order, n);
    for (int i = 0; i < n; ++i) ready_all(pairs[order[i]].request[0], 4, shuffled);
    shuffle(order, n);
    for (int i = 0; i < n; ++i) OK(MPI_Waitall(2, pairs[order[i]].request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; ++i) check(&pairs[i], key_of(epoch, from, i));
    free(order);
}

static void init_order(void) {
    enum { n = 12 };
    static struct pair pairs[n];
    for (int round = 0; round < 3; ++round) {
        // Three tags, four requests each, interleaved otherwise on the two sides.
        for (int k = 0; k < 4; ++k)
            for (int t = 0; t < 3; ++t) make_send(&pairs[k * 3 + t], right_rank, tag + t, MPI_COMM_WORLD);
        for (int t = 2; t >= 0; --t)
            for (int k = 0; k < 4; ++k) make_receive(&pairs[k * 3 + t], left_rank, tag + t, MPI_COMM_WORLD);
        for (int epoch = 1; epoch <= 5; ++epoch) run_epoch(pairs, n, epoch, left_rank, world_rank);
        for (int i = n - 1; i >= 0; --i) free_both(&pairs[i]);
    }
}

static void per_communicator(void) {
    enum { n = 6 };
    static struct pair pairs[n];
    MPI_Comm comms[n] = {MPI_COMM_WORLD};
    MPI_Group all;
    const int whole[] = {world_size}, periodic[] = {1};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]));
    OK(MPI_Comm_split(comms[1], 3, -world_rank, &comms[3]));  // ranks in reverse order
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
#ifdef OPEN_MPI
    OK(MPI_Comm_create_group(comms[2], all, 5, &comms[4]));
#else  // MPICH 4.0's crashes
    OK(MPI_Comm_create(comms[2], all, &comms[4]));
#endif
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, whole, periodic, 0, &comms[5]));
    OK(MPI_Group_free(&all));
    // The same tag on all; the order of the init calls differs between the sides.
    for (int i = 0; i < n; ++i) {
        const int to = i == 3 ? world_size - 1 - right_rank : right_rank;
        make_send(&pairs[i], to, tag, comms[i]);
    }
    for (int i = n - 1; i >= 0; --i) {
        const int from = i == 3 ? world_size - 1 - left_rank : left_rank;
        make_receive(&pairs[i], from, tag, comms[i]);
    }
    // A communicator may be freed under its requests.
    OK(MPI_Comm_free(&comms[2]));
    for (int epoch = 1; epoch <= 4; ++epoch) run_epoch(pairs, n, epoch, left_rank, world_rank);
    for (int i = 0; i < n; ++i) free_both(&pairs[i]);
    OK(MPI_Comm_free(&comms[1]));
    for (int i = 3; i < n; ++i) OK(MPI_Comm_free(&comms[i]));
}

static void parts_of_world(void) {
    // Both halves use the same ranks and tags at once.
    static struct pair p;
    MPI_Comm half;
    int rank, size;
    OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half));
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    make_receive(&p, (rank + size - 1) % size, tag, half);
    make_send(&p, (rank + 1) % size, tag, half);
    const int world_left = world_rank % 2 + 2 * ((rank + size - 1) % size);
    for (int epoch = 1; epoch <= 4; ++epoch) run_epoch(&p, 1, epoch, world_left, world_rank);
    free_both(&p);
    OK(MPI_Comm_free(&half));
}

static void across_an_intercommunicator(void) {
    // Rank 0 on one side, the others on the other; rank 0 exchanges with the first of them.
    MPI_Comm mine, bridge;
    static struct pair p;
    OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank > 0, world_rank, &mine));
    OK(MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, world_rank > 0 ? 0 : 1, 77, &bridge));
    if (world_rank < 2) {
        make_send(&p, 0, tag, bridge);
        make_receive(&p, 0, tag, bridge);
        for (int epoch = 1; epoch <= 4; ++epoch) run_epoch(&p, 1, epoch, 1 - world_rank, world_rank);
        free_both(&p);
    }
    OK(MPI_Comm_free(&bridge));
    OK(MPI_Comm_free(&mine));
}

static void oneself(void) {
    static struct pair pairs[3];
    const MPI_Comm comms[] = {MPI_COMM_SELF, MPI_COMM_WORLD, MPI_COMM_WORLD};
    for (int i = 0; i < 3; ++i) make_send(&pairs[i], i == 0 ? 0 : world_rank, tag, comms[i]);
    for (int i = 0; i < 3; ++i) make_receive(&pairs[i], i == 0 ? 0 : world_rank, tag, comms[i]);
    for (int epoch = 1; epoch <= 10; ++epoch) run_epoch(pairs, 3, epoch, world_rank, world_rank);
    for (int i = 0; i < 3; ++i) free_both(&pairs[i]);
}

static void proc_null(void) {
    static struct pair p;
    make_send(&p, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
    make_receive(&p, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        MPI_Status statuses[2];
        int bytes = -1, flag = 0;
        fill(&p, (uint64_t)epoch);
        OK(MPI_Startall(2, p.request));
        OK(MPI_Pready(1, p.request[0]));
        OK(MPI_Pready_range(2, 3, p.request[0]));
        OK(MPI_Test(&p.request[0], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);  // as with any peer: not before all is ready
        OK(MPI_Parrived(p.request[1], 0, &flag));
        CHECK(flag);
        OK(MPI_Pready(0, p.request[0]));
        OK(MPI_Waitall(2, p.request, statuses));
        OK(MPI_Get_count(&statuses[1], MPI_BYTE, &bytes));
        CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL && statuses[1].MPI_TAG == MPI_ANY_TAG && bytes == 0);
        check(&p, ~(uint64_t)epoch);  // nothing came
    }
    free_both(&p);
}

// The user's own wildcard receives and probes on the same communicator see nothing of ours, nor do we take
// messages of theirs, whatever their tag.
static void user_traffic(void) {
    static struct pair p;
    int word = -1, token = 1000 + world_rank;
    MPI_Request wild;
    MPI_Status status;
    OK(MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &wild));
    make_send(&p, right_rank, tag, MPI_COMM_WORLD);
    make_receive(&p, left_rank, tag, MPI_COMM_WORLD);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        int flag = -1;
        run_epoch(&p, 1, epoch, left_rank, world_rank);
        OK(MPI_Test(&wild, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag && word == -1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // The receive is active while a message with its very source and tag arrives, and is not disturbed.
    fill(&p, key_of(9, world_rank, 0));
    OK(MPI_Startall(2, p.request));
    OK(MPI_Send(&token, 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD));
    OK(MPI_Wait(&wild, &status));
    CHECK(status.MPI_SOURCE == left_rank && status.MPI_TAG == tag && word == 1000 + left_rank);
    for (int i = 0; i < 20; ++i) {
        int flag = -1;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    ready_all(p.request[0], 4, shuffled);
    OK(MPI_Waitall(2, p.request, MPI_STATUSES_IGNORE));
    check(&p, key_of(9, left_rank, 0));
    free_both(&p);
}

// Requests that are freed before they were started, the same ones on both sides, perhaps after the two sides
// have found each other; those that stay match as if the freed ones had never been. `keep` says which of the
// six stay.
static void freed_early(const char *keep, int acquainted) {
    enum { n = 6 };
    static struct pair pairs[n];
    for (int i = 0; i < n; ++i) make_send(&pairs[i], right_rank, tag, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) make_receive(&pairs[i], left_rank, tag, MPI_COMM_WORLD);
    if (acquainted) {
        // As MPIX_Request_path says of an inactive request.
        char path[32];
        for (int i = 0; i < n; ++i)
            for (int side = 0; side < 2; ++side) {
                path[0] = 'u';
                UNTIL(path[0] != 'u') OK(MPIX_Request_path(pairs[i].request[side], path, sizeof path));
            }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    const int receives_first = own_below(2);
    for (int step = 0; step < 2; ++step)
        for (int i = 0; i < n; ++i)
            if (keep[i] != '1') OK(MPI_Request_free(&pairs[i].request[step ^ receives_first]));
    static struct pair rest[n];
    int left = 0;
    for (int i = 0; i < n; ++i) {
        if (keep[i] != '1') continue;
        rest[left].request[0] = pairs[i].request[0];
        rest[left++].request[1] = pairs[i].request[1];
    }
    for (int epoch = 1; epoch <= 3; ++epoch) {
        for (int i = 0; i < n; ++i) fill(&pairs[i], key_of(epoch, world_rank, i));
        for (int i = 0; i < left; ++i) OK(MPI_Start(&rest[i].request[1]));
        for (int i = left - 1; i >= 0; --i) OK(MPI_Start(&rest[i].request[0]));
        for (int i = 0; i < left; ++i) ready_all(rest[i].request[0], 4, shuffled);
        for (int i = 0; i < left; ++i) OK(MPI_Waitall(2, rest[i].request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; ++i)
            check(&pairs[i], keep[i] == '1' ? key_of(epoch, left_rank, i) : ~key_of(epoch, world_rank, i));
    }
    for (int i = 0; i < left; ++i) free_both(&rest[i]);
}

static void freed_on_both_sides(void) {
    for (int set = 0; set < 64; ++set) {
        char keep[7] = "";
        for (int i = 0; i < 6; ++i) keep[i] = set >> i & 1 ? '1' : '0';
        freed_early(keep, 1);
        if (set % 4 == 0) freed_early("000000", 0);
        if (set % 8 == 0) freed_early("111111", 0);
    }
}

// One side only, whose partner then meets a later request of the same tag.
static void freed_then_again(void) {
    for (int side = 0; side < 2; ++side)
        for (int acquainted = 0; acquainted < 2; ++acquainted) {
            static struct pair p;
            make_send(&p, right_rank, tag, MPI_COMM_WORLD);
            make_receive(&p, left_rank, tag, MPI_COMM_WORLD);
            char path[32] = "u";
            if (acquainted) UNTIL(path[0] != 'u') OK(MPIX_Request_path(p.request[side], path, sizeof path));
            // The partner is active meanwhile.
            fill(&p, key_of(1, world_rank, 0));
            OK(MPI_Start(&p.request[1 - side]));
            if (side == 1) ready_all(p.request[0], 4, shuffled);
            OK(MPI_Request_free(&p.request[side]));
            if (side == 0)
                make_send(&p, right_rank, tag, MPI_COMM_WORLD);
            else
                make_receive(&p, left_rank, tag, MPI_COMM_WORLD);
            OK(MPI_Start(&p.request[side]));
            if (side == 0) ready_all(p.request[0], 4, shuffled);
            OK(MPI_Waitall(2, p.request, MPI_STATUSES_IGNORE));
            check(&p, key_of(1, left_rank, 0));
            for (int epoch = 2; epoch <= 3; ++epoch) run_epoch(&p, 1, epoch, left_rank, world_rank);
            free_both(&p);
        }
}

static void many_at_once(void) {
    enum { n = 500 };
    static struct pair pairs[n];
    for (int i = 0; i < n; ++i) {
        make_send(&pairs[i], right_rank, i % 7, MPI_COMM_WORLD);
        make_receive(&pairs[i], left_rank, i % 7, MPI_COMM_WORLD);
    }
    for (int epoch = 1; epoch <= 3; ++epoch) run_epoch(pairs, n, epoch, left_rank, world_rank);
    for (int i = 0; i < n; ++i) free_both(&pairs[i]);
}

// All ranks to all, with one tag.
static void everybody(void) {
    struct pair *const pairs = calloc((size_t)world_size, sizeof *pairs);
    for (int r = 0; r < world_size; ++r) make_receive(&pairs[r], r, tag, MPI_COMM_WORLD);
    for (int r = world_size - 1; r >= 0; --r) make_send(&pairs[r], r, tag, MPI_COMM_WORLD);
    for (int epoch = 1; epoch <= 5; ++epoch) {
        for (int r = 0; r < world_size; ++r) fill(&pairs[r], key_of(epoch, world_rank, r));
        for (int r = 0; r < world_size; ++r) OK(MPI_Startall(2, pairs[r].request));
        for (int r = 0; r < world_size; ++r) ready_all(pairs[r].request[0], 4, lists);
        for (int r = 0; r < world_size; ++r) OK(MPI_Waitall(2, pairs[r].request, MPI_STATUSES_IGNORE));
        for (int r = 0; r < world_size; ++r) check(&pairs[r], key_of(epoch, r, world_rank));
    }
    for (int r = 0; r < world_size; ++r) free_both(&pairs[r]);
    free(pairs);
}

// The datatype belongs to the user again as soon as init has returned.
static void freed_datatype(void) {
    struct side out, in;
    MPI_Request both[2];
    MPI_Datatype type = make_type(corner);
    make_side(&out, type, 3, 4);
    make_side(&in, MPI_SHORT, 4, 18);
    OK(MPI_Psend_init(out.buffer, 3, 4, type, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Type_dup(type, &out.type));
    OK(MPI_Type_free(&type));
    OK(MPI_Precv_init(in.buffer, 4, 18, MPI_SHORT, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
        fill_side(&out, mix_key(epoch, (uint64_t)world_rank));
        fill_side(&in, epoch);
        OK(MPI_Startall(2, both));
        ready_all(both[0], 3, backwards);
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        check_received(&in, epoch, &out, mix_key(epoch, (uint64_t)left_rank));
    }
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    OK(MPI_Type_free(&out.type));
    free_side(&out);
    free_side(&in);
}

// Unknown keys say nothing to us.
static void info_keys(void) {
    static struct pair p;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_such_key", "whatever"));
    OK(MPI_Psend_init(p.out, 4, length / 4, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, info, &p.request[0]));
    OK(MPI_Precv_init(p.in, 3, length / 3, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, info, &p.request[1]));
    OK(MPI_Info_free(&info));
    run_epoch(&p, 1, 1, left_rank, world_rank);
    free_both(&p);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 1: equals match in the order of the init calls", 1, init_order},
        {"rule 1: each communicator by itself", 1, per_communicator},
        {"rule 1: communicators with the same ranks", 2, parts_of_world},
        {"rule 1: intercommunicators", 2, across_an_intercommunicator},
        {"rule 1: the user's wildcards and messages are left alone", 1, user_traffic},
        {"rule 1: all to all with one tag", 1, everybody},
        {"rule 10: communication with oneself", 1, oneself},
        {"rule 10: MPI_PROC_NULL", 1, proc_null},
        {"rule 8: freed on both sides, never started", 1, freed_on_both_sides},
        {"rule 8: freed on one side, then made again", 1, freed_then_again},
        {"rule 12: unknown info keys are ignored", 1, info_keys},
        {"a datatype may be freed after init", 1, freed_datatype},
        {"many requests at once", 1, many_at_once},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
