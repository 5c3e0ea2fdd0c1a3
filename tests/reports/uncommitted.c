// SPDX-License-Identifier: BSD-3-Clause
//
// An uncommitted datatype is MPI_ERR_TYPE where the MPI library's own calls refuse it; the error handler of the
// communicator is called once.
#include "tests/conformance/harness.h"

static int calls, last_class;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *code, ...) {
    ++calls;
    last_comm = *comm;
    MPI_Error_class(*code, &last_class);
}

enum { partitions = 2, count = 1 };
static char memory[1024], packed[1024];

static MPI_Datatype make(void) {
    MPI_Datatype type;
    OK(MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &type));
    return type;
}

// What the library says of such a type.
static int expected_class(MPI_Comm comm, MPI_Datatype type) {
    MPI_Request request = MPI_REQUEST_NULL;
    int error_class;
    MPI_Error_class(PMPI_Send_init(memory, count, type, 0, 0, comm, &request), &error_class);
    if (request != MPI_REQUEST_NULL) OK(PMPI_Request_free(&request));
    return error_class;
}

static void check_code(int code, int expected, MPI_Comm comm) {
    int error_class;
    OK(MPI_Error_class(code, &error_class));
    CHECK(error_class == expected);
    CHECK(calls == (expected != MPI_SUCCESS));
    if (expected != MPI_SUCCESS) CHECK(last_class == expected && last_comm == comm);
    calls = 0;
}

static void refused(void) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(note, &handler));
    MPI_Datatype type = make();
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    const int expected = expected_class(comm, type);
    OK(MPI_Comm_set_errhandler(comm, handler));
    MPI_Request request = MPI_REQUEST_NULL;
    int at = 0;
    check_code(MPI_Psend_init(memory, partitions, count, type, right_rank, 0, comm, MPI_INFO_NULL, &request), expected,
               comm);
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    check_code(MPI_Precv_init(memory, partitions, count, type, left_rank, 0, comm, MPI_INFO_NULL, &request), expected,
               comm);
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    check_code(MPI_Pack(memory, 1, type, packed, sizeof packed, &at, comm), expected, comm);
    check_code(MPI_Unpack(packed, sizeof packed, &at, memory, 1, type, comm), expected, comm);
    OK(MPI_Type_free(&type));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
}

// And taken once it is committed, also where it was refused before.
static void taken(void) {
    MPI_Request r[2];
    MPI_Datatype type = make();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (MPI_Psend_init(memory, partitions, count, type, right_rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]) ==
        MPI_SUCCESS)
        OK(MPI_Request_free(&r[0]));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Type_commit(&type));
    struct side sender, receiver;
    make_side(&sender, type, partitions, count);
    make_side(&receiver, type, partitions, count);
    OK(MPI_Psend_init(sender.buffer, partitions, count, type, right_rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(receiver.buffer, partitions, count, type, left_rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    OK(MPI_Type_free(&type));  // the requests keep what they need
    MPI_Datatype same = make();
    OK(MPI_Type_commit(&same));
    sender.type = receiver.type = same;
    const uint64_t key = shared_random(), poison = shared_random();
    fill_side(&sender, key);
    fill_side(&receiver, poison);
    OK(MPI_Startall(2, r));
    OK(MPI_Pready_range(0, partitions - 1, r[0]));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    check_received(&receiver, poison, &sender, key);
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
    OK(MPI_Type_free(&same));
    free_side(&sender);
    free_side(&receiver);
}

int main(int argc, char **argv) {
    const struct test_case cases[] = {
        {"an uncommitted datatype is refused as the library refuses it", 1, refused},
        {"a datatype is taken once it is committed", 1, taken},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
