/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library that wraps MPI calls by the profiling interface, as profilers do, and counts them. With WRAPS_INIT it wraps
 * MPI_Init and MPI_Finalize too; with BY_NEXT it passes calls on to whatever comes next. */
#include <mpi.h>
#include <stdio.h>

#ifdef BY_NEXT
#include <dlfcn.h>
static void *find_next(const char *name) { return dlsym(RTLD_NEXT, name); }
#define NEXT(name) (__extension__(__typeof__(&MPI_##name)) find_next("MPI_" #name))
#else
#define NEXT(name) PMPI_##name
#endif

// Tools have variables of the MPI library's own, and may keep them from others.
#ifdef BY_NEXT
int MPI_T_cvar_get_num(int *num_cvar) { return PMPI_T_cvar_get_num(num_cvar); }
#endif

static int waits, requests;

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    ++waits;
    ++requests;
    return NEXT(Wait)(request, status);
}

int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) {
    ++waits;
    requests += count;
    return NEXT(Waitall)(count, array_of_requests, array_of_statuses);
}

#ifdef WRAPS_INIT
static int inits, duplicates;

int MPI_Init(int *argc, char ***argv) {
    ++inits;
    return NEXT(Init)(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    ++inits;
    return NEXT(Init_thread)(argc, argv, required, provided);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made) {
    ++duplicates;
    return NEXT(Comm_dup)(comm, made);
}

int MPI_Finalize(void) {
    fprintf(stderr, "counting_tool: %d inits, %d duplicates, %d waits for %d requests\n", inits, duplicates, waits,
            requests);
    return NEXT(Finalize)();
}
#endif
