// SPDX-License-Identifier: BSD-3-Clause
//
// kernel_epochs [quiet | landing | readfail | null | ends <rank>]: epochs that kernels run, played by host threads, and
// the hosts' completion of them, which is the library's: of an epoch that kernels of both sides have started, no host is
// told. On one rank, or two. `landing`: the sender cannot map the receive buffer, so that the receiver's engine copies;
// `readfail`: the GPU's memory cannot be read afterwards; `null`: a receive from MPI_PROC_NULL; `ends`: the process of
// that rank ends after such an epoch.
#include <mpi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/fake_gpu/kernel_epochs_kernels.hpp"
#include "tests/fake_gpu/message.hpp"

namespace {

using namespace fake_kernels;

using generator = std::mt19937_64;

bool once_in(generator &random, unsigned n) { return random() % n == 0; }

// The host calls MPI meanwhile, as programs do that wait for a stream; without a progress thread it must.
bool host_helps = true;
void launch_and_synchronise(const std::function<bool()> &kernel) {
    std::atomic<bool> ended{false};
    bool good = false;
    std::thread stream([&] {
        good = kernel();
        ended = true;
    });
    for (backoff wait; host_helps && !ended; wait.pause()) MPIX_Progress();
    stream.join();
    must(good, "a kernel has found an error, or wrong bytes");
}
void run_sender(message &m, const sending_kernel &k) {
    launch_and_synchronise([&] { return run(k, m.sending, [&](std::uint64_t epoch) { m.fill_out(epoch); }); });
}
void run_receiver(message &m, const receiving_kernel &k) {
    launch_and_synchronise([&] {
        return run(
            k, m.receiving, [&](std::uint64_t epoch) { return m.all_right(epoch); }, [&] { m.poison_in(); });
    });
}
// What this rank does for each side, at the same time.
void both_sides(const std::function<void()> &sender, const std::function<void()> &receiver) {
    std::thread other;
    if (sends() && receives())
        other = std::thread(sender);
    else if (sends())
        sender();
    if (receives()) receiver();
    if (other.joinable()) other.join();
}

void complete(MPI_Request &request, unsigned way) {
    MPI_Status status;
    int flag = 0, index = 0, n = 0;
    backoff wait;
    switch (way % 8) {
        case 0:
            return must(MPI_Wait(&request, &status), "MPI_Wait");
        case 1:
            return must(MPI_Waitany(1, &request, &index, &status), "MPI_Waitany");
        case 2:
            return must(MPI_Waitsome(1, &request, &n, &index, &status), "MPI_Waitsome");
        case 3:
            return must(MPI_Waitall(1, &request, &status), "MPI_Waitall");
        case 4:
            for (; flag == 0; wait.pause()) must(MPI_Test(&request, &flag, &status), "MPI_Test");
            return;
        case 5:
            for (; flag == 0; wait.pause()) must(MPI_Testany(1, &request, &index, &flag, &status), "MPI_Testany");
            return;
        case 6:
            for (; n == 0; wait.pause()) must(MPI_Testsome(1, &request, &n, &index, &status), "MPI_Testsome");
            return;
        default:
            for (; flag == 0; wait.pause()) must(MPI_Testall(1, &request, &flag, &status), "MPI_Testall");
    }
}

struct shape {
    int sends, receives;
    std::size_t bytes;
    int threads;
};

constexpr std::uint64_t all_epochs = 48;

// The last epoch of the activation that begins with this one.
std::uint64_t last_epoch(generator &random, std::uint64_t first) {
    return std::min(all_epochs, first + (once_in(random, 3) ? 0 : random() % 6));
}

// The number of activations with a quiet end.
int send_epochs(message &m, const shape &s, generator random) {
    int quiet = 0;
    for (std::uint64_t first = 1, last; first <= all_epochs; first = last + 1) {
        last = last_epoch(random, first);
        const unsigned all = (1u << s.sends) - 1;
        const bool by_host = first == last && once_in(random, 2);
        sending_kernel k{.first = first, .last = last, .threads = s.threads};
        if (by_host)
            k.not_in_last = all;
        else if (once_in(random, 3))
            k.not_in_last = static_cast<unsigned>(random()) & all;
        k.waits_for_last = k.not_in_last == 0 && once_in(random, 2);
        k.patient = once_in(random, 2);
        must(MPI_Start(&m.send), "MPI_Start");
        if (by_host)
            m.fill_out(first);
        else
            run_sender(m, k);
        for (int p = 0; p < s.sends; ++p)
            if ((k.not_in_last >> p & 1) != 0) must(MPI_Pready(p, m.send), "MPI_Pready");
        quiet += is_quiet_end(m.sending, last);
        complete(m.send, static_cast<unsigned>(random()));
        m.poison_out();  // it is ours again
        if (!once_in(random, 6)) continue;
        take_back(m.sending);
        m.sending = exported(m.send);
    }
    return quiet;
}

void receive_epochs(message &m, const shape &s, generator random) {
    for (std::uint64_t first = 1, last; first <= all_epochs; first = last + 1) {
        last = last_epoch(random, first);
        m.poison_in();
        must(MPI_Start(&m.receive), "MPI_Start");
        if (first != last || once_in(random, 2))
            run_receiver(m, {.first = first,
                             .last = last,
                             .threads = s.threads,
                             .asks_in_last = !once_in(random, 3),
                             .waits_for_last = once_in(random, 2)});
        for (int j = once_in(random, 3) ? 0 : s.receives, flag = 0; j < s.receives; j += flag)
            must(MPI_Parrived(m.receive, j, &flag), "MPI_Parrived");
        complete(m.receive, static_cast<unsigned>(random()));
        must(m.all_right(last), "a byte is wrong, or one behind the buffer was written");
        if (!once_in(random, 6)) continue;
        take_back(m.receiving);
        m.receiving = exported(m.receive);
    }
}

// An activation whose last epoch ends quietly, on both sides, except for the hosts' completion; that of the receiver's
// kernel is over before it.
constexpr std::uint64_t quiet_epochs = 4;
void run_to_quiet_end(message &m) {
    m.start();
    both_sides(
        [&] {
            run_sender(m, {.first = 1, .last = quiet_epochs, .patient = true});
            must(is_quiet_end(m.sending, quiet_epochs), "the sender's host was told of the end");
        },
        [&] { run_receiver(m, {.first = 1, .last = quiet_epochs, .asks_in_last = false}); });
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

// Activations of different lengths on the two sides. The number of those with a quiet end.
int activations(std::uint64_t seed) {
    const shape shapes[] = {{3, 2, 384, 2}, {1, 1, 48, 1}, {2, 4, 4096, 2}};
    int quiet = 0, test = 1;
    for (const shape &s : shapes) {
        message m(++test, s.sends, s.receives, s.bytes);
        const std::uint64_t own = seed + 2 * static_cast<unsigned>(test);
        both_sides([&] { quiet += send_epochs(m, s, generator(own)); },
                   [&] { receive_epochs(m, s, generator(own + 1)); });
    }
    return quiet;
}

// One for certain, then activations.
void quiet(std::uint64_t seed) {
    {
        message m(1, 2, 2, 128);
        run_to_quiet_end(m);
        if (sends()) complete(m.send, static_cast<unsigned>(seed));
        if (receives()) complete(m.receive, static_cast<unsigned>(seed >> 8));
        must(!receives() || m.all_right(quiet_epochs), "a byte is wrong, or one behind the buffer was written");
    }
    const int quiet = activations(seed);
    if (sends()) std::printf("rank %d: %d activations with a quiet end\n", rank, quiet);
}

// The receiver's engine delivers, so hosts are told of each epoch.
void landing(std::uint64_t seed) {
    gpu().pooled = true;
    const char *const progress = std::getenv("MPIX_PROGRESS");
    host_helps = progress != nullptr && std::string_view(progress) == "never";
    must(activations(seed) == 0, "the sender's host was not told of an epoch's end");
}

void read_fails() {
    message m(1, 2, 2, 128);
    run_to_quiet_end(m);
    const auto fails = [](MPI_Request &request) {
        const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        must(code != MPI_SUCCESS, "MPI_Wait does not say that the GPU's memory cannot be read");
        const std::string text = text_of(code);
        must(text.find("an illegal memory access") != std::string::npos, text.c_str());
    };
    gpu().reads_fail = true;
    if (sends()) fails(m.send);
    if (receives()) fails(m.receive);
    gpu().reads_fail = false;
}

// Neither the kernel nor the host waits for an epoch: all are over at once.
void null() {
    tr::region buffer;
    must(gpu().allocate(128, 0, buffer).ok(), "no memory");
    MPI_Request receive = MPI_REQUEST_NULL;
    must(MPI_Precv_init(buffer.address, 1, 128, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive),
         "MPI_Precv_init");
    MPIX_Prequest receiving = exported(receive);
    for (unsigned way = 0; way < 16; ++way) {
        must(MPI_Start(&receive), "MPI_Start");
        must(run_empty(receiving, static_cast<int>(way % 5)), "the kernel cannot run its epochs");
        complete(receive, way);
    }
    take_back(receiving);
    must(MPI_Request_free(&receive), "MPI_Request_free");
    gpu().release(buffer);
}

// The other rank completes the epoch once its library has noticed that the process has ended.
void ends(int ending) {
    message m(1, 2, 2, 128);
    message never(2, 1, 1, 64);  // whose error tells when that is
    run_to_quiet_end(m);
    int process = getpid();
    if (rank == ending) {
        if (sends()) must(MPI_Wait(&m.send, MPI_STATUS_IGNORE), "MPI_Wait");
        must(MPI_Send(&process, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD), "MPI_Send");
        must(MPI_Recv(&process, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
        raise(SIGKILL);
    }
    must(MPI_Recv(&process, 1, MPI_INT, ending, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    must(MPI_Send(&process, 1, MPI_INT, ending, 9, MPI_COMM_WORLD), "MPI_Send");
    for (backoff wait; kill(process, 0) == 0;) wait.pause();
    never.start();
    if (sends()) must(MPI_Pready(0, never.send), "MPI_Pready");
    must(MPI_Wait(sends() ? &never.send : &never.receive, MPI_STATUS_IGNORE) != MPI_SUCCESS,
         "nobody says that the other process has ended");
    must(MPI_Wait(sends() ? &m.send : &m.receive, MPI_STATUS_IGNORE), "MPI_Wait");
    if (receives()) must(m.all_right(quiet_epochs), "a byte is wrong, or one behind the buffer was written");
    std::printf("rank %d: the epoch is complete\n", rank);
    std::fflush(stdout);
    _exit(0);
}

}  // namespace

int main(int argc, char **argv) {
    begin(argc, argv);
    const std::string_view what = argc > 1 ? argv[1] : "";
    std::random_device entropy;
    const std::uint64_t seed = argc > 2 ? std::stoull(argv[2]) : entropy();
    std::printf("rank %d: seed %llu\n", rank, static_cast<unsigned long long>(seed));
    if (what == "readfail")
        read_fails();
    else if (what == "null")
        null();
    else if (what == "ends")
        ends(static_cast<int>(seed));
    else if (what == "landing")
        landing(seed);
    else
        quiet(seed);
    end();
    return 0;
}
