// SPDX-License-Identifier: BSD-3-Clause
//
// One-way latency between two GPUs, from a kernel's pready to the data's use after wait_arrived: half of a round
// trip, over many partitions of one epoch, inside one kernel a rank. In the same run, with the same numbers of
// threads: the floor (floor.cuh), and what a program does without mpix: kernel, copy to the host, MPI_Send,
// MPI_Recv, copy to the device.
#include <cooperative_groups.h>
#include <getopt.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mpix/device.cuh>
#include <string>
#include <vector>

#include "tests/bench/floor.cuh"
#include "tests/bench/machine.hpp"

namespace cg = cooperative_groups;
using namespace bench;

namespace {

constexpr uint64_t patience_ns = 10'000'000'000u;

enum class scope { thread, warp, block };
constexpr const char *scope_names[] = {"thread", "warp", "block"};
// What a group can move within reasonable time: largest payload, bytes in one epoch.
constexpr uint64_t scope_payload[] = {4 << 10, 256 << 10, 64 << 20};
constexpr uint64_t scope_volume[] = {1 << 20, 32 << 20, 256 << 20};

struct options {
    uint64_t least = 8, most = 64 << 20;
    int step = 2, threads = 512, epochs = 7;
    std::vector<scope> scopes = {scope::block, scope::warp, scope::thread};
    const char *csv = nullptr;
};

void usage(const char *program) {
    std::fprintf(stderr,
                 "usage: mpirun -n 2 %s [--min BYTES] [--max BYTES] [--step FACTOR] [--threads N] [--epochs N]\n"
                 "           [--scope block|warp|thread|all] [--csv FILE]\n"
                 "BYTES from 8 to 64 MiB, powers of two. --csv -: CSV instead of text on the standard output.\n",
                 program);
}

bool parse(int argc, char **argv, options &o) {
    static const option known[] = {
        {"min", required_argument, nullptr, 'm'},    {"max", required_argument, nullptr, 'M'},
        {"step", required_argument, nullptr, 's'},   {"threads", required_argument, nullptr, 't'},
        {"epochs", required_argument, nullptr, 'e'}, {"scope", required_argument, nullptr, 'g'},
        {"csv", required_argument, nullptr, 'c'},    {nullptr, 0, nullptr, 0}};
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (c) {
            case 'm':
                o.least = std::strtoull(optarg, nullptr, 0);
                break;
            case 'M':
                o.most = std::strtoull(optarg, nullptr, 0);
                break;
            case 's':
                o.step = std::atoi(optarg);
                break;
            case 't':
                o.threads = std::atoi(optarg);
                break;
            case 'e':
                o.epochs = std::atoi(optarg);
                break;
            case 'c':
                o.csv = optarg;
                break;
            case 'g':
                if (std::strcmp(optarg, "all") == 0) break;
                o.scopes.clear();
                for (const scope s : {scope::thread, scope::warp, scope::block})
                    if (std::strcmp(optarg, scope_names[static_cast<int>(s)]) == 0) o.scopes = {s};
                break;
            default:
                return false;
        }
    }
    const auto power = [](uint64_t x) { return x >= 8 && x <= (64u << 20) && (x & (x - 1)) == 0; };
    return power(o.least) && power(o.most) && o.step >= 2 && (o.step & (o.step - 1)) == 0 && o.threads >= 32 &&
           o.threads <= 1024 && o.threads % 32 == 0 && o.epochs >= 1 && !o.scopes.empty() && optind == argc;
}

// ---- kernels -------------------------------------------------------------------------------------------

// The same interface as floor_port.
struct mpix_port {
    MPIX_Prequest send, receive;
    template <class Group>
    __device__ bool put(const Group &group, int i) const {
        return mpix::pready(group, i, send) == MPI_SUCCESS;
    }
    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        return mpix::wait_arrived(group, receive, i, patience_ns) == MPI_SUCCESS;
    }
};

template <class Port, class Group>
__device__ void play(const Group &group, const Port &port, int count, bool first, times *out) {
    for (int i = 0; i < count; ++i) {
        if (first) port.put(group, i);
        if (!port.await(group, i)) {  // no use to go on; the peer gives up as well
            if (group.thread_rank() == 0) ++out->errors;
            return;
        }
        if (!first) port.put(group, i);
        if (i == 0 && group.thread_rank() == 0) out->start = now_ns();
    }
    if (group.thread_rank() == 0) out->stop = now_ns();
}

template <scope By, class Port>
__global__ void ping_pong(const Port port, int count, bool first, times *out) {
    const auto block = cg::this_thread_block();
    if constexpr (By == scope::thread)
        play(mpix::this_thread(), port, count, first, out);
    else if constexpr (By == scope::warp)
        play(cg::tiled_partition<32>(block), port, count, first, out);
    else
        play(block, port, count, first, out);
}

__device__ uint64_t payload_word(uint64_t key, uint64_t i) {
    uint64_t x = key + i * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 27);
}

// Fresh payload out, poison in.
__global__ void prepare(uint64_t *out, uint64_t *in, uint64_t words, uint64_t key) {
    const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) {
        out[i] = payload_word(key, i);
        in[i] = ~uint64_t{0};
    }
}

__global__ void verify(const uint64_t *in, uint64_t words, uint64_t key, times *out) {
    const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step)
        if (in[i] != payload_word(key, i)) atomicAdd(reinterpret_cast<unsigned long long *>(&out->errors), 1ull);
}

__global__ void touch(char *at) { *at = *at; }  // stands for the kernel that makes, or takes, the data

// ---- one size -------------------------------------------------------------------------------------------

struct context {
    int rank, peer;
    cudaStream_t stream;
    times *result;  // on the device
};

// Run one way of sending for some epochs: fresh data, `epoch(e)`, all checked. The median over the epochs of what
// `epoch` returns, in microseconds.
double measure(const context &c, const options &o, const char *what, char *out, char *in, uint64_t total,
               const std::function<double(int)> &epoch) {
    static uint64_t key = 1;
    std::vector<double> all;
    for (int e = 0; e <= o.epochs; ++e) {
        key += 2;
        const uint64_t words = total / sizeof(uint64_t);
        prepare<<<264, 512, 0, c.stream>>>(reinterpret_cast<uint64_t *>(out), reinterpret_cast<uint64_t *>(in), words,
                                           key + c.rank);
        check(cudaGetLastError(), "prepare");
        check(cudaMemsetAsync(c.result, 0, sizeof(times), c.stream), "cudaMemsetAsync");
        check(cudaStreamSynchronize(c.stream), "prepare");
        MPI_Barrier(MPI_COMM_WORLD);
        const double us = epoch(e + 1);
        verify<<<264, 512, 0, c.stream>>>(reinterpret_cast<const uint64_t *>(in), words, key + c.peer, c.result);
        check(cudaGetLastError(), "verify");
        times t;
        check(cudaMemcpyAsync(&t, c.result, sizeof t, cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync");
        check(cudaStreamSynchronize(c.stream), what);
        if (t.errors != 0) {
            std::fprintf(stderr, "rank %d: %s: %llu wrong words or failed calls\n", c.rank, what,
                         static_cast<unsigned long long>(t.errors));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (e > 0) all.push_back(us);  // the first one warms up
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

// Half of a round trip, by the device's clock.
template <class Port>
double launch(const context &c, scope by, int threads, const Port &port, int count) {
    const bool first = c.rank == 0;
    if (by == scope::thread) ping_pong<scope::thread><<<1, 1, 0, c.stream>>>(port, count, first, c.result);
    if (by == scope::warp) ping_pong<scope::warp><<<1, 32, 0, c.stream>>>(port, count, first, c.result);
    if (by == scope::block) ping_pong<scope::block><<<1, threads, 0, c.stream>>>(port, count, first, c.result);
    check(cudaGetLastError(), "ping_pong");
    times t;
    check(cudaMemcpyAsync(&t, c.result, sizeof t, cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(c.stream), "ping_pong");
    return static_cast<double>(t.stop - t.start) * 1e-3 / (2.0 * (count - 1));
}

double measure_mpix(const context &c, const options &o, scope by, uint64_t bytes, int count, char *out) {
    char *in = nullptr;
    check(cudaMalloc(&in, bytes * count), "cudaMalloc");
    MPI_Request r[2];
    MPIX_Prequest p[2];
    const auto n = static_cast<MPI_Count>(bytes);
    MPI_Psend_init(out, count, n, MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, count, n, MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    for (int i = 0; i < 2; ++i) MPIX_Prequest_create(r[i], MPI_INFO_NULL, &p[i]);
    const double us = measure(c, o, "mpix", out, in, bytes * count, [&](int) {
        MPI_Startall(2, r);
        MPIX_Pbuf_prepare_all(2, r);  // so that nothing is deferred
        const double t = launch(c, by, o.threads, mpix_port{p[0], p[1]}, count);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        return t;
    });
    for (int i = 0; i < 2; ++i) {
        MPIX_Prequest_free(&p[i]);
        MPI_Request_free(&r[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // the peer has let go of `in`
    check(cudaFree(in), "cudaFree");
    return us;
}

double measure_floor(const context &c, const options &o, scope by, uint64_t bytes, int count, char *out) {
    const floor_channel channel(c.peer, bytes, count);
    return measure(c, o, "floor", out, channel.in(), bytes * count, [&](int e) {
        return launch(c, by, o.threads, channel.port(out, bytes, static_cast<uint64_t>(e)), count);
    });
}

double measure_host(const context &c, const options &o, uint64_t bytes, int count, char *out) {
    char *in = nullptr, *staging = nullptr;
    check(cudaMalloc(&in, bytes * count), "cudaMalloc");
    check(cudaMallocHost(&staging, bytes), "cudaMallocHost");
    const int n = static_cast<int>(bytes);
    const auto put = [&](int i) {
        touch<<<1, 1, 0, c.stream>>>(out + i * bytes);
        check(cudaGetLastError(), "touch");
        check(cudaMemcpyAsync(staging, out + i * bytes, bytes, cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync");
        check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize");
        MPI_Send(staging, n, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD);
    };
    const auto await = [&](int i) {
        MPI_Recv(staging, n, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        // The kernel that uses the data follows on the stream: the next put's.
        check(cudaMemcpyAsync(in + i * bytes, staging, bytes, cudaMemcpyHostToDevice, c.stream), "cudaMemcpyAsync");
    };
    const double us = measure(c, o, "host", out, in, bytes * count, [&](int) {
        double start = 0;
        for (int i = 0; i < count; ++i) {
            if (c.rank == 0) put(i);
            await(i);
            if (c.rank != 0) put(i);
            if (i == 0) start = MPI_Wtime();
        }
        check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize");
        return (MPI_Wtime() - start) * 1e6 / (2.0 * (count - 1));
    });
    check(cudaFreeHost(staging), "cudaFreeHost");
    check(cudaFree(in), "cudaFree");
    return us;
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("skipped: no GPU");
        return 77;
    }
    if (!parse(argc, argv, o)) {
        usage(argv[0]);
        return 2;
    }
    int provided, size, local;
    context c{};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        usage(argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    c.peer = 1 - c.rank;
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    const int device = local % devices;
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaMalloc(&c.result, sizeof(times)), "cudaMalloc");

    const bool to_stdout = o.csv != nullptr && std::strcmp(o.csv, "-") == 0;
    std::FILE *csv = c.rank != 0 || o.csv == nullptr ? nullptr : to_stdout ? stdout : std::fopen(o.csv, "w");
    std::FILE *text = c.rank != 0 || to_stdout ? nullptr : stdout;
    if (c.rank == 0 && o.csv != nullptr && csv == nullptr) {
        std::perror(o.csv);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const std::string columns = machine_columns(device);
    if (text) std::fprintf(text, "# mpix: one-way latency from pready to wait_arrived (us)\n# %s\n", columns.c_str());
    if (csv) std::fprintf(csv, "size,scope,threads,mpix_us,floor_us,ratio,host_send_us,gpu,driver,cuda,date,mpi\n");

    std::vector<double> host_us;  // the same whatever the scope
    for (const scope by : o.scopes) {
        const int s = static_cast<int>(by), threads = by == scope::block ? o.threads : by == scope::warp ? 32 : 1;
        if (text)
            std::fprintf(text, "\n# by one %s of %d\n%-12s%12s%12s%9s%16s\n", scope_names[s], threads, "# Size",
                         "mpix (us)", "floor (us)", "ratio", "host send (us)");
        std::size_t row = 0;
        for (uint64_t bytes = o.least; bytes <= std::min(o.most, scope_payload[s]); bytes *= o.step, ++row) {
            const int count = static_cast<int>(std::clamp<uint64_t>(scope_volume[s] / bytes, 4, 1000));
            const int by_host = static_cast<int>(std::clamp<uint64_t>((32 << 20) / bytes, 3, 100));
            char *out = nullptr;
            check(cudaMalloc(&out, bytes * std::max(count, by_host)), "cudaMalloc");
            const double mpix = measure_mpix(c, o, by, bytes, count, out);
            const double floor = measure_floor(c, o, by, bytes, count, out);
            if (row == host_us.size()) host_us.push_back(measure_host(c, o, bytes, by_host, out));
            check(cudaFree(out), "cudaFree");
            if (text)
                std::fprintf(text, "%-12llu%12.2f%12.2f%9.2f%16.2f\n", static_cast<unsigned long long>(bytes), mpix,
                             floor, mpix / floor, host_us[row]);
            if (csv)
                std::fprintf(csv, "%llu,%s,%d,%.3f,%.3f,%.3f,%.3f,%s\n", static_cast<unsigned long long>(bytes),
                             scope_names[s], threads, mpix, floor, mpix / floor, host_us[row], columns.c_str());
            if (text) std::fflush(text);
        }
    }
    if (csv && csv != stdout && std::fclose(csv) != 0) std::perror(o.csv);
    check(cudaFree(c.result), "cudaFree");
    check(cudaStreamDestroy(c.stream), "cudaStreamDestroy");
    MPI_Finalize();
    return 0;
}
