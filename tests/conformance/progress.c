// SPDX-License-Identifier: BSD-3-Clause
//
// Who waits for whom. Rank 0 sends to rank 1, and is made to sit in calls that know nothing of partitions while
// its data must move. Ordinary messages, and a word in shared memory, order what happens.
#include <stdatomic.h>

#include "tests/conformance/harness.h"

enum { tag = 21, go_tag = 22 };

static struct side out, in;
static MPI_Request request;

static void tell(int rank) { OK(MPI_Send(NULL, 0, MPI_BYTE, rank, go_tag, MPI_COMM_WORLD)); }
static void hear(int rank) { OK(MPI_Recv(NULL, 0, MPI_BYTE, rank, go_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

static void make_sides(int count) {
    make_side(&out, MPI_INT, 6, 4 * count);
    make_side(&in, MPI_INT, 8, 3 * count);
}

static void init_request(void) {
    if (world_rank == 0)
        OK(MPI_Psend_init(out.buffer, out.partitions, out.count, out.type, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request));
    else
        OK(MPI_Precv_init(in.buffer, in.partitions, in.count, in.type, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request));
}

static void finish(void) {
    if (world_rank < 2) OK(MPI_Request_free(&request));
    free_side(&out);
    free_side(&in);
}

static void receive_epoch(uint64_t epoch) {
    fill_side(&in, epoch);
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_received(&in, epoch, &out, mix_key(epoch, 0));
}

static void send_epoch(uint64_t epoch) {
    fill_side(&out, mix_key(epoch, 0));
    OK(MPI_Start(&request));
    ready_all(request, out.partitions, shuffled);
}

// Every Pready has returned before the receiver has even made its request; from then on the sender is in
// MPI_Barrier (or MPI_Recv), and only after the receiver has everything does it come out.
static void late_receiver(int in_barrier, int count) {
    make_sides(count);
    for (uint64_t epoch = 1; epoch <= 6; ++epoch) {
        if (world_rank == 0) {
            if (epoch == 1) init_request();
            send_epoch(epoch);
            tell(1);
            if (!in_barrier) hear(1);
        } else if (world_rank == 1) {
            hear(0);
            if (epoch == 1) init_request();
            receive_epoch(epoch);
            if (!in_barrier) tell(0);
        }
        if (in_barrier) OK(MPI_Barrier(MPI_COMM_WORLD));
        if (world_rank == 0) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    finish();
}

static void sender_in_barrier(void) {
    late_receiver(1, 5);
    late_receiver(1, 50000);
}

static void sender_in_recv(void) {
    late_receiver(0, 5);
    late_receiver(0, 50000);
}

// The receiver sits in a call of the library's while the sender makes its request and completes it.
static void sent_meanwhile(int count, uint64_t epochs) {
    make_sides(count);
    if (world_rank < 2) init_request();
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        if (world_rank == 1) {
            fill_side(&in, epoch);
            OK(MPI_Start(&request));
            hear(0);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            check_received(&in, epoch, &out, mix_key(epoch, 0));
        } else if (world_rank == 0) {
            send_epoch(epoch);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            tell(1);
        }
    }
    finish();
}

static void receiver_elsewhere(void) {
    sent_meanwhile(5, 6);
    sent_meanwhile(1000000, 2);  // more than a network keeps on its way
}

// Nothing of an epoch stays behind in a process that has completed it and is in a call of the library's.
static void sender_gone_elsewhere(void) {
    enum { partitions = 4000 };
    static uint64_t from[partitions], to[partitions];
    MPI_Request one = MPI_REQUEST_NULL;
    if (world_rank == 0)
        OK(MPI_Psend_init(from, partitions, 1, MPI_UINT64_T, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &one));
    else if (world_rank == 1)
        OK(MPI_Precv_init(to, partitions, 1, MPI_UINT64_T, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &one));
    else
        return;
    for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
        for (uint64_t i = 0; i < partitions; ++i) {
            from[i] = mix_key(epoch, i);
            to[i] = ~from[i];
        }
        OK(MPI_Start(&one));
        if (world_rank == 0) OK(MPI_Pready_range(0, partitions - 1, one));
        OK(MPI_Wait(&one, MPI_STATUS_IGNORE));
        if (world_rank == 0) {
            hear(1);
        } else {
            for (uint64_t i = 0; i < partitions; ++i) CHECK(to[i] == mix_key(epoch, i));
            tell(0);
        }
    }
    OK(MPI_Request_free(&one));
}

// Both wait in calls for the library's requests, or poll with them, and our data moves meanwhile.
static void in_calls_of_the_library(void) {
    make_sides(5);
    for (uint64_t epoch = 1; epoch <= 18; ++epoch) {
        // In a request's first epoch there is most to do.
        if (epoch > 1 && world_rank < 2) OK(MPI_Request_free(&request));
        if (world_rank < 2) init_request();
        MPI_Request plain;
        int flag = 0, index, n = 0;
        if (world_rank == 0) {
            send_epoch(epoch);
            OK(MPI_Irecv(NULL, 0, MPI_BYTE, 1, go_tag, MPI_COMM_WORLD, &plain));
            switch (epoch % 9) {
                case 0:
                    OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
                    break;
                case 1:
                    OK(MPI_Waitall(1, &plain, MPI_STATUSES_IGNORE));
                    break;
                case 2:
                    OK(MPI_Waitany(1, &plain, &index, MPI_STATUS_IGNORE));
                    break;
                case 3:
                    OK(MPI_Waitsome(1, &plain, &n, &index, MPI_STATUSES_IGNORE));
                    break;
                case 4:
                    UNTIL(flag) OK(MPI_Testall(1, &plain, &flag, MPI_STATUSES_IGNORE));
                    break;
                case 5:
                    UNTIL(flag) OK(MPI_Testany(1, &plain, &index, &flag, MPI_STATUS_IGNORE));
                    break;
                case 6:
                    UNTIL(n == 1) OK(MPI_Testsome(1, &plain, &n, &index, MPI_STATUSES_IGNORE));
                    break;
                case 7:
                    UNTIL(flag) OK(MPI_Request_get_status(plain, &flag, MPI_STATUS_IGNORE));
                    OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
                    break;
                default:
                    UNTIL(flag) OK(MPI_Test(&plain, &flag, MPI_STATUS_IGNORE));
            }
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else if (world_rank == 1) {
            receive_epoch(epoch);
            tell(0);
        }
    }
    finish();
}

// ---- MPIX_Pbuf_prepare ---------------------------------------------------------------------------------

static atomic_int *started;  // in shared memory: the last epoch that rank 1 was about to start
static MPI_Win window;

static void open_window(void) {
    MPI_Aint bytes;
    int unit;
    OK(MPI_Win_allocate_shared(world_rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &started, &window));
    OK(MPI_Win_shared_query(window, 0, &bytes, &unit, &started));
    if (world_rank == 0) atomic_store(started, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// It returns when the receiver has started this very epoch, and not before.
static void prepare(void) {
    make_sides(5);
    open_window();
    if (world_rank < 2) init_request();
    for (int epoch = 1; epoch <= 50; ++epoch) {
        if (world_rank == 0) {
            fill_side(&out, mix_key((uint64_t)epoch, 0));
            OK(MPI_Start(&request));
            OK(MPIX_Pbuf_prepare(request));
            CHECK(atomic_load(started) == epoch);
            ready_all(request, 6, shuffled);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else if (world_rank == 1) {
            fill_side(&in, (uint64_t)epoch);
            atomic_store(started, epoch);
            OK(MPI_Start(&request));
            OK(MPIX_Pbuf_prepare(request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            check_received(&in, (uint64_t)epoch, &out, mix_key((uint64_t)epoch, 0));
        }
    }
    finish();
    OK(MPI_Win_free(&window));
}

// The data is there before the receiver's Start, which then has nothing to wait for; the receiver goes on to a call of
// the library's. The sender hears of the Start all the same. Each epoch has a message back.
static void prepare_behind_the_data(void) {
    static int there[4], back[4];
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (world_rank > 1) return;
    const int peer = 1 - world_rank;
    int *const out_data = world_rank == 0 ? there : back, *const in_data = world_rank == 0 ? back : there;
    OK(MPI_Psend_init(out_data, 2, 2, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(in_data, 2, 2, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    for (int epoch = 1; epoch <= 40; ++epoch) {
        for (int k = 0; k < 4; ++k) out_data[k] = epoch * 100 + world_rank * 10 + k, in_data[k] = -1;
        if (world_rank == 0) {
            OK(MPI_Startall(2, r));
            ready_all(r[0], 2, shuffled);
            tell(1);
            OK(MPIX_Pbuf_prepare(r[0]));
            tell(1);
        } else {
            hear(0);
            OK(MPI_Start(&r[1]));
            hear(0);
            OK(MPI_Start(&r[0]));
            ready_all(r[0], 2, shuffled);
        }
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        for (int k = 0; k < 4; ++k) CHECK(in_data[k] == epoch * 100 + peer * 10 + k);
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static void prepare_all(void) {
    enum { n = 10 };
    static int data[n][6], more[n][6];
    MPI_Request requests[2 * n];
    for (int i = 0; i < n; ++i) {
        const int to = i == n - 1 ? MPI_PROC_NULL : right_rank, from = i == n - 1 ? MPI_PROC_NULL : left_rank;
        OK(MPI_Psend_init(data[i], 3, 2, MPI_INT, to, i, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]));
        OK(MPI_Precv_init(more[i], 2, 3, MPI_INT, from, i, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[n + i]));
    }
    for (int epoch = 1; epoch <= 10; ++epoch) {
        for (int i = 0; i < n; ++i)
            for (int k = 0; k < 6; ++k) data[i][k] = epoch * 1000 + world_rank * 100 + i * 6 + k;
        OK(MPI_Startall(2 * n, requests));
        if (epoch % 2)
            OK(MPIX_Pbuf_prepare_all(2 * n, requests));
        else
            OK(MPIX_Pbuf_prepare_all(n, requests));
        OK(MPIX_Pbuf_prepare_all(0, NULL));
        for (int i = 0; i < n; ++i) ready_all(requests[i], 3, shuffled);
        OK(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n - 1; ++i)
            for (int k = 0; k < 6; ++k) CHECK(more[i][k] == epoch * 1000 + left_rank * 100 + i * 6 + k);
    }
    for (int i = 0; i < 2 * n; ++i) OK(MPI_Request_free(&requests[i]));
}

// A ring that each rank goes round in the same order: nobody may wait for a peer in init or Start.
static void no_waiting_in_init_or_start(void) {
    make_sides(3);
    if (world_rank < 2) {
        if (world_rank == 0) {
            init_request();
            OK(MPI_Start(&request));
            ready_all(request, 6, shuffled);
            tell(1);
        } else {
            hear(0);
            init_request();
            OK(MPI_Start(&request));
            tell(0);
        }
        if (world_rank == 0) hear(1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    finish();
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"rule 5: init and Start do not wait for the peer", 2, no_waiting_in_init_or_start},
        {"rule 6: Pready does not wait for a late receiver; the sender is in MPI_Barrier", 2, sender_in_barrier},
        {"rule 6: Pready does not wait for a late receiver; the sender is in MPI_Recv", 2, sender_in_recv},
        {"rule 9: a send completes without the receiver's further help", 2, receiver_elsewhere},
        {"rule 9: the sender is in MPI_Recv when the last bytes leave", 2, sender_gone_elsewhere},
        {"progress in calls for the library's requests", 2, in_calls_of_the_library},
        {"MPIX_Pbuf_prepare waits for this epoch's Start", 2, prepare},
        {"MPIX_Pbuf_prepare hears of a Start that finds all data there", 2, prepare_behind_the_data},
        {"MPIX_Pbuf_prepare_all", 1, prepare_all},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
