// SPDX-License-Identifier: BSD-3-Clause
//
// pull [refused | twice | ends]: messages from the first rank to the last between GPUs whose memory and kernels host
// memory and threads play: a lone thread sends, groups wait, and read out of the send buffer. The hosts' part is the
// library's: setup, mappings, progress engine, Wait. On one rank, or two. `refused`: groups give up waiting; `twice`:
// what was offered is marked ready again; `ends`: the receiver's process ends before it has read.
#include <mpi.h>
#include <mpix/detail/order.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/backoff.hpp"
#include "tests/fake_gpu/rget_kernels.hpp"
#include "transport/select.h"

namespace {

namespace tr = mpix::transport;
using namespace fake_kernels;

struct done_already final : tr::transfer {
    bool finished(mpix::status &) override { return true; }
};

// One GPU for all processes, whose memory is shared memory.
class fake_gpu final : public tr::transport {
public:
    const char *name() const override { return "cuda_ipc"; }
    tr::transport_id id() const override { return tr::id_cuda_ipc; }
    unsigned capabilities() const override { return tr::device_store | tr::adopt_buffer; }
    bool usable() override { return true; }
    bool owns(const void *address, int &device) override {
        device = 0;
        return find(address).address != nullptr;
    }
    mpix::status allocate(std::uint64_t bytes, int, tr::region &out) override {
        if (auto bad = tr::node_memory().allocate(bytes + 64, tr::on_host, out); !bad.ok()) return bad;
        const std::lock_guard lock(mutex_);
        own_[static_cast<char *>(out.address)] = out;
        out.bytes = bytes;
        out.device = 0;
        out.handle = allocated;
        return {};
    }
    mpix::status adopt(void *buffer, std::uint64_t bytes, tr::region &out) override {
        out = find(buffer);
        if (out.address == nullptr) return mpix::failure("the buffer is not memory from cudaMalloc");
        out.bytes = bytes;
        out.device = 0;
        return {};
    }
    void release(tr::region &own) override {
        const tr::region it_was = std::exchange(own, {});
        if (it_was.handle != allocated) return;
        const std::lock_guard lock(mutex_);
        const auto it = own_.find(static_cast<char *>(it_was.address));
        if (it == own_.end()) std::abort();
        tr::node_memory().release(it->second);
        own_.erase(it);
    }
    mpix::status describe(const tr::region &own, tr::wire_region &out) override {
        tr::region host = own;
        host.device = tr::on_host;
        if (auto bad = tr::node_memory().describe(host, out); !bad.ok()) return bad;
        out.transport = tr::id_cuda_ipc;
        out.device = 0;
        const place here{getpid(), own.address};
        std::memcpy(out.address + sizeof out.address - sizeof here, &here, sizeof here);
        return {};
    }
    mpix::status attach(const tr::wire_region &wire, int, tr::region &out) override {
        place there;
        std::memcpy(&there, wire.address + sizeof wire.address - sizeof there, sizeof there);
        if (there.process == getpid()) {
            out = {};
            out.address = there.address;
            out.bytes = wire.bytes;
        } else {
            tr::wire_region host = wire;
            host.transport = tr::id_shm;
            host.device = tr::on_host;
            if (auto bad = tr::node_memory().attach(host, tr::on_host, out); !bad.ok()) return bad;
        }
        out.device = 0;
        ++attached;
        return {};
    }
    void detach(tr::region &peers) override {
        --attached;
        if (peers.backing != nullptr) tr::node_memory().detach(peers);
        peers = {};
    }
    mpix::status acquire_view(const tr::region &host, int, void *&out) override {
        ++views;
        out = host.address;
        return {};
    }
    void release_view(const tr::region &) override { --views; }
    // Kernels look at the same words.
    mpix::status write(void *to, const void *from, std::uint64_t bytes, int) override {
        for (std::uint64_t at = 0; at < bytes; at += 8) {
            std::uint64_t word;
            std::memcpy(&word, static_cast<const char *>(from) + at, 8);
            mpix::detail::store_release(reinterpret_cast<std::uint64_t *>(static_cast<char *>(to) + at), word);
        }
        return {};
    }
    mpix::status read(void *to, const void *from, std::uint64_t bytes, int) override {
        for (std::uint64_t at = 0; at < bytes; at += 8) {
            const std::uint64_t word = mpix::detail::load_acquire(
                reinterpret_cast<const std::uint64_t *>(static_cast<const char *>(from) + at));
            std::memcpy(static_cast<char *>(to) + at, &word, 8);
        }
        return {};
    }
    mpix::status start(void *to, const void *from, std::uint64_t bytes, int,
                       std::unique_ptr<tr::transfer> &out) override {
        std::memcpy(to, from, bytes);
        out = std::make_unique<done_already>();
        return {};
    }

    std::atomic<int> attached{0}, views{0};

private:
    static constexpr std::uint64_t allocated = 1;
    struct place {
        std::int64_t process;
        void *address;
    };
    tr::region find(const void *address) {
        const std::lock_guard lock(mutex_);
        const auto it = own_.find(static_cast<char *>(const_cast<void *>(address)));
        return it == own_.end() ? tr::region{} : it->second;
    }
    std::mutex mutex_;
    std::map<char *, tr::region> own_;
};
fake_gpu &gpu() {
    static auto *const one = new fake_gpu;
    return *one;
}

int rank = -1, ranks = 0;
bool sends() { return rank == 0; }
bool receives() { return rank == ranks - 1; }

[[noreturn]] void give_up(const std::string &what) {
    std::printf("rank %d: %s\n", rank, what.c_str());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}
void must(int code, const char *what) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    give_up(std::string(what) + ": " + text);
}
void must(bool good, const char *what) {
    if (!good) give_up(what);
}

char byte_of(int test, std::uint64_t epoch, std::size_t at) {
    std::uint64_t x =
        (at >> 3) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(test) * 1000 + epoch * 0x94d049bb133111ebu;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return static_cast<char>((x ^ (x >> 27)) >> (8 * (at & 7)));
}

// A send of this rank's, a receive, or both, exported.
class message {
public:
    message(int test, int sends_in, int receives_in, std::size_t bytes)
        : test_(test), receivers_(receives_in), bytes_(bytes) {
        if (sends()) {
            make(out_);
            must(MPI_Psend_init(at(out_), sends_in, static_cast<MPI_Count>(bytes) / sends_in, MPI_BYTE, ranks - 1, test,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &send),
                 "MPI_Psend_init");
            must(MPIX_Prequest_create(send, MPI_INFO_NULL, &sending), "MPIX_Prequest_create");
        }
        if (receives()) {
            make(in_);
            must(MPI_Precv_init(at(in_), receives_in, static_cast<MPI_Count>(bytes) / receives_in, MPI_BYTE, 0, test,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &receive),
                 "MPI_Precv_init");
            must(MPIX_Prequest_create(receive, MPI_INFO_NULL, &receiving), "MPIX_Prequest_create");
        }
    }
    ~message() {
        if (sends()) {
            must(MPIX_Prequest_free(&sending), "MPIX_Prequest_free");
            must(MPI_Request_free(&send), "MPI_Request_free");
        }
        if (receives()) {
            must(MPIX_Prequest_free(&receiving), "MPIX_Prequest_free");
            must(MPI_Request_free(&receive), "MPI_Request_free");
        }
        if (sends()) gpu().release(out_);
        if (receives()) gpu().release(in_);
    }
    message(const message &) = delete;
    message &operator=(const message &) = delete;

    void start() {
        ++epoch;
        if (receives()) {
            std::memset(in_.address, 0x5a, bytes_ + 16);
            must(MPI_Start(&receive), "MPI_Start");
        }
        if (sends()) {
            for (std::size_t i = 0; i < bytes_; ++i) at(out_)[i] = byte_of(test_, epoch, i);
            must(MPI_Start(&send), "MPI_Start");
        }
    }
    bool right(int j) const {
        const std::size_t each = bytes_ / static_cast<std::size_t>(receivers_),
                          first = static_cast<std::size_t>(j) * each;
        for (std::size_t i = first; i < first + each; ++i)
            if (at(in_)[i] != byte_of(test_, epoch, i)) return false;
        return true;
    }
    void wait() {
        if (sends()) {
            must(MPI_Wait(&send, MPI_STATUS_IGNORE), "MPI_Wait");
            const offered those = offered_of(sending, epoch);
            must(those.read + those.refused + those.later == those.in_all,
                 "the sender's epoch is over, and an offer has no answer");
            read += those.read;
            refused += those.refused;
            std::memset(out_.address, 0x77, bytes_);  // it is ours again
        }
        if (receives()) {
            must(MPI_Wait(&receive, MPI_STATUS_IGNORE), "MPI_Wait");
            for (int j = 0; j < receivers_; ++j) must(right(j), "a byte is wrong");
            for (std::size_t i = 0; i < 16; ++i)
                must(at(in_)[bytes_ + i] == 0x5a, "a byte behind the buffer was written");
        }
    }

    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    MPIX_Prequest sending = MPIX_PREQUEST_NULL, receiving = MPIX_PREQUEST_NULL;
    std::uint64_t epoch = 0;
    int read = 0, refused = 0;

private:
    void make(tr::region &r) const {
        const mpix::status bad = gpu().allocate(bytes_ + 16, 0, r);
        must(bad.ok(), bad.message().c_str());
    }
    static char *at(const tr::region &r) { return static_cast<char *>(r.address); }
    const int test_, receivers_;
    const std::size_t bytes_;
    tr::region out_, in_;
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
        message m(test, s.sends, s.receives, s.bytes);
        for (int e = 0; e < 8; ++e) {
            m.start();
            bool sent = true, received = true;
            std::thread sender(
                [&] { sent = !sends() || send_all(m.sending, m.epoch, seed + static_cast<unsigned>(test)); });
            if (receives())
                received = receive_all(m.receiving, 1 + e % 3, 2 + e % 2, [&](int j) { return m.right(j); });
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
    message m(1, 1, 1, 512);
    for (int e = 0; e < 20; ++e) {
        m.start();
        bool sent = true;
        std::thread sender([&] {
            if (!sends()) return;
            sent = e == 0 ? send_all(m.sending, m.epoch, 1)
                          : send_wanted(m.sending, 0, m.epoch, e % 2 == 0 ? 0 : 90'000'000);
        });
        if (receives()) {
            if (e > 0)
                receive_one(m.receiving, 0, e % 2 == 0 ? 1'200'000 + 100'000u * static_cast<unsigned>(e) : 30'000'000u);
            must(receive_all(m.receiving, 1, 2, [&](int j) { return m.right(j); }), "a kernel has found an error");
        }
        sender.join();
        must(sent, "a partition could not be marked ready");
        m.wait();
    }
    if (!sends()) return;
    std::printf("rank %d: %d were read, %d refused\n", rank, m.read, m.refused);
    must(m.refused != 0, "nothing was refused");
}

void first_epoch(message &m) {
    m.start();
    std::thread sender([&] { must(!sends() || send_all(m.sending, m.epoch, 1), "it could not be marked ready"); });
    if (receives())
        must(receive_all(m.receiving, 1, 2, [&](int j) { return m.right(j); }), "a kernel has found an error");
    sender.join();
    m.wait();
}

// One rank sends, another receives.
void twice() {
    message m(1, 1, 1, 512);
    first_epoch(m);
    for (int e = 0; e < 10; ++e) {
        m.start();
        if (receives()) {
            must(receive_all(m.receiving, 1, 2, [&](int j) { return m.right(j); }), "a kernel has found an error");
            m.wait();
            continue;
        }
        must(send_wanted(m.sending, 0, m.epoch, 0), "nobody has asked");
        must(refuses_again(m.sending, 0), "it was marked ready twice");
        must(MPI_Wait(&m.send, MPI_STATUS_IGNORE) == MPI_ERR_ARG, "MPI_Wait does not say so");
        m.wait();  // it may have said so before the epoch was over
    }
}

void ends() {
    message m(1, 1, 1, 512);
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
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::printf("rank 0: MPI_Wait has ended: %s\n", text);
    std::fflush(stdout);
    _exit(0);
}

}  // namespace

int main(int argc, char **argv) {
    tr::play_gpus(gpu());
    int provided = 0;
    must(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    must(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
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
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    std::printf("rank %d came through\n", rank);
    MPI_Finalize();
    must(gpu().attached == 0, "what was mapped is mapped yet");
    must(gpu().views == 0, "a view was not given back");
    return 0;
}
