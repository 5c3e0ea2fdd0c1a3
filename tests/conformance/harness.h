// SPDX-License-Identifier: BSD-3-Clause
//
// What the conformance programs share: cases by name, checks that say where and with which seed they failed,
// random data that every rank can make for itself, and the two ends of a transfer.
#ifndef MPIX_TESTS_CONFORMANCE_HARNESS_H
#define MPIX_TESTS_CONFORMANCE_HARNESS_H

#include <mpi.h>
#include <mpix/mpix.h>

#include <stddef.h>
#include <stdint.h>

// ---- cases ---------------------------------------------------------------------------------------------

struct test_case {
    const char *name;  // says the rule
    int ranks;         // at least
    void (*run)(void);
};

// main() of every program: `program [--seed N] [case...]`. All ranks run all cases (or those named) together; 77 if
// there are too few ranks for any, or the library lacks the thread level. The first failed check ends the program.
int run_cases(int argc, char **argv, int thread_level, const struct test_case *cases, int n);
#define RUN_CASES(argc, argv, level, cases) run_cases(argc, argv, level, cases, (int)(sizeof(cases) / sizeof(cases)[0]))

extern int world_rank, world_size, right_rank, left_rank;  // neighbours in a ring; oneself on one rank
extern const char *subject;                                // what a case is at, for the message of a failure; or null

// What MPIX_Request_path says of a pair of host buffers, by the transports that the run allows.
const char *expected_path(void);

// ---- checks --------------------------------------------------------------------------------------------

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) fail_check(__FILE__, __LINE__, #condition); \
    } while (0)
// An MPI call that must succeed.
#define OK(call)                                                                   \
    do {                                                                           \
        const int ok_code = (call);                                                \
        if (ok_code != MPI_SUCCESS) fail_call(__FILE__, __LINE__, #call, ok_code); \
    } while (0)
// Repeat something that makes progress until a condition holds; a hang is a failure that says so.
#define UNTIL(condition) \
    for (const double until_start = MPI_Wtime(); !(condition); check_time(until_start, __FILE__, __LINE__, #condition))

void check_time(double start, const char *file, int line, const char *what);
_Noreturn void fail_check(const char *file, int line, const char *what);
_Noreturn void fail_call(const char *file, int line, const char *call, int code);

// ---- randomness ----------------------------------------------------------------------------------------

extern uint64_t seed;

uint64_t mix_key(uint64_t a, uint64_t b);
// The same sequence on all ranks, as long as all ask alike / a sequence of each rank's own, and of each of its threads,
// once a thread has said its number (the first one's is 0).
void own_thread(int number);
uint64_t shared_random(void);
uint64_t own_random(void);
int shared_below(int n);
int own_below(int n);
// Bytes that follow from the key alone.
void random_bytes(void *to, size_t bytes, uint64_t key);
// 0..n-1 in random order, of this rank's own.
void shuffle(int *order, int n);

// ---- the ends of a transfer ----------------------------------------------------------------------------

struct side {
    MPI_Datatype type;
    int partitions, count;
    size_t bytes;  // of the whole message, packed
    void *buffer;  // for MPI_P*_init; within memory
    unsigned char *memory;
    size_t memory_bytes;
};

void make_side(struct side *s, MPI_Datatype type, int partitions, int count);
void free_side(struct side *s);

// Fill the whole memory from a key (to send it, or to poison it).
void fill_side(struct side *s, uint64_t key);
// Check that the memory is as fill_side(poison) left it, except for the message that fill_side(key) put into
// the sender's memory: all of it, or the partition `only` alone and nothing else of it.
void check_received(const struct side *receiver, uint64_t poison, const struct side *sender, uint64_t key);
void check_partition(const struct side *receiver, const struct side *sender, uint64_t key, int only);

enum ready_order { in_order, backwards, shuffled, one_range, ranges, lists, n_ready_orders };
void ready_all(MPI_Request request, int partitions, enum ready_order order);

// Whether every byte of the receiver's partition is in a partition of the sender's that `readied` marks.
int covered(const struct side *sender, const char *readied, const struct side *receiver, int partition);

// ---- datatypes -----------------------------------------------------------------------------------------

// Committed types of 12 bytes each (except for the plain ones of which they are made), some with gaps.
enum type_kind {
    plain_bytes,       // 12 bytes in a row
    three_ints,        // the same as ints
    strided_ints,      // a vector with gaps; extent > size
    padded_struct,     // int64 and int, extent 24
    downward_ints,     // a negative stride
    scattered_shorts,  // displacements that go back and forth
    corner,            // 2 x 3 shorts of a 4 x 5 array
    shifted,           // its lower bound is not where it starts
    n_type_kinds
};
enum { type_bytes = 12 };
MPI_Datatype make_type(enum type_kind kind);
const char *type_name(enum type_kind kind);

#endif  // MPIX_TESTS_CONFORMANCE_HARNESS_H
