// SPDX-License-Identifier: BSD-3-Clause
//
// A buffer that its process unmaps in the middle of an epoch, the receiver or the sender: the sender is told by Wait
// whose it is, and what could be copied is there.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/errors/expect.h"

enum { tag = 34, parts = 4, lost = 2 };

static void unmap_at(int rank, const char *told) {
    const size_t bytes = 4 * (size_t)sysconf(_SC_PAGESIZE);
    char *const buffer = mmap(NULL, parts * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(buffer != MAP_FAILED);
    memset(buffer, world_rank == 0 ? 7 : 0, parts * bytes);
    MPI_Request request;
    if (world_rank == 0)
        OK(MPI_Psend_init(buffer, parts, (MPI_Count)bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(buffer, parts, (MPI_Count)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPIX_Pbuf_prepare(request));
    // Not unmapped: somebody else might get the place.
    if (world_rank == rank)
        CHECK(mmap(buffer + lost * bytes, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
              MAP_FAILED);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) {
        OK(MPI_Pready_range(0, parts - 1, request));
        EXPECT(MPI_ERR_OTHER, told, MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int p = 0; p < parts; ++p) {
            int flag = -1;
            OK(MPI_Parrived(request, p, &flag));
            CHECK(flag == (p != lost));
            if (flag) CHECK(buffer[(size_t)p * bytes] == 7 && buffer[(size_t)(p + 1) * bytes - 1] == 7);
        }
    }
    printf("rank %d came through\n", world_rank);
    fflush(stdout);
    // A launcher may end the other rank when one ends like this.
    OK(MPI_Barrier(MPI_COMM_WORLD));
    _exit(0);  // the epoch cannot be completed
}

static void receiver(void) {
    unmap_at(1, "partition 2 cannot be written into the receive buffer of rank 1: Bad address");
}
static void sender(void) { unmap_at(0, "partition 2 cannot be read from the send buffer: Bad address"); }

static const struct test_case cases[] = {{"a receive buffer that is unmapped", 2, receiver},
                                         {"a send buffer that is unmapped", 2, sender}};

int main(int argc, char **argv) { return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases); }
