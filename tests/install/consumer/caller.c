/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose MPI calls are all in a plug-in: ring.c as a shared library, its main called ring. Nothing in the
 * program itself refers to MPI or to mpix. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*const ring)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "ring") : NULL;
    if (ring) return ring(argc, argv);
    fprintf(stderr, "%s has no ring: %s\n", argc > 1 ? argv[1] : "nothing", dlerror());
    return 1;
}
