// SPDX-License-Identifier: BSD-3-Clause
//
// A program loads a module that is linked with mpix, whose names, those of mpix among them, stay the module's own
// (RTLD_LOCAL). One that is not linked with MPI itself is served. In one that is (LINKED_WITH_MPI), the module's calls
// reach the MPI library in place of mpix: that is said.
#ifdef LINKED_WITH_MPI
#include <mpi.h>
#endif
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *const module = argc < 2 ? NULL : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        printf("FAILED: %s\n", argc < 2 ? "no module is named" : dlerror());
        return 1;
    }
    int (*transfer)(void);
    *(void **)&transfer = dlsym(module, "transfer");
#ifdef LINKED_WITH_MPI
    MPI_Init(&argc, &argv);
    const int status = transfer();
    MPI_Finalize();
    return status;
#else
    return transfer();
#endif
}
