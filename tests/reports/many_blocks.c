// SPDX-License-Identifier: BSD-3-Clause
//
// Types of many blocks, packed repeatedly: the MPI library packs the first calls, since mpix would take longer to read
// the type than to pack it, and mpix the later ones. All give the same bytes.
#include "tests/conformance/harness.h"

#include <dlfcn.h>
#include <string.h>

enum { blocks = 3000, uses = 48, most_doubles = 8 * blocks };

// In front of the library's: counts what mpix leaves to it.
static int by_library;

int PMPI_Pack(const void *from, int count, MPI_Datatype type, void *to, int size, int *position, MPI_Comm comm) {
    int (*librarys)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm) = NULL;
    *(void **)&librarys = dlsym(RTLD_NEXT, "PMPI_Pack");
    ++by_library;
    return librarys(from, count, type, to, size, position, comm);
}
int PMPI_Unpack(const void *from, int size, int *position, void *to, int count, MPI_Datatype type, MPI_Comm comm) {
    int (*librarys)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm) = NULL;
    *(void **)&librarys = dlsym(RTLD_NEXT, "PMPI_Unpack");
    ++by_library;
    return librarys(from, size, position, to, count, type, comm);
}

// A random subset of an array of doubles, in its order or not.
struct subset {
    int lengths[blocks], at[blocks], doubles;
};

static void choose(struct subset *s, int sorted) {
    int next = 0;
    s->doubles = 0;
    for (int n = 0; n < blocks; ++n) {
        s->lengths[n] = 1 + own_below(3);
        next += 1 + own_below(3);
        s->at[n] = next;
        next += s->lengths[n];
        s->doubles += s->lengths[n];
    }
    for (int n = 0; !sorted && n < blocks; ++n) {
        const int m = own_below(blocks), at = s->at[n], length = s->lengths[n];
        s->at[n] = s->at[m];
        s->lengths[n] = s->lengths[m];
        s->at[m] = at;
        s->lengths[m] = length;
    }
}

static MPI_Datatype indexed(const struct subset *s) {
    MPI_Datatype type;
    OK(MPI_Type_indexed(blocks, s->lengths, s->at, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static void gather(const struct subset *s, const double *memory, double *packed) {
    for (int n = 0; n < blocks; ++n)
        for (int k = 0; k < s->lengths[n]; ++k) *packed++ = memory[s->at[n] + k];
}
static void scatter(const struct subset *s, const double *packed, double *memory) {
    for (int n = 0; n < blocks; ++n)
        for (int k = 0; k < s->lengths[n]; ++k) memory[s->at[n] + k] = *packed++;
}

static double memory[most_doubles], packed[most_doubles], wanted[most_doubles];

static void pack_once(const struct subset *s, MPI_Datatype type) {
    const uint64_t poison = own_random();
    const int bytes = s->doubles * (int)sizeof(double);
    int at = 0;
    random_bytes(memory, sizeof memory, own_random());
    random_bytes(packed, sizeof packed, poison);
    random_bytes(wanted, sizeof wanted, poison);
    gather(s, memory, wanted);
    OK(MPI_Pack(memory, 1, type, packed, bytes, &at, MPI_COMM_WORLD));
    CHECK(at == bytes);
    CHECK(memcmp(packed, wanted, sizeof wanted) == 0);
}

static void unpack_once(const struct subset *s, MPI_Datatype type) {
    const uint64_t poison = own_random();
    const int bytes = s->doubles * (int)sizeof(double);
    int at = 0;
    random_bytes(packed, sizeof packed, own_random());
    random_bytes(memory, sizeof memory, poison);
    random_bytes(wanted, sizeof wanted, poison);
    scatter(s, packed, wanted);
    OK(MPI_Unpack(packed, bytes, &at, memory, 1, type, MPI_COMM_WORLD));
    CHECK(at == bytes);
    CHECK(memcmp(memory, wanted, sizeof wanted) == 0);
}

static void use_often(int sorted) {
    static struct subset s;
    choose(&s, sorted);
    MPI_Datatype type = indexed(&s), same;
    for (int n = 0; n < uses; ++n) {
        by_library = 0;
        pack_once(&s, type);
        unpack_once(&s, type);
        if (n == 0) CHECK(by_library == 2);
    }
    // MPI libraries have faults with blocks that are not in order, so one that has begun goes on: the bytes stay the
    // same.
    CHECK(by_library == (sorted ? 0 : 2));
    OK(MPI_Type_dup(type, &same));
    OK(MPI_Type_free(&type));
    pack_once(&s, same);
    unpack_once(&s, same);
    OK(MPI_Type_free(&same));
}

static void ascending(void) { use_often(1); }
static void shuffled_blocks(void) { use_often(0); }

static void errors(void) {
    static struct subset s;
    choose(&s, 1);
    MPI_Datatype type = indexed(&s);
    const int bytes = s.doubles * (int)sizeof(double);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int n = 0; n < uses; ++n) {
        int at = 0, size = 0, error_class = 0;
        MPI_Error_class(MPI_Pack(memory, 1, type, packed, bytes - 1, &at, MPI_COMM_WORLD), &error_class);
        CHECK(error_class == MPI_ERR_TRUNCATE && at == 0);
        MPI_Error_class(MPI_Pack(memory, 1, type, NULL, bytes, &at, MPI_COMM_WORLD), &error_class);
        CHECK(error_class == MPI_ERR_BUFFER && at == 0);
        OK(MPI_Pack(NULL, 0, type, NULL, 0, &at, MPI_COMM_WORLD));
        OK(MPI_Pack_size(1, type, MPI_COMM_WORLD, &size));
        CHECK(at == 0 && size == bytes);
        pack_once(&s, type);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Type_free(&type));
}

// A struct of two of the same, again and again.
static void nested(void) {
    enum { depth = 11, leaves = 1 << depth };
    MPI_Datatype type;
    OK(MPI_Type_contiguous(1, MPI_DOUBLE, &type));
    for (int k = 0; k < depth; ++k) {
        MPI_Aint lower, extent;
        OK(MPI_Type_get_extent(type, &lower, &extent));
        const int ones[2] = {1, 1};
        const MPI_Aint at[2] = {0, extent + (MPI_Aint)sizeof(double)};
        const MPI_Datatype two[2] = {type, type};
        MPI_Datatype next;
        OK(MPI_Type_create_struct(2, ones, at, two, &next));
        OK(MPI_Type_free(&type));
        type = next;
    }
    OK(MPI_Type_commit(&type));
    for (int n = 0; n < uses; ++n) {
        int at = 0;
        random_bytes(memory, sizeof memory, own_random());
        OK(MPI_Pack(memory, 1, type, packed, sizeof packed, &at, MPI_COMM_WORLD));
        CHECK(at == leaves * (int)sizeof(double));
        for (int leaf = 0; leaf < leaves; ++leaf) CHECK(memcmp(&packed[leaf], &memory[2 * leaf], sizeof(double)) == 0);
    }
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    const struct test_case cases[] = {
        {"blocks in the order of memory", 1, ascending},
        {"blocks in any order", 1, shuffled_blocks},
        {"errors are the same from the first use on", 1, errors},
        {"structs of structs", 1, nested},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
