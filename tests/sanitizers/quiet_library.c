/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Linked into test programs under ThreadSanitizer. MPI libraries are not built with it: whichever thread makes progress
 * copies received bytes into the buffers of those that wait, by a memcpy that is seen, ordered by atomics that are
 * not. A suppression cannot always match such a report, for the stack of an access is forgotten after a while. So what
 * the library writes in the calls by which mpix's progress thread enters it is not looked at; its locks still are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

void AnnotateIgnoreWritesBegin(char *file, int line);
void AnnotateIgnoreWritesEnd(char *file, int line);

static void *library_function(const char *name) { return dlsym(RTLD_NEXT, name); }

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    static int (*function)(MPI_Request *, int *, MPI_Status *);
    if (!__atomic_load_n(&function, __ATOMIC_RELAXED)) *(void **)&function = library_function("PMPI_Test");
    AnnotateIgnoreWritesBegin((char *)__FILE__, __LINE__);
    const int code = function(request, flag, status);
    AnnotateIgnoreWritesEnd((char *)__FILE__, __LINE__);
    return code;
}
