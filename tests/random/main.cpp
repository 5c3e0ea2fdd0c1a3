// SPDX-License-Identifier: BSD-3-Clause
//
// Random programs of partitioned communication. `--seed N` runs one, again; `--seconds T` as many as go into that time.
#include <getopt.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/random/execute.hpp"

namespace random_test {
namespace {

constexpr unsigned patience = 60;  // seconds for one program, which takes milliseconds

int world_rank = 0;
volatile int step_now = -1;
char replay[256] = "";

// A hang, or a crash, says which program it was. Only what a signal handler may do.
void on_signal(int number) {
    static const char late[] = "\nrandom: no end within a minute; to see it again: ";
    static const char dead[] = "\nrandom: crashed; to see it again: ";
    char digits[16];
    std::size_t at = sizeof digits;
    int step = step_now < 0 ? 0 : step_now;
    do digits[--at] = static_cast<char>('0' + step % 10);
    while ((step /= 10) != 0);
    const bool hangs = number == SIGALRM;
    (void)!write(2, hangs ? late : dead, (hangs ? sizeof late : sizeof dead) - 1);
    (void)!write(2, replay, std::strlen(replay));
    (void)!write(2, " (step ", 7);
    (void)!write(2, digits + at, sizeof digits - at);
    (void)!write(2, ")\n", 2);
    if (hangs) _exit(1);
    std::signal(number, SIG_DFL);
    std::raise(number);
}

struct options {
    std::uint64_t first_seed = 1;
    double seconds = 5;
    bool one = false, print = false, calls_only = false;
};

options parse(int argc, char **argv) {
    static const option known[] = {
        {"seed", required_argument, nullptr, 's'},    {"first-seed", required_argument, nullptr, 'f'},
        {"seconds", required_argument, nullptr, 't'}, {"calls-only", no_argument, nullptr, 'c'},
        {"print", no_argument, nullptr, 'p'},         {nullptr, 0, nullptr, 0}};
    options out;
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) switch (c) {
            case 's':
                out.one = true;
                out.first_seed = std::strtoull(optarg, nullptr, 0);
                break;
            case 'f':
                out.first_seed = std::strtoull(optarg, nullptr, 0);
                break;
            case 't':
                out.seconds = std::atof(optarg);
                break;
            case 'c':
                out.calls_only = true;
                break;
            case 'p':
                out.print = true;
                break;
            default:
                std::fprintf(stderr,
                             "usage: %s [--seed N] [--first-seed N] [--seconds T] [--calls-only] [--print]\n"
                             "  --seed N        the program of this seed alone\n"
                             "  --first-seed N  the first of many (default 1)\n"
                             "  --seconds T     start none after this time (default 5)\n"
                             "  --calls-only    programs that need no progress but in mpix's own calls\n"
                             "  --print         say what is in the programs\n",
                             argv[0]);
                std::exit(2);
        }
    return out;
}

void add_up(totals &all) {
    std::uint64_t mine[] = {all.requests, all.epochs, all.kernel_epochs, all.stream_epochs, all.partitions, all.bytes},
                  sum[6];
    MPI_Reduce(mine, sum, 6, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    all = {all.programs, sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]};
}

int run(int argc, char **argv) {
    const options given = parse(argc, argv);
    if (!device::available()) {
        std::puts("skipped: no GPU");
        return 77;
    }
    int provided = 0, ranks = 0, local_rank = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    int on_node = 0;
    MPI_Comm_size(node, &on_node);
    MPI_Comm_free(&node);
    const bool several_threads = provided == MPI_THREAD_MULTIPLE;
    // Without threads of the library's own nothing moves while a rank is in a barrier.
    const setting where{ranks, device::is_gpu(), given.calls_only || !several_threads, on_node == ranks};
    for (const int number : {SIGALRM, SIGABRT, SIGSEGV}) std::signal(number, on_signal);

    totals done;
    {
        device gpu(local_rank);
        const double start = MPI_Wtime();
        for (std::uint64_t next[] = {1, given.first_seed};; ++next[1]) {
            if (done.programs > 0 && (given.one || MPI_Wtime() - start > given.seconds)) next[0] = 0;
            MPI_Bcast(next, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
            if (next[0] == 0) break;
            char command[sizeof replay];
            std::snprintf(command, sizeof command, "mpirun -n %d %s --seed %llu%s", ranks, argv[0],
                          static_cast<unsigned long long>(next[1]), given.calls_only ? " --calls-only" : "");
            set_replay(command);
            alarm(patience);
            set_step(-1);
            const program p = draw(next[1], where);
            // One for GPUs can always be drawn to its end, too; nothing else checks that where there is no GPU.
            if (!where.gpu) {
                setting with_gpu = where;
                with_gpu.gpu = true;
                draw(next[1], with_gpu);
            }
            if (given.print && world_rank == 0) std::fputs(describe(p).c_str(), stdout), std::fflush(stdout);
            execution(p, gpu, world_rank, several_threads, done).run();
        }
        alarm(0);
    }
    add_up(done);
    if (world_rank == 0)
        std::printf(
            "random: %d ranks, seeds from %llu: %llu programs, %llu requests, %llu epochs, %llu of them started by "
            "kernels and %llu in a stream, %llu partitions, %llu bytes checked\n",
            ranks, static_cast<unsigned long long>(given.first_seed), static_cast<unsigned long long>(done.programs),
            static_cast<unsigned long long>(done.requests), static_cast<unsigned long long>(done.epochs),
            static_cast<unsigned long long>(done.kernel_epochs), static_cast<unsigned long long>(done.stream_epochs),
            static_cast<unsigned long long>(done.partitions), static_cast<unsigned long long>(done.bytes));
    MPI_Finalize();
    return 0;
}

}  // namespace

void fail(const char *format, ...) {
    char text[512];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "rank %d: step %d: %s; to see it again: %s\n", world_rank, step_now, text, replay);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

std::string error_text(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

void must(int code, const char *call) {
    if (code != MPI_SUCCESS) fail("%s: %s", call, error_text(code).c_str());
}

void set_replay(const std::string &command) { std::snprintf(replay, sizeof replay, "%s", command.c_str()); }
void set_step(int step) { step_now = step; }

}  // namespace random_test

int main(int argc, char **argv) { return random_test::run(argc, argv); }
