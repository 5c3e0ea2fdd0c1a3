// SPDX-License-Identifier: BSD-3-Clause
//
// gpus <sender> <receiver>: messages from rank 0 to rank 1 by the network, between buffers of which each is of a kind:
//   host    host memory
//   gpu     memory of a GPU, played with host memory
//   never   the same, of a process with MPIX_UCX_GPU=0
//   broken  the same, and the GPU does not take what a network device writes
//   managed the same, but no memory that a network takes
// Requests of several sizes and counts, and some that are freed before they are started; every byte of every epoch is
// looked at.
#include <mpi.h>
#include <mpix/mpix.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/select.h"

namespace {

namespace tr = mpix::transport;

constexpr std::size_t arena_bytes = std::size_t{8} << 20;
alignas(4096) char gpu_arena[arena_bytes];
alignas(4096) char host_arena[arena_bytes];

struct done_already final : tr::transfer {
    bool finished(mpix::status &) override { return true; }
};

// One GPU, whose memory is gpu_arena.
struct fake_gpu final : tr::transport {
    bool broken = false, managed = false;
    const char *name() const override { return "cuda_ipc"; }
    tr::transport_id id() const override { return tr::id_cuda_ipc; }
    unsigned capabilities() const override { return tr::device_store | tr::adopt_buffer; }
    bool usable() override { return true; }
    bool owns(const void *address, int &device) override {
        device = 0;
        return address >= gpu_arena && address < gpu_arena + arena_bytes;
    }
    mpix::status allocate(std::uint64_t bytes, int device, tr::region &out) override {
        out = {};
        out.address = std::calloc(bytes / 64 + 1, 64);
        out.bytes = bytes;
        out.device = device;
        return {};
    }
    mpix::status adopt(void *, std::uint64_t, tr::region &) override {
        return managed ? mpix::failure("the buffer is not memory from cudaMalloc") : mpix::status{};
    }
    void release(tr::region &own) override {
        std::free(own.address);
        own = {};
    }
    mpix::status describe(const tr::region &, tr::wire_region &) override {
        return mpix::failure("it shares no memory");
    }
    mpix::status attach(const tr::wire_region &, int, tr::region &) override {
        return mpix::failure("it shares no memory");
    }
    void detach(tr::region &) override {}
    mpix::status acquire_view(const tr::region &host, int, void *&out) override {
        out = host.address;
        return {};
    }
    void release_view(const tr::region &) override {}
    mpix::status write(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    mpix::status read(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    mpix::status admit_network(int) override {
        return broken ? mpix::failure("what the network writes is not seen here") : mpix::status{};
    }
    mpix::status start(void *to, const void *from, std::uint64_t bytes, int,
                       std::unique_ptr<tr::transfer> &out) override {
        std::memcpy(to, from, bytes);
        out = std::make_unique<done_already>();
        return {};
    }
};

int rank = -1;

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

char byte_of(int test, int epoch, std::size_t at) {
    std::uint64_t x = (at >> 3) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(test * 1000 + epoch);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return static_cast<char>((x ^ (x >> 27)) >> (8 * (at & 7)));
}

struct shape {
    int sends, receives;
    std::size_t bytes;
};

MPI_Request begin(char *buffer, const shape &s, int tag) {
    MPI_Request request;
    const int partitions = rank == 0 ? s.sends : s.receives;
    const auto count = static_cast<MPI_Count>(s.bytes / static_cast<std::size_t>(partitions));
    if (rank == 0)
        must(MPI_Psend_init(buffer, partitions, count, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
             "MPI_Psend_init");
    else
        must(MPI_Precv_init(buffer, partitions, count, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
             "MPI_Precv_init");
    return request;
}

void send_epoch(int test, int epoch, const shape &s, char *buffer, MPI_Request &request) {
    for (std::size_t at = 0; at < s.bytes; ++at) buffer[at] = byte_of(test, epoch, at);
    must(MPI_Start(&request), "MPI_Start");
    for (int i = 0; i < s.sends; ++i) must(MPI_Pready((i * 7 + epoch) % s.sends, request), "MPI_Pready");
    must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    std::memset(buffer, 0x77, s.bytes);  // it is ours again
}

void receive_epoch(int test, int epoch, const shape &s, char *buffer, MPI_Request &request) {
    const std::size_t each = s.bytes / static_cast<std::size_t>(s.receives);
    std::memset(buffer, 0x5a, s.bytes + 1);
    must(MPI_Start(&request), "MPI_Start");
    // What Parrived says is there is there.
    for (int look = 0; look < 20; ++look) {
        const int j = (look * 3 + epoch) % s.receives;
        int flag = 0;
        must(MPI_Parrived(request, j, &flag), "MPI_Parrived");
        const std::size_t first = static_cast<std::size_t>(j) * each;
        for (std::size_t at = first; flag && at < first + each; ++at)
            if (buffer[at] != byte_of(test, epoch, at)) give_up("a byte of a partition that had arrived is wrong");
    }
    must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    for (std::size_t at = 0; at < s.bytes; ++at)
        if (buffer[at] != byte_of(test, epoch, at)) give_up("byte " + std::to_string(at) + " is wrong");
    if (buffer[s.bytes] != 0x5a) give_up("a byte behind the buffer was written");
}

}  // namespace

int main(int argc, char **argv) {
    // Which rank this is decides what is played, and both before MPI_Init; the launchers tell by the environment.
    const char *told = std::getenv("PMI_RANK");
    if (told == nullptr) told = std::getenv("OMPI_COMM_WORLD_RANK");
    if (argc != 3 || told == nullptr) return 2;
    const std::string kind = argv[1 + std::atoi(told)];
    static fake_gpu gpu;
    gpu.broken = kind == "broken";
    gpu.managed = kind == "managed";
    tr::play_gpus(gpu);
    if (kind == "never") setenv("MPIX_UCX_GPU", "0", 1);
    must(MPI_Init(&argc, &argv), "MPI_Init");
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    char *const buffer = kind == "host" ? host_arena : gpu_arena;

    const shape shapes[] = {{1, 1, 1}, {4, 2, 4096}, {3, 3, 3 * 700001}, {1, 5, 5 << 20}, {6, 4, 12 << 10}};
    int test = 0;
    for (const shape &s : shapes) {
        ++test;
        // The first may have met before it goes: its sender then meets the second.
        if (test % 2 == 0 && rank == 1) {
            MPI_Request freed = begin(buffer, s, test);
            must(MPI_Request_free(&freed), "MPI_Request_free");
        }
        MPI_Request request = begin(buffer + test, s, test);
        for (int epoch = 1; epoch <= 4; ++epoch)
            rank == 0 ? send_epoch(test, epoch, s, buffer + test, request)
                      : receive_epoch(test, epoch, s, buffer + test, request);
        must(MPI_Request_free(&request), "MPI_Request_free");
    }
    std::printf("rank %d came through\n", rank);
    MPI_Finalize();
    return 0;
}
