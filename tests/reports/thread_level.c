// SPDX-License-Identifier: BSD-3-Clause
//
// A program without partitioned requests: on one node, or with MPIX_PROGRESS=never, the library gets the thread level
// that the program asks for, so one-sided communication that needs it works. `thread_level
// init|funneled|serialized|multiple`.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        {"funneled", MPI_THREAD_FUNNELED}, {"serialized", MPI_THREAD_SERIALIZED}, {"multiple", MPI_THREAD_MULTIPLE}};
    int level = MPI_THREAD_SINGLE, provided = MPI_THREAD_SINGLE, told = -1, library = -1;
    for (int i = 0; i < 3; ++i)
        if (argc > 1 && strcmp(argv[1], levels[i].name) == 0) level = levels[i].level;
    if (level == MPI_THREAD_SINGLE)
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Query_thread(&told);
    PMPI_Query_thread(&library);
    int wrong = provided != level || told != level || library != level;
#ifdef OPEN_MPI
    if (level != MPI_THREAD_MULTIPLE) {  // for which osc/pt2pt has no windows
        int rank, size, memory = -1, value;
        MPI_Win window;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        value = 10 + rank;
        MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        wrong += memory != 10 + (rank + size - 1) % size;
        MPI_Win_free(&window);
    }
#endif
    if (wrong) printf("FAILED: provided %d, told %d, the library's %d, of %d\n", provided, told, library, level);
    MPI_Finalize();
    return wrong != 0;
}
