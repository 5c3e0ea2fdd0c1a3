// SPDX-License-Identifier: BSD-3-Clause
//
// Rules 1, 8 and 10: which send meets which receive (communicators.c: on which communicator), and requests that are
// freed before they were ever started.
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/pairs.h"

enum { tag = 9 };

static void init_order(void) {
    enum { n = 12 };
    static struct pair pairs[n];
    for (int round = 0; round < 3; ++round) {
        // Three tags, four requests each, interleaved otherwise on the two sides.
        for (int k = 0; k < 4; ++k)
            for (int t = 0; t < 3; ++t) make_send(&pairs[k * 3 + t], right_rank, tag + t, MPI_COMM_WORLD);
        for (int t = 2; t >= 0; --t)
            for (int k = 0; k < 4; ++k) make_receive(&pairs[k * 3 + t], left_rank, tag + t, MPI_COMM_WORLD);
        for (int epoch = 1; epoch <= 5; ++epoch) run_pairs(pairs, n, epoch);
        for (int i = n - 1; i >= 0; --i) free_pair(&pairs[i]);
    }
}

static void oneself(void) {
    static struct pair pairs[3];
    const MPI_Comm comms[] = {MPI_COMM_SELF, MPI_COMM_WORLD, MPI_COMM_WORLD};
    for (int i = 0; i < 3; ++i) make_send(&pairs[i], i == 0 ? 0 : world_rank, tag, comms[i]);
    for (int i = 0; i < 3; ++i) make_receive(&pairs[i], i == 0 ? 0 : world_rank, tag, comms[i]);
    for (int epoch = 1; epoch <= 10; ++epoch) run_pairs(pairs, 3, epoch);
    for (int i = 0; i < 3; ++i) free_pair(&pairs[i]);
}

static void proc_null(void) {
    static struct pair p;
    make_send(&p, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
    make_receive(&p, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        MPI_Status statuses[2];
        int bytes = -1, flag = 0;
        fill_pair(&p, (uint64_t)epoch);
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
        check_pair(&p, ~(uint64_t)epoch);  // nothing came
    }
    free_pair(&p);
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
                strcpy(path, "unmatched");
                UNTIL(strcmp(path, "unmatched") != 0) OK(MPIX_Request_path(pairs[i].request[side], path, sizeof path));
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
        for (int i = 0; i < n; ++i) fill_pair(&pairs[i], pair_key(epoch, world_rank, i));
        for (int i = 0; i < left; ++i) OK(MPI_Start(&rest[i].request[1]));
        for (int i = left - 1; i >= 0; --i) OK(MPI_Start(&rest[i].request[0]));
        for (int i = 0; i < left; ++i) ready_all(rest[i].request[0], 4, shuffled);
        for (int i = 0; i < left; ++i) OK(MPI_Waitall(2, rest[i].request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; ++i)
            check_pair(&pairs[i], keep[i] == '1' ? pair_key(epoch, left_rank, i) : ~pair_key(epoch, world_rank, i));
    }
    for (int i = 0; i < left; ++i) free_pair(&rest[i]);
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
            char path[32] = "unmatched";
            if (acquainted)
                UNTIL(strcmp(path, "unmatched") != 0) OK(MPIX_Request_path(p.request[side], path, sizeof path));
            // The partner is active meanwhile.
            fill_pair(&p, pair_key(1, world_rank, 0));
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
            check_pair(&p, pair_key(1, left_rank, 0));
            for (int epoch = 2; epoch <= 3; ++epoch) run_pairs(&p, 1, epoch);
            free_pair(&p);
        }
}

// The two sides free theirs at different times, and others, made before and after, run meanwhile.
static void freed_at_different_times(void) {
    enum { n = 3 };
    for (int way = 0; way < 8; ++way) {
        static struct pair first, others[n];
        const int early = way & 1;
        make_send(&first, right_rank, tag, MPI_COMM_WORLD);
        make_receive(&first, left_rank, tag, MPI_COMM_WORLD);
        if (way & 2) OK(MPI_Request_free(&first.request[early]));
        for (int i = 0; i < n; ++i) {
            make_send(&others[i], right_rank, tag, MPI_COMM_WORLD);
            make_receive(&others[i], left_rank, tag, MPI_COMM_WORLD);
        }
        if (!(way & 2)) OK(MPI_Request_free(&first.request[early]));
        if (way & 4) run_pairs(others, n, 1);
        OK(MPI_Request_free(&first.request[1 - early]));
        for (int epoch = 2; epoch <= 3; ++epoch) run_pairs(others, n, epoch);
        for (int i = 0; i < n; ++i) free_pair(&others[i]);
    }
}

// One side alone makes some that it frees, now sends and now receives: for those that are left, they have never been.
static void freed_on_one_side(void) {
    enum { n = 6 };
    for (int way = 0; way < 32; ++way) {
        static struct pair pairs[n];
        MPI_Request unused[n];
        for (int i = 0; i < n; ++i) {
            struct pair none;
            const uint64_t drawn = mix_key(seed + (uint64_t)way, (uint64_t)i);
            const int side = drawn & 2 ? 1 : 0;
            none.request[side] = MPI_REQUEST_NULL;
            if (drawn & 1) {
                if (side == 0)
                    make_send(&none, right_rank, tag, MPI_COMM_WORLD);
                else
                    make_receive(&none, left_rank, tag, MPI_COMM_WORLD);
            }
            unused[i] = none.request[side];
            make_send(&pairs[i], right_rank, tag, MPI_COMM_WORLD);
            make_receive(&pairs[i], left_rank, tag, MPI_COMM_WORLD);
            if (way & 2 && unused[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&unused[i]));
        }
        for (int i = 0; i < n; ++i)
            if (unused[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&unused[i]));
        for (int i = 0; i < n; ++i) fill_pair(&pairs[i], pair_key(1, world_rank, i));
        for (int side = 0; side < 2; ++side)
            for (int i = 0; i < n; ++i) OK(MPI_Start(&pairs[way & (4 << side) ? n - 1 - i : i].request[side]));
        for (int i = n - 1; i >= 0; --i) ready_all(pairs[i].request[0], pair_sends, shuffled);
        for (int i = 0; i < n; ++i) OK(MPI_Waitall(2, pairs[i].request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; ++i) check_pair(&pairs[i], pair_key(1, left_rank, i));
        for (int epoch = 2; epoch <= 3; ++epoch) run_pairs(pairs, n, epoch);
        for (int i = 0; i < n; ++i) free_pair(&pairs[i]);
    }
}

// The same with messages that have memory of their own, which the first partner may not have mapped yet.
static void freed_while_large(void) {
    enum { parts = 4, count = 400000, n = 2 };
    for (int round = 0; round < 6; ++round) {
        struct side out[n], in[n];
        MPI_Request requests[2 * n], unused;
        const int unused_send = round & 1;
        if (!unused_send)
            OK(MPI_Precv_init(NULL, 1, 0, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &unused));
        else
            OK(MPI_Psend_init(NULL, 1, 0, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &unused));
        for (int i = 0; i < n; ++i) {
            make_side(&out[i], MPI_BYTE, parts, count);
            make_side(&in[i], MPI_BYTE, parts, count);
            OK(MPI_Precv_init(in[i].buffer, parts, count, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &requests[n + i]));
            OK(MPI_Psend_init(out[i].buffer, parts, count, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &requests[i]));
        }
        OK(MPI_Request_free(&unused));
        for (int epoch = 1; epoch <= 2; ++epoch) {
            const uint64_t key = (uint64_t)(100 * round + 10 * epoch);
            for (int i = 0; i < n; ++i) {
                fill_side(&out[i], mix_key(seed + (uint64_t)world_rank, key + (uint64_t)i));
                fill_side(&in[i], key);
            }
            OK(MPI_Startall(2 * n, requests));
            for (int i = 0; i < n; ++i) ready_all(requests[i], parts, shuffled);
            OK(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
            for (int i = 0; i < n; ++i)
                check_received(&in[i], key, &out[i], mix_key(seed + (uint64_t)left_rank, key + (uint64_t)i));
        }
        for (int i = 0; i < 2 * n; ++i) OK(MPI_Request_free(&requests[i]));
        for (int i = 0; i < n; ++i) {
            free_side(&out[i]);
            free_side(&in[i]);
        }
    }
}

static void many_at_once(void) {
    enum { n = 500 };
    static struct pair pairs[n];
    for (int i = 0; i < n; ++i) {
        make_send(&pairs[i], right_rank, i % 7, MPI_COMM_WORLD);
        make_receive(&pairs[i], left_rank, i % 7, MPI_COMM_WORLD);
    }
    for (int epoch = 1; epoch <= 3; ++epoch) run_pairs(pairs, n, epoch);
    for (int i = 0; i < n; ++i) free_pair(&pairs[i]);
}

// The same source, tag and communicator for ours and for all kinds of ordinary requests: each finds its like.
static void only_its_like(void) {
    static struct pair p;
    int out[3], in[3];
    MPI_Request plain[5];
    OK(MPI_Recv_init(&in[0], 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, &plain[0]));
    OK(MPI_Send_init(&out[0], 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, &plain[1]));
    make_send(&p, right_rank, tag, MPI_COMM_WORLD);
    make_receive(&p, left_rank, tag, MPI_COMM_WORLD);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        fill_pair(&p, pair_key(epoch, world_rank, 0));
        for (int i = 0; i < 3; ++i) out[i] = world_rank * 100 + epoch * 10 + i, in[i] = -1;
        OK(MPI_Start(&plain[0]));
        OK(MPI_Start(&p.request[1]));
        OK(MPI_Irecv(&in[1], 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, &plain[2]));
        OK(MPI_Start(&p.request[0]));
        OK(MPI_Start(&plain[1]));
        OK(MPI_Isend(&out[1], 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, &plain[3]));
        OK(MPI_Isend(&out[2], 1, MPI_INT, right_rank, tag, MPI_COMM_WORLD, &plain[4]));
        ready_all(p.request[0], pair_sends, shuffled);
        OK(MPI_Recv(&in[2], 1, MPI_INT, left_rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Waitall(5, plain, MPI_STATUSES_IGNORE));
        OK(MPI_Waitall(2, p.request, MPI_STATUSES_IGNORE));
        check_pair(&p, pair_key(epoch, left_rank, 0));
        for (int i = 0; i < 3; ++i) CHECK(in[i] == left_rank * 100 + epoch * 10 + i);
    }
    OK(MPI_Request_free(&plain[0]));
    OK(MPI_Request_free(&plain[1]));
    free_pair(&p);
}

// All ranks to all, with one tag.
static void everybody(void) {
    struct pair *const pairs = calloc((size_t)world_size, sizeof *pairs);
    for (int r = 0; r < world_size; ++r) make_receive(&pairs[r], r, tag, MPI_COMM_WORLD);
    for (int r = world_size - 1; r >= 0; --r) make_send(&pairs[r], r, tag, MPI_COMM_WORLD);
    for (int epoch = 1; epoch <= 5; ++epoch) {
        for (int r = 0; r < world_size; ++r) fill_pair(&pairs[r], pair_key(epoch, world_rank, r));
        for (int r = 0; r < world_size; ++r) OK(MPI_Startall(2, pairs[r].request));
        for (int r = 0; r < world_size; ++r) ready_all(pairs[r].request[0], 4, lists);
        for (int r = 0; r < world_size; ++r) OK(MPI_Waitall(2, pairs[r].request, MPI_STATUSES_IGNORE));
        for (int r = 0; r < world_size; ++r) check_pair(&pairs[r], pair_key(epoch, r, world_rank));
    }
    for (int r = 0; r < world_size; ++r) free_pair(&pairs[r]);
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
    OK(MPI_Psend_init(p.out, 4, pair_bytes / 4, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, info, &p.request[0]));
    OK(MPI_Precv_init(p.in, 3, pair_bytes / 3, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, info, &p.request[1]));
    OK(MPI_Info_free(&info));
    p.from = left_rank;
    run_pairs(&p, 1, 1);
    free_pair(&p);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 1: equals match in the order of the init calls", 1, init_order},
        {"rule 1: never Send, Isend or Send_init, nor their receives", 1, only_its_like},
        {"rule 1: all to all with one tag", 1, everybody},
        {"rule 10: communication with oneself", 1, oneself},
        {"rule 10: MPI_PROC_NULL", 1, proc_null},
        {"rule 8: freed on both sides, never started", 1, freed_on_both_sides},
        {"rule 8: freed on one side, then made again", 1, freed_then_again},
        {"rule 8: freed at different times, while others run", 1, freed_at_different_times},
        {"rule 8: some freed that one side alone made", 1, freed_on_one_side},
        {"rule 8: one freed that one side alone made, before large messages", 1, freed_while_large},
        {"rule 12: unknown info keys are ignored", 1, info_keys},
        {"a datatype may be freed after init", 1, freed_datatype},
        {"many requests at once", 1, many_at_once},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
