// SPDX-License-Identifier: BSD-3-Clause
#include "host/info/self_test.h"

#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/cuda/memory.h"
#include "device/cuda/node_gpus.h"
#include "host/format.h"
#include "host/info/foreign_launcher.h"
#include "transport/select.h"

namespace mpix {
namespace {

constexpr int partitions = 4, epochs = 3;
constexpr std::uint64_t partition_sizes[] = {8, 1000, 65536, 1 << 20};

// A buffer in host memory, or on a GPU.
class buffer {
public:
    status allocate(std::uint64_t bytes, bool on_gpu, int device) {
        host_.resize(bytes);
        if (!on_gpu) return {};
        device_ = device;
        const std::string why = gpu::allocate(device, bytes, gpu_);
        return why.empty() ? status{} : failure(why);
    }
    buffer() = default;
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    ~buffer() {
        if (gpu_ != nullptr) gpu::release(device_, gpu_);
    }
    void *address() { return gpu_ != nullptr ? gpu_ : host_.data(); }
    // What host() has goes to the GPU, and back.
    status to_gpu() {
        return gpu_ == nullptr ? status{} : transport::devices()->write(gpu_, host_.data(), host_.size(), device_);
    }
    status from_gpu() {
        return gpu_ == nullptr ? status{} : transport::devices()->read(host_.data(), gpu_, host_.size(), device_);
    }
    std::vector<unsigned char> &host() { return host_; }

private:
    std::vector<unsigned char> host_;
    void *gpu_ = nullptr;
    int device_ = 0;
};

void fill(std::vector<unsigned char> &bytes, std::uint64_t key) {
    for (unsigned char &byte : bytes) {
        key = key * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<unsigned char>(key >> 56);
    }
}

status of_call(const char *call, int code) {
    if (code == MPI_SUCCESS) return {};
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return failure(std::strncmp(text, "MPI", 3) == 0 ? text : format("{}: {}", call, text));
}

struct ring {
    int me = 0, ranks = 0;
    int to() const { return (me + 1) % ranks; }
    int from() const { return (me + ranks - 1) % ranks; }
};

// Whether this process reaches the memory of the next one.
status try_single_copy(const ring &in) {
    const transport::memory_probe mine = transport::probe_of_this_process();
    transport::memory_probe theirs{};
    PMPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, in.from(), 0, &theirs, sizeof theirs, MPI_BYTE, in.to(), 0,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    transport::peer_memory reached;
    return transport::reach_memory(theirs, reached);
}

struct pair_of_requests {
    MPI_Request all[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Request &send() { return all[0]; }
    MPI_Request &receive() { return all[1]; }
};

status run_epoch(const ring &in, pair_of_requests &requests, buffer &out, buffer &arrived, std::uint64_t key) {
    fill(out.host(), key + static_cast<std::uint64_t>(in.me));
    fill(arrived.host(), ~key);
    for (buffer *const one : {&out, &arrived})
        if (status bad = one->to_gpu(); !bad.ok()) return bad;
    if (status bad = of_call("MPI_Startall", MPI_Startall(2, requests.all)); !bad.ok()) return bad;
    for (int i = partitions - 1; i >= 0; --i)
        if (status bad = of_call("MPI_Pready", MPI_Pready(i, requests.send())); !bad.ok()) return bad;
    MPI_Status statuses[2];
    if (const int code = MPI_Waitall(2, requests.all, statuses); code != MPI_SUCCESS) {
        const bool by_request = code == MPI_ERR_IN_STATUS;
        const int its = !by_request                            ? code
                        : statuses[0].MPI_ERROR != MPI_SUCCESS ? statuses[0].MPI_ERROR
                                                               : statuses[1].MPI_ERROR;
        return of_call("MPI_Waitall", its);
    }
    if (status bad = arrived.from_gpu(); !bad.ok()) return bad;
    std::vector<unsigned char> expected(arrived.host().size());
    fill(expected, key + static_cast<std::uint64_t>(in.from()));
    const auto wrong = std::mismatch(expected.begin(), expected.end(), arrived.host().begin());
    if (wrong.first == expected.end()) return {};
    return failure(format("byte {} of {} is wrong", wrong.first - expected.begin(), expected.size()));
}

status run_size(const ring &in, const checked_path *path, std::uint64_t each, std::string &carried_by) {
    const bool on_gpu = path != nullptr && path->gpu_memory;
    const int gpus = on_gpu ? gpu::count_gpus() : 0;
    if (on_gpu && gpus == 0) return failure("this process can use no GPU");
    buffer out, arrived;
    for (buffer *const one : {&out, &arrived})
        if (status bad = one->allocate(each * partitions, on_gpu, on_gpu ? in.me % gpus : 0); !bad.ok()) return bad;
    pair_of_requests requests;
    const auto count = static_cast<MPI_Count>(each);
    status bad = of_call("MPI_Psend_init", MPI_Psend_init(out.address(), partitions, count, MPI_BYTE, in.to(), 1,
                                                          MPI_COMM_WORLD, MPI_INFO_NULL, &requests.send()));
    if (bad.ok())
        bad = of_call("MPI_Precv_init", MPI_Precv_init(arrived.address(), partitions, count, MPI_BYTE, in.from(), 1,
                                                       MPI_COMM_WORLD, MPI_INFO_NULL, &requests.receive()));
    for (int epoch = 0; epoch < epochs && bad.ok(); ++epoch)
        bad = run_epoch(in, requests, out, arrived, each * 1000003 + static_cast<std::uint64_t>(epoch) * 7919);
    if (bad.ok()) {
        char name[32] = "";
        MPIX_Request_path(requests.send(), name, sizeof name);
        carried_by = name;
        if (path != nullptr && carried_by != path->expected)
            bad = failure(format("the bytes went by {}, not by {}", carried_by, path->expected));
    }
    // Requests that have failed may be active.
    for (MPI_Request &one : requests.all)
        if (one != MPI_REQUEST_NULL && bad.ok()) MPI_Request_free(&one);
    return bad.ok() ? bad : bad.in_context(format("with partitions of {} bytes: ", each));
}

}  // namespace

const std::vector<checked_path> &checked_paths() {
    static const auto *const all = new std::vector<checked_path>{
        {"shm", "shm", "0", "shm", false},
        {"single_copy", "shm", "1", "shm", false},
        {"cuda_ipc", "shm,cuda_ipc", "0", "cuda_ipc", true},
        {"ucx", "ucx", "0", "ucx", false},
        {"verbs", "verbs", "0", "verbs", false},
    };
    return *all;
}

const checked_path *find_path(const std::string &name) {
    for (const checked_path &one : checked_paths())
        if (name == one.name) return &one;
    return nullptr;
}

int test_in_ranks(int *count, char ***values, const checked_path *path) {
    if (path != nullptr) {
        setenv("MPIX_TRANSPORTS", path->transports, 1);
        setenv("MPIX_SINGLE_COPY_BYTES", path->single_copy_bytes, 1);
    }
    setenv("MPIX_STALL_SECONDS", "30", 0);
    if (MPI_Init(count, values) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ring in;
    MPI_Comm_rank(MPI_COMM_WORLD, &in.me);
    MPI_Comm_size(MPI_COMM_WORLD, &in.ranks);
    if (in.ranks < 2) {
        tell_too_few_ranks("--check");
        MPI_Finalize();
        return 2;
    }
    status bad;
    std::string carried_by;
    if (path != nullptr && std::strcmp(path->name, "single_copy") == 0) bad = try_single_copy(in);
    int any_failed = 0;
    for (const std::uint64_t each : partition_sizes) {
        if (bad.ok()) bad = run_size(in, path, each, carried_by);
        // All together, so that no rank waits for one that has given up.
        const int failed = !bad.ok();
        PMPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any_failed) break;
    }
    if (!bad.ok()) {
        std::fprintf(stderr, "mpix_info: rank %d: %s\n", in.me, bad.message().c_str());
        std::fflush(stderr);
    }
    if (any_failed) {
        // Epochs that have not ended would keep MPI_Finalize waiting. And after MPI_Abort MPICH's launcher may end before it has read
        // what the ranks have printed.
        PMPI_Barrier(MPI_COMM_WORLD);
        std::_Exit(1);
    }
    if (in.me == 0) std::printf("mpix_info: %d ranks, each byte right, by %s\n", in.ranks, carried_by.c_str());
    MPI_Finalize();
    return 0;
}

}  // namespace mpix
