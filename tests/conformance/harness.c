// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int world_rank, world_size, right_rank, left_rank;
const char *subject;
uint64_t seed;

static const char *case_name = "start";
static char situation[160];
static uint64_t case_key, shared_state;
static _Thread_local uint64_t own_state;

const char *expected_path(void) {
    const char *const allowed = getenv("MPIX_TRANSPORTS");
    const int network = allowed != NULL && (strcmp(allowed, "ucx") == 0 || strcmp(allowed, "verbs") == 0);
    return network ? allowed : "shm";
}

// ---- cases and checks ----------------------------------------------------------------------------------

void fail_check(const char *file, int line, const char *what) {
    const char *const slash = strrchr(file, '/');
    fprintf(stderr, "FAILED %s:%d, case \"%s\"%s%s, world rank %d, --seed %llu: %s\n", slash ? slash + 1 : file, line,
            case_name, subject ? ", " : "", subject ? subject : "", world_rank, (unsigned long long)seed, what);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void fail_call(const char *file, int line, const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING], what[MPI_MAX_ERROR_STRING + 256];
    int n = 0;
    MPI_Error_string(code, text, &n);
    snprintf(what, sizeof what, "%s gave \"%s\"", call, text);
    fail_check(file, line, what);
}

void check_time(double start, const char *file, int line, const char *what) {
    if (MPI_Wtime() - start < 45) return;
    snprintf(situation, sizeof situation, "waited too long for: %s", what);
    fail_check(file, line, situation);
}

static int chosen(const char *name, int argc, char **argv, int first) {
    if (first >= argc) return 1;
    for (int i = first; i < argc; ++i)
        if (strstr(name, argv[i]) != NULL) return 1;
    return 0;
}

int run_cases(int argc, char **argv, int thread_level, const struct test_case *cases, int n) {
    int provided = 0;
    OK(MPI_Init_thread(&argc, &argv, thread_level, &provided));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    right_rank = (world_rank + 1) % world_size;
    left_rank = (world_rank + world_size - 1) % world_size;
    int first = 1;
    seed = mix_key((uint64_t)time(NULL), (uint64_t)getpid()) % 1000000000u;
    if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 10);
        first = 3;
    }
    OK(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    // To have too little is the library's right alone.
    int of_library = thread_level;
    if (provided < thread_level) OK(PMPI_Query_thread(&of_library));
    const int short_answer = of_library >= thread_level && provided < thread_level;
    if (short_answer && world_rank == 0) fprintf(stderr, "FAILED: a thread level was refused that the library has\n");
    int done = 0, named = 0;
    for (int i = 0; i < n; ++i) {
        if (!chosen(cases[i].name, argc, argv, first)) continue;
        ++named;
        if (cases[i].ranks > world_size || provided < thread_level) continue;
        case_name = cases[i].name;
        // A case's numbers do not depend on which cases ran before it.
        case_key = seed;
        for (const char *c = case_name; *c; ++c) case_key = mix_key(case_key, (uint64_t)*c);
        shared_state = case_key;
        own_thread(0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        const double start = MPI_Wtime();
        cases[i].run();
        subject = NULL;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (world_rank == 0) {
            printf("passed in %5.2f s: %s\n", MPI_Wtime() - start, case_name);
            fflush(stdout);
        }
        ++done;
    }
    if (named == 0 && world_rank == 0) fprintf(stderr, "FAILED: no case has such a name\n");
    MPI_Finalize();
    if (short_answer || named == 0) return 1;
    return done > 0 ? 0 : 77;
}

// ---- randomness ----------------------------------------------------------------------------------------

uint64_t mix_key(uint64_t a, uint64_t b) {
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void own_thread(int number) { own_state = mix_key(mix_key(case_key, (uint64_t)number), (uint64_t)world_rank + 1); }

static uint64_t next(uint64_t *state) { return *state = mix_key(*state, 1); }
uint64_t shared_random(void) { return next(&shared_state); }
uint64_t own_random(void) { return next(&own_state); }
int shared_below(int n) { return (int)(shared_random() % (uint64_t)n); }
int own_below(int n) { return (int)(own_random() % (uint64_t)n); }

void random_bytes(void *to, size_t bytes, uint64_t key) {
    unsigned char *at = to;
    uint64_t state = mix_key(key, seed);
    for (; bytes >= sizeof state; bytes -= sizeof state, at += sizeof state) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = state ^ (state >> 33);
        memcpy(at, &word, sizeof word);
    }
    state = mix_key(state, 2);
    memcpy(at, &state, bytes);
}

void shuffle(int *order, int n) {
    for (int i = 0; i < n; ++i) order[i] = i;
    for (int i = n - 1; i > 0; --i) {
        const int j = own_below(i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
}

// ---- the ends of a transfer ----------------------------------------------------------------------------

void make_side(struct side *s, MPI_Datatype type, int partitions, int count) {
    MPI_Aint lower, extent, true_lower, true_extent;
    int size;
    const MPI_Aint last = (MPI_Aint)partitions * count - 1;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    MPI_Type_size(type, &size);
    const MPI_Aint reach = last > 0 ? last * extent : 0, low = (reach < 0 ? reach : 0) + true_lower;
    const MPI_Aint high = (reach > 0 ? reach : 0) + true_lower + true_extent;
    s->type = type;
    s->partitions = partitions;
    s->count = count;
    s->bytes = (size_t)partitions * (size_t)count * (size_t)size;
    s->memory_bytes = (size_t)(high - low) + 128;  // and a margin that nobody may touch
    s->memory = malloc(s->memory_bytes);
    CHECK(s->memory != NULL);
    s->buffer = s->memory + 64 - low;
}

void free_side(struct side *s) {
    free(s->memory);
    s->memory = NULL;
}

void fill_side(struct side *s, uint64_t key) { random_bytes(s->memory, s->memory_bytes, key); }

// The library's own packing, which knows nothing of partitions.
static unsigned char *message_of(const struct side *sender, uint64_t key) {
    struct side image;
    make_side(&image, sender->type, sender->partitions, sender->count);
    fill_side(&image, key);
    unsigned char *const message = malloc(image.bytes + 1);
    int position = 0;
    OK(PMPI_Pack(image.buffer, image.partitions * image.count, image.type, message, (int)image.bytes + 1, &position,
                 MPI_COMM_WORLD));
    free_side(&image);
    return message;
}

static void unpack(const unsigned char *message, size_t bytes, void *buffer, int count, MPI_Datatype type) {
    int position = 0;
    if (bytes > 0) OK(PMPI_Unpack(message, (int)bytes, &position, buffer, count, type, MPI_COMM_WORLD));
}

static void differ(const struct side *s, size_t at, unsigned expected) {
    snprintf(situation, sizeof situation, "byte %lld of the buffer (%d partitions of %d elements) is %02x, not %02x",
             (long long)(s->memory + at - (unsigned char *)s->buffer), s->partitions, s->count, s->memory[at],
             expected);
    fail_check(__FILE__, __LINE__, situation);
}

void check_received(const struct side *receiver, uint64_t poison, const struct side *sender, uint64_t key) {
    struct side wanted;
    make_side(&wanted, receiver->type, receiver->partitions, receiver->count);
    fill_side(&wanted, poison);
    unsigned char *const message = message_of(sender, key);
    unpack(message, wanted.bytes, wanted.buffer, wanted.partitions * wanted.count, wanted.type);
    for (size_t i = 0; i < wanted.memory_bytes; ++i)
        if (receiver->memory[i] != wanted.memory[i]) differ(receiver, i, wanted.memory[i]);
    free(message);
    free_side(&wanted);
}

void check_partition(const struct side *receiver, const struct side *sender, uint64_t key, int only) {
    struct side wanted, mask;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(receiver->type, &lower, &extent);
    make_side(&wanted, receiver->type, receiver->partitions, receiver->count);
    make_side(&mask, receiver->type, receiver->partitions, receiver->count);
    memset(mask.memory, 0, mask.memory_bytes);
    const size_t bytes = receiver->bytes / (size_t)receiver->partitions;
    const MPI_Aint at = (MPI_Aint)only * receiver->count * extent;
    unsigned char *const message = message_of(sender, key), *const ones = malloc(bytes + 1);
    memset(ones, 0xff, bytes + 1);
    unpack(message + (size_t)only * bytes, bytes, (char *)wanted.buffer + at, receiver->count, wanted.type);
    unpack(ones, bytes, (char *)mask.buffer + at, receiver->count, mask.type);
    for (size_t i = 0; i < mask.memory_bytes; ++i)
        if (mask.memory[i] != 0 && receiver->memory[i] != wanted.memory[i]) differ(receiver, i, wanted.memory[i]);
    free(ones);
    free(message);
    free_side(&mask);
    free_side(&wanted);
}

void ready_all(MPI_Request request, int partitions, enum ready_order order) {
    int *const list = malloc(((size_t)partitions + 1) * sizeof *list);
    switch (order) {
        case in_order:
            for (int p = 0; p < partitions; ++p) OK(MPI_Pready(p, request));
            break;
        case backwards:
            for (int p = partitions - 1; p >= 0; --p) OK(MPI_Pready(p, request));
            break;
        case one_range:
            OK(MPI_Pready_range(0, partitions - 1, request));
            break;
        case ranges: {  // of random lengths, every second one first
            int n = 0;
            for (int low = 0; low < partitions; low = list[n]) list[++n] = low + 1 + own_below(partitions - low);
            list[0] = 0;
            for (int odd = 1; odd >= 0; --odd)
                for (int i = odd; i < n; i += 2) OK(MPI_Pready_range(list[i], list[i + 1] - 1, request));
            break;
        }
        case lists:
            shuffle(list, partitions);
            for (int at = 0, n; at < partitions; at += n) {
                n = 1 + own_below(partitions - at);
                OK(MPI_Pready_list(n, list + at, request));
            }
            OK(MPI_Pready_list(0, list, request));
            break;
        default:
            shuffle(list, partitions);
            for (int i = 0; i < partitions; ++i) OK(MPI_Pready(list[i], request));
    }
    free(list);
}

int covered(const struct side *sender, const char *readied, const struct side *receiver, int partition) {
    const size_t theirs = sender->bytes / (size_t)sender->partitions,
                 mine = receiver->bytes / (size_t)receiver->partitions;
    for (size_t p = 0; p < (size_t)sender->partitions; ++p) {
        const size_t low = (size_t)partition * mine, high = low + mine;
        if (p * theirs < high && low < (p + 1) * theirs && !readied[p]) return 0;
    }
    return 1;
}

// ---- datatypes -----------------------------------------------------------------------------------------

MPI_Datatype make_type(enum type_kind kind) {
    MPI_Datatype type = MPI_DATATYPE_NULL, inner;
    switch (kind) {
        case three_ints:
            MPI_Type_contiguous(3, MPI_INT, &type);
            break;
        case strided_ints:
            MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
            MPI_Type_create_resized(inner, 0, 28, &type);
            MPI_Type_free(&inner);
            break;
        case padded_struct: {
            const int lengths[] = {1, 1};
            const MPI_Aint at[] = {8, 0};  // the int lies in front, and is packed second
            const MPI_Datatype types[] = {MPI_INT64_T, MPI_INT};
            MPI_Type_create_struct(2, lengths, at, types, &inner);
            MPI_Type_create_resized(inner, 0, 24, &type);
            MPI_Type_free(&inner);
            break;
        }
        case downward_ints:
            MPI_Type_create_hvector(3, 1, -8, MPI_INT, &type);
            break;
        case scattered_shorts: {
            const int at[] = {9, 0, 5, 2, 7, 4};
            MPI_Type_create_indexed_block(6, 1, at, MPI_SHORT, &type);
            break;
        }
        case corner: {
            const int sizes[] = {4, 5}, parts[] = {2, 3}, starts[] = {1, 2};
            MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_SHORT, &type);
            break;
        }
        case shifted: {
            const int at[] = {3, -2};
            const int lengths[] = {2, 1};
            MPI_Type_indexed(2, lengths, at, MPI_INT, &inner);
            MPI_Type_create_resized(inner, -12, 36, &type);
            MPI_Type_free(&inner);
            break;
        }
        default:
            MPI_Type_contiguous(type_bytes, MPI_BYTE, &type);
    }
    OK(MPI_Type_commit(&type));
    return type;
}

const char *type_name(enum type_kind kind) {
    static const char *const names[] = {"bytes",    "ints",      "strided", "struct",
                                        "downward", "scattered", "corner",  "shifted"};
    return names[kind];
}
