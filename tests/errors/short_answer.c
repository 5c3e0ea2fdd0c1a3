// SPDX-License-Identifier: BSD-3-Clause
//
// The harness's own answers: cases are not passed over where that would hide a fault. `short_answer "a level"` runs
// under an MPI_Init_thread that says MPI_THREAD_SINGLE; `short_answer <name>` names no case.
#include <dlfcn.h>
#include <string.h>

#include "tests/conformance/harness.h"

static int say_single;

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*next)(int *, char ***, int, int *);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Init_thread");
    const int code = next(argc, argv, required, provided);
    if (say_single) *provided = MPI_THREAD_SINGLE;
    return code;
}

static void nothing(void) {}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"a level", 1, nothing}, {"many ranks", 1000, nothing}};
    say_single = argc > 1 && strcmp(argv[1], "a level") == 0;
    return RUN_CASES(argc, argv, MPI_THREAD_FUNNELED, cases);
}
