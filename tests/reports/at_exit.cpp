// SPDX-License-Identifier: BSD-3-Clause
//
// The destructor of a global object uses and frees requests, makes an erroneous call and asks for its error string. The
// destructors of the library's own objects may have run before.
#include <mpi.h>
#include <mpix/mpix.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void require(bool condition, const char *what) {
    if (condition) return;
    std::printf("FAILED: %s\n", what);
    std::_Exit(1);
}

// What is given out after this has been somebody else's before.
void reuse_freed_memory() {
    void *taken[64];
    for (std::size_t i = 0; i < 64; ++i) {
        taken[i] = std::malloc(16 + 8 * i);
        std::memset(taken[i], '#', 16 + 8 * i);
    }
    for (void *const t : taken) std::free(t);
}

struct session {
    static constexpr int parts = 2, tag = 9;
    int out[parts] = {}, in[parts] = {}, rank = -1, other = -1;
    MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

    void mistake(int partition, const char *expected) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        const int code = MPI_Pready(partition, both[0]);
        require(code != MPI_SUCCESS, "a mistake goes unnoticed");
        MPI_Error_string(code, text, &length);
        require(std::strcmp(text, expected) == 0, text);
        require(length == static_cast<int>(std::strlen(expected)), "the text's length");
    }
    void exchange(int epoch) {
        MPI_Startall(2, both);
        for (int i = 0; i < parts; ++i) {
            out[i] = 100 * epoch + 10 * rank + i;
            in[i] = -1;
        }
        MPI_Pready_range(0, parts - 1, both[0]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        for (int i = 0; i < parts; ++i) require(in[i] == 100 * epoch + 10 * other + i, "the data");
    }
    void begin() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        other = 1 - rank;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Psend_init(out, parts, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
        MPI_Precv_init(in, parts, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
        exchange(1);
        mistake(-1, "MPI_Pready: partition -1 is not within 0 to 1");
    }
    ~session() {
        reuse_freed_memory();
        mistake(99, "MPI_Pready: partition 99 is not within 0 to 1");
        reuse_freed_memory();
        exchange(2);
        mistake(1234, "MPI_Pready: partition 1234 is not within 0 to 1");
        MPI_Request_free(&both[0]);
        MPI_Request_free(&both[1]);
        MPI_Finalize();
        std::printf("rank %d came through\n", rank);
    }
};

session everything;  // made before the library's objects, and so the last to go

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    everything.begin();
    return 0;
}
