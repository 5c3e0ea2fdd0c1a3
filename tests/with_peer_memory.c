// SPDX-License-Identifier: BSD-3-Clause
//
// `with_peer_memory <program> [argument...]`: runs the program where the system lets two processes of one parent, as
// the ranks of a job are, reach each other's memory; elsewhere the test is skipped.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char word[2];

// 0, or an errno.
static int try_to_write(pid_t other) {
    static const char letters[2] = {'a', 'b'};
    char seen[2] = {0};
    const struct iovec from = {(void *)letters, 2}, to = {seen, 2}, there = {word, 2};
    if (process_vm_writev(other, &from, 1, &there, 1, 0) != 2) return errno;
    if (process_vm_readv(other, &to, 1, &there, 1, 0) != 2) return errno;
    return memcmp(seen, letters, 2) == 0 ? 0 : EIO;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const pid_t idle = fork();
    if (idle == 0)
        for (;;) pause();
    const pid_t writer = idle > 0 ? fork() : -1;
    if (writer == 0) _exit(try_to_write(idle));
    int status = 0;
    const int known = writer > 0 && waitpid(writer, &status, 0) == writer && WIFEXITED(status);
    if (idle > 0) {
        kill(idle, SIGKILL);
        waitpid(idle, NULL, 0);
    }
    if (!known) {
        fprintf(stderr, "with_peer_memory: no two processes could be had\n");
        return 1;
    }
    if (WEXITSTATUS(status) != 0) {
        printf("SKIP: the system lets no process write to another's memory: %s\n", strerror(WEXITSTATUS(status)));
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
