// SPDX-License-Identifier: BSD-3-Clause
//
// Between GPUs that only a network joins, here that of UCX between two processes of one host: kernels post to the work
// queue, the software HCA of the sender's process executes it, and the receiver's process hands on to its GPU what has
// come. Beside it, in the same run: the queue without a network, from staging to the flag that the software HCA writes;
// the least that any way by the two processors' hands takes, a GPU's word to its host and the host's back to the GPU;
// and kernel, copy to the host, MPI_Send. Then how many partitions a second so many threads post, without a network and
// over it.
//
// What UCX may use between the two processes is UCX_TLS's to say; MPIX_WORK_QUEUE=0 shows the same without the queue,
// by the progress engine alone.
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/flood.cuh"
#include "tests/bench/host_send.cuh"
#include "tests/bench/mpix_port.cuh"
#include "tests/bench/queue_alone.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

struct options {
    uint64_t least = 8, most = 64 << 10;
    int step = 8, threads = 256, messages = 100, epochs = 5;
    std::vector<int> posting = {1, 32, 256, 2048};
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line("mpirun -n 2 ",
                      "[--min BYTES] [--max BYTES] [--step FACTOR] [--threads N] [--messages N]\n"
                      "           [--posting THREADS] [--epochs N] [--csv FILE|-]\n"
                      "BYTES from 8 to 1 MiB, powers of two. --threads: of a block. --posting: 0 leaves the rate out.");
    line.value("min", o.least);
    line.value("max", o.most);
    line.value("step", o.step);
    line.value("threads", o.threads);
    line.value("messages", o.messages);
    line.value("epochs", o.epochs);
    line.only("posting", o.posting);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return power_of_two(o.least, 8, 1 << 20) && power_of_two(o.most, 8, 1 << 20) &&
               power_of_two(o.step, 2, 1 << 20) && whole_warps(o.threads) && o.messages >= 2 && o.messages <= 4096 &&
               o.epochs >= 1 && (o.posting[0] == 0 || power_of_two(o.posting[0], 1, 8192));
    });
}

// A word from a thread of the GPU to the host and back.
__global__ void call_host(uint64_t *call, const uint64_t *answer, int count, times *out) {
    for (int i = 1; i <= count; ++i) {
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(call), "l"(static_cast<uint64_t>(i)) : "memory");
        if (!poll_flag(answer, static_cast<uint64_t>(i))) {
            atomicAdd(&out->errors, 1ull);
            return;
        }
        if (i == 1) out->start = bench::now_ns();
    }
    out->stop = bench::now_ns();
}

double measure_call(pair &c, int count) {
    uint64_t *words = nullptr, *seen_by_gpu = nullptr;
    check(cudaHostAlloc(&words, 256, cudaHostAllocMapped), "cudaHostAlloc");
    check(cudaHostGetDevicePointer(&seen_by_gpu, words, 0), "cudaHostGetDevicePointer");
    uint64_t *const call = words, *const answer = words + 16;  // lines of their own
    *call = *answer = 0;
    check(cudaMemsetAsync(c.result, 0, sizeof(times), c.stream), "cudaMemsetAsync");
    call_host<<<1, 1, 0, c.stream>>>(seen_by_gpu, seen_by_gpu + 16, count, c.result);
    check(cudaGetLastError(), "call_host");
    const auto last = static_cast<uint64_t>(count);
    const double since = MPI_Wtime();
    for (uint64_t seen = 0; seen < last && MPI_Wtime() - since < 1e-9 * static_cast<double>(patience_ns);) {
        seen = __atomic_load_n(call, __ATOMIC_ACQUIRE);
        __atomic_store_n(answer, seen, __ATOMIC_RELEASE);
    }
    const times t = c.outcome("call_host");
    check(cudaFreeHost(words), "cudaFreeHost");
    return static_cast<double>(t.stop - t.start) * 1e-3 / (count - 1);
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    setenv("MPIX_TRANSPORTS", "ucx,cuda_ipc", 0);
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("over a network: one way from pready to wait_arrived (us); partitions a second", o.csv,
                  std::vector<column>{"size", "scope", "threads", "mpix_us", "queue_us", "gpu_host_gpu_us",
                                      "host_send_us", "queue_M/s", "mpix_M/s", "path"},
                  machine_names, machine_columns(c.device));
    double call = 0;
    if (c.rank == 0) call = measure_call(c, 2000);
    MPI_Barrier(MPI_COMM_WORLD);
    char *out = nullptr, *in = nullptr;
    const uint64_t room = std::max(o.most * static_cast<uint64_t>(o.messages), uint64_t{8 * 8192 * flood_rounds});
    check(cudaMalloc(&out, room), "cudaMalloc");
    check(cudaMalloc(&in, room), "cudaMalloc");
    for (uint64_t bytes = o.least; bytes <= o.most; bytes *= static_cast<uint64_t>(o.step)) {
        const double host = host_send_us(c, o.epochs, bytes, std::min(o.messages, 100), out);
        for (const scope by : {scope::thread, scope::warp, scope::block}) {
            if (by == scope::thread && bytes > 512) continue;
            const int threads = by == scope::block ? o.threads : by == scope::warp ? 32 : 1;
            std::string path;
            const double us = measure_mpix(c, {by, 1, o.threads, bytes, o.messages, o.epochs}, out, path);
            if (t) {
                const double queue = queue_alone(c, 1, bytes).round_trip_us(o.epochs, threads, 1000);
                t->row({cell(bytes), scope_names[static_cast<int>(by)], cell(threads), cell(us), cell(queue),
                        cell(call), cell(host), unmeasured, unmeasured, path});
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    for (const int threads : o.posting) {
        if (threads == 0) continue;
        const int blocks = std::max(1, threads / 256), each = std::min(threads, 256), messages = std::max(64, threads);
        const double us = flood_us(c, o.epochs, {scope::thread, blocks, each, 8, messages, 1}, out, in);
        if (t) {
            const double queue = queue_alone(c, static_cast<uint64_t>(threads), 8)
                                     .posting_us(o.epochs, blocks, each, std::max(10, 100000 / threads));
            t->row({"8", "posts", cell(threads), unmeasured, unmeasured, cell(call), unmeasured, cell(1 / queue),
                    cell(messages / us), unmeasured});
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    check(cudaFree(in), "cudaFree");
    check(cudaFree(out), "cudaFree");
    return 0;
}
