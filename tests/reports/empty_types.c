// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes without bytes, as a rank that owns nothing makes them, and types with members without bytes; also basic
// types that MPI_Type_get_contents does not describe. mpix must read what the MPI library reports.
#include "tests/conformance/harness.h"

#include <string.h>

// What the type is read as: the library's answer for `twin`, which says the same without a member of no bytes, since
// MPI libraries have faults with those. MPI_DATATYPE_NULL: no byte at all.
enum { most_types = 40 };
static struct {
    MPI_Datatype type, twin;
    const char *name;
} types[most_types];
static int n_types;

#define ADD(what, call)                                  \
    do {                                                 \
        MPI_Datatype *const made = &types[n_types].type; \
        OK(call);                                        \
        OK(MPI_Type_commit(made));                       \
        types[n_types].twin = MPI_DATATYPE_NULL;         \
        types[n_types++].name = what;                    \
    } while (0)

static const int zeros[2] = {0, 0}, ones[2] = {1, 1}, two_three[2] = {2, 3}, at_one_four[2] = {1, 4};
static const int array[2] = {4, 5}, part[2] = {2, 2}, array_of_two[1] = {2}, grid_of_four[1] = {4};
static const MPI_Aint bytes_apart[2] = {8, 64};

static void free_types(void) {
    while (n_types > 0) {
        OK(MPI_Type_free(&types[--n_types].type));
        if (types[n_types].twin != MPI_DATATYPE_NULL) OK(MPI_Type_free(&types[n_types].twin));
    }
}

static void make_leaves(void) {
    const MPI_Datatype two[2] = {MPI_INT, MPI_DOUBLE};
    const int block = MPI_DISTRIBUTE_BLOCK, cyclic = MPI_DISTRIBUTE_CYCLIC, argument = MPI_DISTRIBUTE_DFLT_DARG;
    ADD("struct of no blocks", MPI_Type_create_struct(0, NULL, NULL, NULL, made));
    ADD("struct of blocks of 0", MPI_Type_create_struct(2, zeros, bytes_apart, two, made));
    ADD("contiguous of 0", MPI_Type_contiguous(0, MPI_INT, made));
    ADD("vector of no blocks", MPI_Type_vector(0, 3, 4, MPI_INT, made));
    ADD("vector of blocks of 0", MPI_Type_vector(3, 0, 4, MPI_INT, made));
    ADD("hvector of no blocks", MPI_Type_create_hvector(0, 3, 40, MPI_INT, made));
    ADD("hvector of blocks of 0", MPI_Type_create_hvector(2, 0, 40, MPI_INT, made));
    ADD("indexed of no blocks", MPI_Type_indexed(0, NULL, NULL, MPI_INT, made));
    ADD("indexed of blocks of 0", MPI_Type_indexed(2, zeros, at_one_four, MPI_INT, made));
    ADD("hindexed of no blocks", MPI_Type_create_hindexed(0, NULL, NULL, MPI_INT, made));
    ADD("hindexed of blocks of 0", MPI_Type_create_hindexed(2, zeros, bytes_apart, MPI_INT, made));
    ADD("indexed_block of no blocks", MPI_Type_create_indexed_block(0, 3, NULL, MPI_INT, made));
    ADD("indexed_block of blocks of 0", MPI_Type_create_indexed_block(2, 0, at_one_four, MPI_INT, made));
    ADD("hindexed_block of no blocks", MPI_Type_create_hindexed_block(0, 3, NULL, MPI_INT, made));
    ADD("hindexed_block of blocks of 0", MPI_Type_create_hindexed_block(2, 0, bytes_apart, MPI_INT, made));
    ADD("darray, a process without a block",
        MPI_Type_create_darray(4, 3, 1, array_of_two, &block, &argument, grid_of_four, MPI_ORDER_C, MPI_INT, made));
    ADD("darray, a process without a cycle", MPI_Type_create_darray(4, 3, 1, array_of_two, &cyclic, &argument,
                                                                    grid_of_four, MPI_ORDER_FORTRAN, MPI_INT, made));
}

// Those, and what is made of the first one.
static void make_empty_types(void) {
    make_leaves();
    const MPI_Datatype nothing = types[0].type, both[2] = {nothing, types[2].type};
    ADD("struct of an empty struct", MPI_Type_create_struct(1, two_three, bytes_apart, &nothing, made));
    ADD("struct of empty members", MPI_Type_create_struct(2, two_three, bytes_apart, both, made));
    ADD("struct of that", MPI_Type_create_struct(1, ones, bytes_apart, &types[n_types - 1].type, made));
    ADD("contiguous of it", MPI_Type_contiguous(3, nothing, made));
    ADD("vector of it", MPI_Type_vector(3, 2, 4, nothing, made));
    ADD("hvector of it", MPI_Type_create_hvector(3, 2, 40, nothing, made));
    ADD("indexed of it", MPI_Type_indexed(2, ones, at_one_four, nothing, made));
    ADD("hindexed of it", MPI_Type_create_hindexed(2, ones, bytes_apart, nothing, made));
    ADD("indexed_block of it", MPI_Type_create_indexed_block(2, 3, at_one_four, nothing, made));
    ADD("subarray of it", MPI_Type_create_subarray(2, array, part, ones, MPI_ORDER_FORTRAN, nothing, made));
    ADD("dup of it", MPI_Type_dup(nothing, made));
    ADD("resized", MPI_Type_create_resized(nothing, 0, 24, made));
    ADD("resized to a negative lower bound", MPI_Type_create_resized(nothing, -8, 24, made));
    ADD("dup of the resized", MPI_Type_dup(types[n_types - 1].type, made));
}

// The last type has `n` elements of `basic` at `at`, and its own extent.
static void set_twin(int n, const int lengths[], const MPI_Aint at[], MPI_Datatype basic) {
    MPI_Aint lower, extent;
    MPI_Datatype blocks, *const twin = &types[n_types - 1].twin;
    OK(MPI_Type_create_hindexed(n, lengths, at, basic, &blocks));
    OK(MPI_Type_get_extent(types[n_types - 1].type, &lower, &extent));
    OK(MPI_Type_create_resized(blocks, lower, extent, twin));
    OK(MPI_Type_commit(twin));
    OK(MPI_Type_free(&blocks));
}

// Types that have bytes beside members without, and those made of basic types of Fortran's kinds.
static void make_mixed_types(void) {
    const MPI_Aint zero = 0, doubles[4] = {0, 16, 48, 64}, floats[2] = {8, 32};
    const int one_each[4] = {1, 1, 1, 1}, three = 3, four_six[2] = {4, 6};
    MPI_Datatype nothing, basic;
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &nothing));
    const MPI_Datatype last[2] = {nothing, MPI_DOUBLE}, first[2] = {MPI_DOUBLE, nothing};
    ADD("an empty member before doubles", MPI_Type_create_struct(2, two_three, bytes_apart, last, made));
    set_twin(1, &two_three[1], &bytes_apart[1], MPI_DOUBLE);
    ADD("an empty member behind doubles", MPI_Type_create_struct(2, two_three, bytes_apart, first, made));
    set_twin(1, &two_three[0], &bytes_apart[0], MPI_DOUBLE);
    OK(MPI_Type_free(&nothing));
    OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &basic));
    ADD("hindexed of a Fortran real", MPI_Type_create_hindexed(4, one_each, doubles, basic, made));
    set_twin(4, one_each, doubles, MPI_DOUBLE);
    OK(MPI_Type_create_f90_integer(9, &basic));
    ADD("contiguous of a Fortran integer", MPI_Type_contiguous(3, basic, made));
    set_twin(1, &three, &zero, MPI_INT);
    OK(MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &basic));
    ADD("indexed of a Fortran complex", MPI_Type_indexed(2, two_three, at_one_four, basic, made));
    set_twin(2, four_six, floats, MPI_FLOAT);
}

// ---- what is done with each --------------------------------------------------------------------------------

enum { partitions = 3, count = 2, elements = partitions * count, start = 1024, memory_bytes = 4096 };

static int bytes_of(int n) {
    int size;
    OK(MPI_Type_size(types[n].type, &size));
    return size * elements;
}

static void library_packs(int n, const char *memory, char *packed) {
    int at = 0;
    if (types[n].twin != MPI_DATATYPE_NULL)
        OK(PMPI_Pack(memory + start, elements, types[n].twin, packed, memory_bytes, &at, MPI_COMM_WORLD));
    CHECK(at == bytes_of(n));
}

static void library_unpacks(int n, const char *packed, char *memory) {
    int at = 0;
    if (types[n].twin != MPI_DATATYPE_NULL)
        OK(PMPI_Unpack(packed, memory_bytes, &at, memory + start, elements, types[n].twin, MPI_COMM_WORLD));
    CHECK(at == bytes_of(n));
}

static void pack(int n) {
    static char memory[memory_bytes], wanted_memory[memory_bytes], packed[memory_bytes], wanted[memory_bytes];
    const MPI_Datatype type = types[n].type;
    const uint64_t poison = own_random();
    int size = -1, at = 0;
    OK(MPI_Pack_size(elements, type, MPI_COMM_WORLD, &size));
    CHECK(size == bytes_of(n));
    random_bytes(memory, memory_bytes, own_random());
    random_bytes(packed, memory_bytes, poison);
    random_bytes(wanted, memory_bytes, poison);
    library_packs(n, memory, wanted);
    OK(MPI_Pack(memory + start, elements, type, packed, size, &at, MPI_COMM_WORLD));
    CHECK(at == size);
    CHECK(memcmp(packed, wanted, memory_bytes) == 0);
    random_bytes(memory, memory_bytes, poison);
    random_bytes(wanted_memory, memory_bytes, poison);
    library_unpacks(n, packed, wanted_memory);
    at = 0;
    OK(MPI_Unpack(packed, size, &at, memory + start, elements, type, MPI_COMM_WORLD));
    CHECK(at == size);
    CHECK(memcmp(memory, wanted_memory, memory_bytes) == 0);
}

// To the right neighbour, which receives it as type number `m`.
static void send_around(int n, int m) {
    static char sent[memory_bytes], received[memory_bytes], packed[memory_bytes], wanted[memory_bytes];
    MPI_Request r[2];
    OK(MPI_Psend_init(sent + start, partitions, count, types[n].type, right_rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &r[0]));
    OK(MPI_Precv_init(received + start, partitions, count, types[m].type, left_rank, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &r[1]));
    for (int epoch = 0; epoch < 2; ++epoch) {
        const uint64_t key = shared_random(), poison = shared_random();  // the same on all ranks
        random_bytes(sent, memory_bytes, key);
        random_bytes(received, memory_bytes, poison);
        random_bytes(wanted, memory_bytes, poison);
        library_packs(n, sent, packed);
        library_unpacks(m, packed, wanted);
        OK(MPI_Startall(2, r));
        OK(MPI_Pready_range(0, partitions - 1, r[0]));
        MPI_Status statuses[2];
        OK(MPI_Waitall(2, r, statuses));
        MPI_Count bytes = -1;
        OK(MPI_Get_elements_x(&statuses[1], MPI_BYTE, &bytes));
        CHECK(bytes == bytes_of(m));
        CHECK(memcmp(received, wanted, memory_bytes) == 0);
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static void no_bytes(void) {
    make_empty_types();
    for (int n = 0; n < n_types; ++n) {
        subject = types[n].name;
        CHECK(bytes_of(n) == 0);
        pack(n);
        send_around(n, (n * 7 + 1) % n_types);
    }
    subject = NULL;
    free_types();
}

static void beside_bytes(void) {
    make_mixed_types();
    for (int n = 0; n < n_types; ++n) {
        subject = types[n].name;
        pack(n);
        send_around(n, n);
    }
    subject = NULL;
    free_types();
}

int main(int argc, char **argv) {
    const struct test_case cases[] = {
        {"datatypes of no bytes are messages of none", 1, no_bytes},
        {"members of no bytes, and basic types of Fortran's kinds", 1, beside_bytes},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
