// SPDX-License-Identifier: BSD-3-Clause
//
// What packing costs the kernel that computes beside it, and the reverse. Two computing kernels, one bound by
// arithmetic and one by memory, each alone and beside 16 MiB packed over and over in another stream: by mpix, and by
// cudaMemcpy2DAsync; in a stream of the same priority, where the packing's blocks wait behind the computing kernel's,
// and of a higher one.
//
// Everything is queued behind a gate, then goes at once; the computing kernel begins after the first packings. A row
// says how many packings ended while the computing kernel ran, and in which part of its time there was packing to do:
// less than 1 would mean that the slowdown is too small. Events are recorded after every few packings.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/by_hand.cuh"
#include "tests/bench/event_clock.cuh"
#include "tests/bench/machine.hpp"

using namespace bench;

namespace {

constexpr int64_t payload = int64_t{16} << 20;
constexpr int64_t array_bytes = int64_t{1} << 30, packed_bytes = int64_t{256} << 20;
constexpr int64_t vector_bytes = int64_t{1} << 30;   // of each of the triad's three
constexpr double computing_us = 1500;                // wanted
constexpr int most_batches = 90, most_in_batch = 4;  // a stream's queue has room for that
constexpr int tries = 5;

// ---- kernels -----------------------------------------------------------------------------------------------------

// Keeps what comes after it from starting, till the host says so, or for a while.
__global__ void gate(const volatile int *open, uint64_t patience_ns) {
    const uint64_t start = now_ns();
    while (*open == 0 && now_ns() - start < patience_ns) {
    }
}

// Four chains, so that the units are busy. The result depends on all of it, and is never stored for these operands.
__global__ void __launch_bounds__(256) arithmetic(float *out, int steps, float factor, float term) {
    float a = static_cast<float>(threadIdx.x), b = a + 1, c = a + 2, d = a + 3;
    for (int i = 0; i < steps; ++i) {
        a = fmaf(a, factor, term);
        b = fmaf(b, factor, term);
        c = fmaf(c, factor, term);
        d = fmaf(d, factor, term);
    }
    if (a + b + c + d == -1.0f) *out = a;
}

__global__ void __launch_bounds__(256) triad(float4 *to, const float4 *x, const float4 *y, float s, int64_t count) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float4 a = x[i], b = y[i];
    to[i] = {a.x + s * b.x, a.y + s * b.y, a.z + s * b.z, a.w + s * b.w};
}

// ---- what is measured --------------------------------------------------------------------------------------------

struct context {
    cudaStream_t computing, equal, high, gated;
    cudaEvent_t open, begin, end;
    std::vector<cudaEvent_t> batches;
    char *array, *packed, *vectors;
    int *flag, *flag_on_gpu;  // the gate's
    unsigned multiprocessors;
    int steps;  // of `arithmetic`
    std::string columns;
};

enum class compute { arithmetic, memory };

// Both in blocks that come and go, many times as many as are resident.
void put_compute(const context &c, compute what) {
    if (what == compute::arithmetic) {
        arithmetic<<<c.multiprocessors * 8 * 16, 256, 0, c.computing>>>(reinterpret_cast<float *>(c.vectors), c.steps,
                                                                        0.999f, 0.5f);
    } else {
        const int64_t count = vector_bytes / 16;
        float4 *const to = reinterpret_cast<float4 *>(c.vectors);
        for (int pass = 0; pass < 2; ++pass)
            triad<<<static_cast<unsigned>(count / 256), 256, 0, c.computing>>>(to, to + count, to + 2 * count, 3.0f,
                                                                               count);
    }
    check(cudaGetLastError(), "computing kernel");
}

struct packing {
    bool mpix;
    int64_t run, pitch;
    MPI_Datatype row;  // `run` bytes, `pitch` apart
    int64_t rows() const { return payload / run; }

    // The i-th of many: of other rows than the last, as far as the array has any, so that they come from memory.
    void put(const context &c, cudaStream_t stream, int64_t i) const {
        const int64_t span = rows() * pitch;
        char *const from = c.array + i % (array_bytes / span) * span;
        char *const to = c.packed + i % (packed_bytes / payload) * payload;
        if (!mpix) {
            check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(run), from, static_cast<std::size_t>(pitch),
                                    static_cast<std::size_t>(run), static_cast<std::size_t>(rows()),
                                    cudaMemcpyDeviceToDevice, stream),
                  "cudaMemcpy2DAsync");
            return;
        }
        MPI_Count position = 0;
        must(MPIX_Pack_enqueue(from, rows(), row, to, payload, &position, MPI_COMM_WORLD, stream), "MPIX_Pack_enqueue");
    }
};

// The gate is closed; what is put into the streams from here on waits for it.
void close_gate(const context &c) {
    *static_cast<volatile int *>(c.flag) = 0;
    gate<<<1, 1, 0, c.gated>>>(c.flag_on_gpu, 2'000'000'000u);
    check(cudaGetLastError(), "gate");
    check(cudaEventRecord(c.open, c.gated), "cudaEventRecord");
}
void open_gate(const context &c) {
    *static_cast<volatile int *>(c.flag) = 1;
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

double compute_alone(const context &c, compute what) {
    std::vector<double> all;
    for (int t = 0; t <= tries; ++t) {
        close_gate(c);
        check(cudaStreamWaitEvent(c.computing, c.open), "cudaStreamWaitEvent");
        check(cudaEventRecord(c.begin, c.computing), "cudaEventRecord");
        put_compute(c, what);
        check(cudaEventRecord(c.end, c.computing), "cudaEventRecord");
        open_gate(c);
        if (t > 0) all.push_back(between_us(c.begin, c.end));
    }
    return median(all);
}

// Of one of many that follow each other.
double pack_alone(const context &c, const packing &p, cudaStream_t stream) {
    constexpr int many = 64;
    std::vector<double> all;
    for (int t = 0; t <= tries; ++t) {
        close_gate(c);
        check(cudaStreamWaitEvent(stream, c.open), "cudaStreamWaitEvent");
        check(cudaEventRecord(c.begin, stream), "cudaEventRecord");
        for (int i = 0; i < many; ++i) p.put(c, stream, i);
        check(cudaEventRecord(c.end, stream), "cudaEventRecord");
        open_gate(c);
        if (t > 0) all.push_back(between_us(c.begin, c.end) / many);
    }
    return median(all);
}

struct both {
    double compute_us, pack_us;  // 0: no packing ended beside the computing kernel
    double packings, covered;
};

both together(const context &c, compute what, const packing &p, cudaStream_t stream, int batch, int batches) {
    std::vector<both> all;
    for (int t = 0; t <= tries; ++t) {
        close_gate(c);
        check(cudaStreamWaitEvent(stream, c.open), "cudaStreamWaitEvent");
        for (int b = 0; b < batches; ++b) {
            for (int i = 0; i < batch; ++i) p.put(c, stream, int64_t{b} * batch + i);
            check(cudaEventRecord(c.batches[static_cast<std::size_t>(b)], stream), "cudaEventRecord");
            if (b > 0) continue;
            check(cudaStreamWaitEvent(c.computing, c.batches[0]), "cudaStreamWaitEvent");
            check(cudaEventRecord(c.begin, c.computing), "cudaEventRecord");
            put_compute(c, what);
            check(cudaEventRecord(c.end, c.computing), "cudaEventRecord");
        }
        open_gate(c);
        both now{between_us(c.begin, c.end), 0, 0, 0};
        double last = 0;  // end of the last batch that ended beside the computing kernel, from the kernel's beginning
        for (int b = 1; b < batches; ++b) {
            const double at = between_us(c.begin, c.batches[static_cast<std::size_t>(b)]);
            if (at <= now.compute_us) {
                now.packings += batch;
                last = at;
            }
        }
        if (now.packings > 0) now.pack_us = last / now.packings;
        const double finish = between_us(c.begin, c.batches[static_cast<std::size_t>(batches) - 1]);
        now.covered = std::clamp(finish / now.compute_us, 0.0, 1.0);
        if (t > 0) all.push_back(now);
    }
    std::sort(all.begin(), all.end(), [](const both &a, const both &b) { return a.compute_us < b.compute_us; });
    return all[all.size() / 2];
}

void print(const context &c, const char *what, const char *beside, const packing &p, const char *priority,
           double compute_us, double pack_us, const both &b) {
    std::printf("%s,%s,%lld/%lld,%s,%.2f,%.2f,%.3f,%.0f,%.2f,%.2f,%.2f,%.3f,%s\n", what, beside,
                static_cast<long long>(p.run), static_cast<long long>(p.pitch), priority, compute_us, b.compute_us,
                b.compute_us / compute_us, b.packings, b.covered, pack_us, b.pack_us, b.pack_us / pack_us,
                c.columns.c_str());
    std::fflush(stdout);
}

void set_up(context &c) {
    check(cudaSetDevice(0), "cudaSetDevice");
    int least = 0, greatest = 0, count = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    for (cudaStream_t *s : {&c.computing, &c.equal, &c.gated})
        check(cudaStreamCreateWithPriority(s, cudaStreamNonBlocking, least), "cudaStreamCreateWithPriority");
    check(cudaStreamCreateWithPriority(&c.high, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
    for (cudaEvent_t *e : {&c.open, &c.begin, &c.end}) check(cudaEventCreate(e), "cudaEventCreate");
    c.batches.resize(most_batches);
    for (cudaEvent_t &e : c.batches) check(cudaEventCreate(&e), "cudaEventCreate");
    check(cudaMalloc(&c.array, array_bytes), "cudaMalloc");
    check(cudaMalloc(&c.packed, packed_bytes), "cudaMalloc");
    check(cudaMalloc(&c.vectors, 3 * vector_bytes), "cudaMalloc");
    check(cudaMemset(c.array, 1, array_bytes), "cudaMemset");
    check(cudaMemset(c.vectors, 0, 3 * vector_bytes), "cudaMemset");
    check(cudaHostAlloc(&c.flag, sizeof(int), cudaHostAllocMapped), "cudaHostAlloc");
    check(cudaHostGetDevicePointer(&c.flag_on_gpu, c.flag, 0), "cudaHostGetDevicePointer");
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    c.multiprocessors = static_cast<unsigned>(count);
    c.columns = machine_columns(0);
    c.steps = 1024;
    // Loaded now: behind the gate a kernel's first launch may wait for what runs.
    for (const compute what : {compute::arithmetic, compute::memory}) put_compute(c, what);
    close_gate(c);
    open_gate(c);
    for (int round = 0; round < 2; ++round)
        c.steps = std::max(1, static_cast<int>(c.steps * computing_us / compute_alone(c, compute::arithmetic)));
}

void tear_down(context &c) {
    for (cudaStream_t s : {c.computing, c.equal, c.high, c.gated}) check(cudaStreamDestroy(s), "cudaStreamDestroy");
    for (cudaEvent_t e : {c.open, c.begin, c.end}) check(cudaEventDestroy(e), "cudaEventDestroy");
    for (cudaEvent_t e : c.batches) check(cudaEventDestroy(e), "cudaEventDestroy");
    for (char *p : {c.array, c.packed, c.vectors}) check(cudaFree(p), "cudaFree");
    check(cudaFreeHost(c.flag), "cudaFreeHost");
}

}  // namespace

int main(int argc, char **argv) {
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    context c{};
    set_up(c);
    std::printf(
        "compute,beside,run/pitch,priority,compute_alone_us,compute_us,slowdown,packings_within,covered,"
        "pack_alone_us,pack_us,pack_slowdown,gpu,driver,cuda,date,mpi\n");
    constexpr int64_t shapes[][2] = {{16, 1024}, {1024, 2048}};
    for (const auto &[run, pitch] : shapes) {
        packing p{false, run, pitch, MPI_DATATYPE_NULL};
        MPI_Datatype bytes;
        MPI_Type_contiguous(static_cast<int>(run), MPI_BYTE, &bytes);
        MPI_Type_create_resized(bytes, 0, pitch, &p.row);
        MPI_Type_commit(&p.row);
        MPI_Type_free(&bytes);
        for (const bool mpix : {true, false})
            for (const bool high : {false, true}) {
                p.mpix = mpix;
                cudaStream_t const stream = high ? c.high : c.equal;
                // Once before it is queued behind the gate: what is made at the first call may wait for the GPU.
                p.put(c, stream, 0);
                check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
                const double alone = pack_alone(c, p, stream);
                // Ends often enough to be counted, and three times as long as the computing kernel alone.
                const int batch = std::clamp(static_cast<int>(computing_us / 10 / alone), 1, most_in_batch);
                const int batches =
                    std::clamp(static_cast<int>(3 * computing_us / (alone * batch)) + 2, 2, most_batches);
                for (const compute what : {compute::arithmetic, compute::memory}) {
                    const double compute_us = compute_alone(c, what);
                    print(c, what == compute::arithmetic ? "arithmetic" : "triad", mpix ? "mpix" : "cudaMemcpy2D", p,
                          high ? "high" : "equal", compute_us, alone, together(c, what, p, stream, batch, batches));
                }
            }
        MPI_Type_free(&p.row);
    }
    tear_down(c);
    MPI_Finalize();
    return 0;
}
