// SPDX-License-Identifier: BSD-3-Clause
//
// The init calls refuse buffers that the CPU cannot read or write: GPU memory in a build without CUDA, pages without
// access, a constant as a receive buffer. Read-only memory may be sent, and an empty message may name any address.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/errors/expect.h"

enum { tag = 21, parts = 3 };

static char *pages;
static size_t page;

// Three pages, of which the last has this protection.
static void map(int protection) {
    page = (size_t)sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK(mprotect(pages + 2 * page, page, protection) == 0);
}
static void unmap(void) { CHECK(munmap(pages, 3 * page) == 0); }

#define TO_RIGHT right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request
#define FROM_LEFT left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request

static void no_access(void) {
    MPI_Request request;
    map(PROT_NONE);
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at", MPI_Psend_init(pages + 2 * page, parts, 4, MPI_INT, TO_RIGHT));
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at", MPI_Precv_init(pages + 2 * page, parts, 4, MPI_INT, FROM_LEFT));
    // The last byte alone lies there.
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at",
           MPI_Psend_init(pages + 2 * page - 11, parts, 4, MPI_BYTE, TO_RIGHT));
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at",
           MPI_Precv_init(pages + 2 * page - 11, parts, 4, MPI_BYTE, FROM_LEFT));
    // An address as those of GPU memory are: nothing is mapped there.
    unmap();
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at", MPI_Psend_init(pages, parts, 4, MPI_INT, TO_RIGHT));
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at", MPI_Precv_init(pages, parts, 4, MPI_INT, FROM_LEFT));
}

static void read_only(void) {
    MPI_Request request;
    map(PROT_READ);
    EXPECT(MPI_ERR_BUFFER, "cannot write the memory at",
           MPI_Precv_init(pages + 2 * page, parts, 4, MPI_INT, FROM_LEFT));
    EXPECT(MPI_ERR_BUFFER, "cannot write the memory at",
           MPI_Precv_init(pages + 2 * page - 11, parts, 4, MPI_BYTE, FROM_LEFT));
    OK(MPI_Psend_init(pages + 2 * page, parts, 4, MPI_INT, TO_RIGHT));
    OK(MPI_Request_free(&request));
    unmap();
}

static void gaps(void) {
    MPI_Request request;
    MPI_Datatype column, stretched;
    map(PROT_NONE);
    OK(MPI_Type_vector(2, 1, 3, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, (MPI_Aint)page, &stretched));
    OK(MPI_Type_commit(&stretched));
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at", MPI_Psend_init(pages, parts, 1, stretched, TO_RIGHT));
    EXPECT(MPI_ERR_BUFFER, "cannot read the memory at", MPI_Precv_init(pages, parts, 1, stretched, FROM_LEFT));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&stretched));
    unmap();
}

static void no_bytes(void) {
    MPI_Request request;
    map(PROT_NONE);
    OK(MPI_Psend_init(pages + 2 * page, parts, 0, MPI_INT, TO_RIGHT));
    OK(MPI_Request_free(&request));
    OK(MPI_Precv_init(pages + 2 * page, parts, 0, MPI_INT, FROM_LEFT));
    OK(MPI_Request_free(&request));
    unmap();
}

// Buffers that end where a page without access begins, and memory that nobody has touched, are as good as others.
static void at_the_edge(void) {
    MPI_Request both[2];
    map(PROT_NONE);
    const size_t bytes = 5 * parts;
    char *const in = pages + 2 * page - bytes, *const out = pages + 1;
    OK(MPI_Psend_init(out, parts, 5, MPI_BYTE, right_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(in, parts, 5, MPI_BYTE, left_rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    for (size_t i = 0; i < 2 * page; ++i) CHECK(pages[i] == 0);
    random_bytes(out, bytes, (uint64_t)world_rank + 1);
    memset(in, 0x5a, bytes);
    OK(MPI_Startall(2, both));
    OK(MPI_Pready_range(0, parts - 1, both[0]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    char expected[5 * parts];
    random_bytes(expected, bytes, (uint64_t)left_rank + 1);
    CHECK(memcmp(in, expected, bytes) == 0);
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    unmap();
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"pages without access are refused", 1, no_access},
        {"a constant cannot be received into", 1, read_only},
        {"the last element is looked at", 1, gaps},
        {"a message of no bytes may name any address", 1, no_bytes},
        {"what can be used is not refused, nor changed", 1, at_the_edge},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
