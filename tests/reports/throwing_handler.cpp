// SPDX-License-Identifier: BSD-3-Clause
//
// An error handler of the program's throws, called by the MPI library in a call that mpix passes on, and by mpix in a
// call of its own: the program gets its exception, and the handler is called once.
#include <mpi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <cstdio>
#include <initializer_list>
#include <new>

namespace {

struct thrown {};
int calls = 0;
bool throws_bad_alloc = false;

void handler(MPI_Comm *, int *, ...) {
    ++calls;
    if (throws_bad_alloc) throw std::bad_alloc();
    throw thrown();
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Errhandler throwing;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(handler, &throwing);
    MPI_Comm_set_errhandler(comm, throwing);
    char out[8] = "abcdefg";
    for (const bool bad_alloc : {false, true}) {
        calls = 0;
        throws_bad_alloc = bad_alloc;
        MPI_Request request;
        try {
            MPI_Psend_init(out, -1, 1, MPI_CHAR, 0, 0, comm, MPI_INFO_NULL, &request);
            std::puts("no exception");
        } catch (const thrown &) {
            std::printf("of mpix's call: %d\n", calls);
        } catch (const std::bad_alloc &) {
            std::printf("bad_alloc of mpix's call: %d\n", calls);
        }
    }
    // The library is left in the middle of a call, so this is the last one.
    calls = 0;
    throws_bad_alloc = false;
    try {
#if defined(OPEN_MPI)
        MPI_Comm split;
        MPI_Comm_split(comm, -5, 0, &split);
#else
        char in;
        MPI_Request receive;
        MPI_Irecv(&in, 1, MPI_CHAR, 0, 0, comm, &receive);
        MPI_Send(out, 8, MPI_CHAR, 0, 0, comm);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
#endif
        std::puts("no exception");
    } catch (const thrown &) {
        std::printf("of the library's call: %d\n", calls);
    }
    std::fflush(stdout);
    _exit(0);
}
