// SPDX-License-Identifier: BSD-3-Clause
//
// rget [refused | twice | ends]: messages from the first rank to the last between GPUs whose memory and kernels host
// memory and threads play: a lone thread sends, groups wait, and read out of the send buffer. The hosts' part is the
// library's: setup, mappings, progress engine, Wait. On one rank, or two. `refused`: groups give up waiting; `twice`:
// what was offered is marked ready again; `ends`: the receiver's process ends before it has read.
#include <mpi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "tests/backoff.hpp"
#include "tests/fake_gpu/message.hpp"
#include "tests/fake_gpu/rget_kernels.hpp"

namespace {

using namespace fake_kernels;

class read_message : public message {
public:
    using message::message;

    bool right_now(int j) const { return right(j, epoch); }
    void wait() {
        if (sends()) {
            must(MPI_Wait(&send, MPI_STATUS_IGNORE), "MPI_Wait");
            const offered those = offered_of(sending, epoch);
            must(those.read + those.refused + those.later == those.in_all,
                 "the sender's epoch is over, and an offer has no answer");
            read += those.read;
            refused += those.refused;
            poison_out();  // it is ours again
        }
        if (receives()) {
            must(MPI_Wait(&receive, MPI_STATUS_IGNORE), "MPI_Wait");
            must(all_right(epoch), "a byte is wrong, or one behind the buffer was written");
        }
    }

    int read = 0, refused = 0;
};

struct shape {
    int sends, receives;
    std::size_t bytes;
    bool may_be_read;
};

void all_ways(std::uint64_t seed) {
    const shape shapes[] = {{1, 1, 512, true},  {4, 4, 4096, true},     {3, 2, 1152, true},
                            {2, 6, 1536, true}, {8, 1, 8 * 96, true},   {1, 1, 24, false},
                            {2, 2, 176, true},  {2, 2, 2 * 500, false}, {1, 1, 1 << 20, false}};
    int test = 0, all_read = 0;
    for (const shape &s : shapes) {
        ++test;
        // Requests that nobody ever starts, whichever of them meet.
        if (test % 2 == 0) message unused(test, s.sends, s.receives, s.bytes);
        read_message m(test, s.sends, s.receives, s.bytes);
        for (int e = 0; e < 8; ++e) {
            m.start();
            bool sent = true, received = true;
            std::thread sender(
                [&] { sent = !sends() || send_all(m.sending, m.epoch, seed + static_cast<unsigned>(test)); });
            if (receives())
                received = receive_all(m.receiving, 1 + e % 3, 2 + e % 2, [&](int j) { return m.right_now(j); });
            sender.join();
            must(sent && received, "a kernel has found an error");
            m.wait();
        }
        if (sends()) {
            must(s.may_be_read || m.read == 0, "the receiver has read what it was not to");
            std::printf("rank %d: of %d partitions %d were read\n", rank, 8 * s.sends, m.read);
            all_read += m.read;
        }
    }
    must(!sends() || all_read != 0, "the receiver has read nothing");
}

// Groups that give up waiting: the engine moves what is then offered, or it was read just before. In every other epoch
// the offer comes long after their limit.
void refused() {
    read_message m(1, 1, 1, 512);
    for (int e = 0; e < 20; ++e) {
        m.start();
        bool sent = true;
        std::thread sender([&] {
            if (!sends()) return;
            sent = e == 0 ? send_first(m.sending, m.epoch)
                          : send_wanted(m.sending, 0, m.epoch, e % 2 == 0 ? 0 : 90'000'000);
        });
        if (receives()) {
            if (e > 0)
                receive_one(m.receiving, 0, e % 2 == 0 ? 1'200'000 + 100'000u * static_cast<unsigned>(e) : 30'000'000u);
            must(receive_all(m.receiving, 1, 2, [&](int j) { return m.right_now(j); }), "a kernel has found an error");
        }
        sender.join();
        must(sent, "a partition could not be marked ready");
        m.wait();
    }
    if (!sends()) return;
    std::printf("rank %d: %d were read, %d refused\n", rank, m.read, m.refused);
    must(m.refused != 0, "nothing was refused");
}

void first_epoch(read_message &m) {
    m.start();
    std::thread sender([&] { must(!sends() || send_first(m.sending, m.epoch), "it could not be marked ready"); });
    if (receives())
        must(receive_all(m.receiving, 1, 2, [&](int j) { return m.right_now(j); }), "a kernel has found an error");
    sender.join();
    m.wait();
}

// One rank sends, another receives.
void twice() {
    read_message m(1, 1, 1, 512);
    first_epoch(m);
    for (int e = 0; e < 10; ++e) {
        m.start();
        if (receives()) {
            must(receive_all(m.receiving, 1, 2, [&](int j) { return m.right_now(j); }), "a kernel has found an error");
            m.wait();
            continue;
        }
        must(send_wanted(m.sending, 0, m.epoch, 0), "nobody has asked");
        must(refuses_again(m.sending, 0), "it was marked ready twice");
        must(MPI_Wait(&m.send, MPI_STATUS_IGNORE) == MPI_ERR_ARG, "MPI_Wait does not say so");
        m.wait();  // that of an inactive request; counts the answers
    }
}

void ends() {
    read_message m(1, 1, 1, 512);
    first_epoch(m);
    m.start();
    int process = getpid();
    if (receives()) {
        must(MPI_Send(&process, 1, MPI_INT, 0, 9, MPI_COMM_WORLD), "MPI_Send");
        std::thread([&] { receive_one(m.receiving, 0, 60'000'000'000u); }).detach();
        for (backoff wait; !somebody_waits(m.receiving, 0, m.epoch);) wait.pause();
        raise(SIGKILL);
    }
    must(MPI_Recv(&process, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    for (backoff wait; !somebody_waits(m.sending, 0, m.epoch) || kill(process, 0) == 0;) wait.pause();
    must(send_wanted(m.sending, 0, m.epoch, 0), "it could not be marked ready");
    const int code = MPI_Wait(&m.send, MPI_STATUS_IGNORE);
    must(code != MPI_SUCCESS, "nobody says that the receiver has ended");
    must(offered_of(m.sending, m.epoch).in_all == 1, "it was not offered");
    std::printf("rank 0: MPI_Wait has ended: %s\n", text_of(code).c_str());
    std::fflush(stdout);
    _exit(0);
}

}  // namespace

int main(int argc, char **argv) {
    begin(argc, argv);
    const std::string_view what = argc > 1 ? argv[1] : "";
    std::random_device entropy;
    const std::uint64_t seed = entropy();
    std::printf("rank %d: seed %llu\n", rank, static_cast<unsigned long long>(seed));
    if (what == "refused")
        refused();
    else if (what == "twice")
        twice();
    else if (what == "ends")
        ends();
    else
        all_ways(seed);
    end();
    return 0;
}
