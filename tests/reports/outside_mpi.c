// SPDX-License-Identifier: BSD-3-Clause
//
// Calls before MPI_Init and after MPI_Finalize: the program ends with a message that names the call.
#define _DEFAULT_SOURCE  // on_exit
#include <mpi.h>
#include <mpix/mpix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static MPI_Request request = MPI_REQUEST_NULL;
static MPI_Comm comm, made;
static MPIX_Prequest exported;
static MPIX_Typemap map;
static char path[80];
static int data[4], index_of, flag, n;
static MPI_Count position;

#define FOR_EACH_CALL(call)                                                                                            \
    call(MPI_Psend_init, (data, 2, 2, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request))                         \
        call(MPI_Precv_init, (data, 2, 2, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request))                     \
            call(MPI_Pready, (0, request)) call(MPI_Pready_range, (0, 1, request))                                     \
                call(MPI_Pready_list, (1, data, request)) call(MPI_Parrived, (request, 0, NULL)) call(                 \
                    MPIX_Prequest_create, (request, MPI_INFO_NULL, &exported)) call(MPIX_Prequest_free, (NULL))        \
                    call(MPIX_Pbuf_prepare, (request)) call(MPIX_Pbuf_prepare_all, (1, &request)) call(                \
                        MPIX_Request_path, (request, path, 80))                                                        \
                        call(MPIX_Typemap_create, (MPI_INT, MPIX_ON_HOST, &map)) call(MPIX_Typemap_free, (NULL)) call( \
                            MPIX_Pack_enqueue, (data, 1, MPI_INT, path, 80, &position, MPI_COMM_WORLD, NULL))          \
                            call(MPIX_Unpack_enqueue, (path, 80, &position, data, 1, MPI_INT, MPI_COMM_WORLD, NULL))   \
                                call(MPI_Start, (&request)) call(MPI_Startall, (1, &request))                          \
                                    call(MPI_Wait, (&request, MPI_STATUS_IGNORE))                                      \
                                        call(MPI_Waitall, (1, &request, MPI_STATUSES_IGNORE))                          \
                                            call(MPI_Testany, (1, &request, &index_of, &flag, MPI_STATUS_IGNORE))      \
                                                call(MPI_Request_free, (&request))                                     \
                                                    call(MPI_Comm_dup, (MPI_COMM_WORLD, &made))                        \
                                                        call(MPI_Comm_free, (&comm))                                   \
                                                            call(MPI_Pack_size, (1, MPI_INT, MPI_COMM_WORLD, &n))      \
                                                                call(MPI_Finalize, ())

struct call {
    const char *name;
    void (*make)(void);
};
#define MAKE(name, arguments) \
    static void make_##name(void) { name arguments; }
FOR_EACH_CALL(MAKE)
#define LIST(name, arguments) {#name, make_##name},
static const struct call calls[] = {FOR_EACH_CALL(LIST)};

// The exit handlers of the MPI library would end what the child shares with its parent, such as PMIx's epoll instance.
static void leave(int status, void *unused) {
    (void)unused;
    _exit(status);
}

// In a process of its own, whose words are read.
static int is_named(const struct call *call, const char *when) {
    char words[4096], wanted[128];
    int ends[2], status;
    size_t length = 0;
    fflush(stdout);
    if (pipe(ends) != 0) return 0;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        on_exit(leave, NULL);
        call->make();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], words + length, sizeof words - 1 - length)) > 0;) length += (size_t)got;
    words[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    // A call that is the library's affair it names in its own way: MPI_Wait, or internal_Wait.
    const int ours = strncmp(call->name, "MPIX_", 5) == 0 || strncmp(call->name, "MPI_P", 5) == 0;
    if (ours && strcmp(call->name, "MPI_Pack_size") != 0)
        snprintf(wanted, sizeof wanted, "mpix: %s was called %s", call->name, when);
    else
        snprintf(wanted, sizeof wanted, "%s", strchr(call->name, '_'));
    if (strstr(words, wanted) != NULL && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) return 1;
    printf("FAILED: %s, %s: status %d, \"%s\"\n", call->name, when, status, words);
    return 0;
}

int main(int argc, char **argv) {
    const int n_calls = (int)(sizeof calls / sizeof calls[0]);
    int failed = 0;
    for (int i = 0; i < n_calls; ++i) failed += !is_named(&calls[i], "before MPI_Init");
    MPI_Init(&argc, &argv);
    // They are not freed, and have been in use.
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Psend_init(data, 2, 2, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &request);
    MPI_Finalize();
    for (int i = 0; i < n_calls; ++i) failed += !is_named(&calls[i], "after MPI_Finalize");
    return failed != 0;
}
