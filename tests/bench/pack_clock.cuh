// SPDX-License-Identifier: BSD-3-Clause
//
// What the benches of packing share: the memory, the clocks, the rows of their tables, and the calls under test.
#ifndef MPIX_TESTS_BENCH_PACK_CLOCK_CUH
#define MPIX_TESTS_BENCH_PACK_CLOCK_CUH

#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/event_clock.cuh"
#include "tests/bench/machine.hpp"
#include "tests/bench/table.hpp"

namespace bench {

struct context {
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    char *array = nullptr, *packed = nullptr, *flush = nullptr;
    int64_t array_bytes = 0, packed_bytes = 0;
    double bandwidth = 0;  // bytes read and written by a copy, per us
    std::unique_ptr<table> rows;
};

constexpr int64_t flush_bytes = int64_t{256} << 20;  // more than the second-level cache

// ---- clocks -----------------------------------------------------------------------------------------------------

inline double trimean(std::vector<double> t) {
    std::sort(t.begin(), t.end());
    const std::size_t n = t.size();
    return (t[n / 4] + 2 * t[n / 2] + t[n - 1 - n / 4]) / 4;
}

template <class Work>
double wall_us(const context &c, bool cold, const Work &work) {
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) {
        if (cold) check(cudaMemsetAsync(c.flush, i, flush_bytes, c.stream), "cudaMemsetAsync");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const double start = MPI_Wtime();
        work();
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        if (i >= 2) times.push_back((MPI_Wtime() - start) * 1e6);
    }
    return trimean(times);
}

// Of work put into c.stream.
template <class Work>
double event_us(const context &c, const Work &work) {
    return median_event_us(c, 3, work);
}

static __global__ void empty() {}

// What no call that launches a kernel and waits for it can be faster than.
inline double empty_kernel_us(const context &c, bool cold) {
    return wall_us(c, cold, [&] {
        empty<<<1, 1, 0, c.stream>>>();
        check(cudaGetLastError(), "empty");
    });
}

// ---- output -----------------------------------------------------------------------------------------------------

struct row {
    const char *table;
    std::string shape, how;
    const char *direction, *clock;
    double payload, us, limit_us;
};

// A time of 0 is that of what could not be measured.
inline void print(const context &c, const row &r) {
    c.rows->row({r.table, r.shape, r.how, r.direction, r.clock, cell(r.payload, 0), cell(r.us, 2),
                 cell(r.us > 0 ? r.payload / r.us / 1e3 : 0, 2), cell(r.limit_us, 2),
                 cell(r.us > 0 ? r.limit_us / r.us : 0)});
}

// ---- mpix -------------------------------------------------------------------------------------------------------

inline void call_now(const context &c, MPI_Datatype type, int bytes, bool unpack) {
    int position = 0;
    if (unpack)
        must(MPI_Unpack(c.packed, bytes, &position, c.array, 1, type, MPI_COMM_WORLD), "MPI_Unpack");
    else
        must(MPI_Pack(c.array, 1, type, c.packed, bytes, &position, MPI_COMM_WORLD), "MPI_Pack");
}

inline void call_in_stream(const context &c, MPI_Datatype type, int64_t count, int64_t bytes, bool unpack, int skew) {
    MPI_Count position = 0;
    const MPI_Count size = bytes;
    if (unpack)
        must(MPIX_Unpack_enqueue(c.packed + 3 * skew, size, &position, c.array + skew, count, type, MPI_COMM_WORLD,
                                 c.stream),
             "MPIX_Unpack_enqueue");
    else
        must(MPIX_Pack_enqueue(c.array + skew, count, type, c.packed + 3 * skew, size, &position, MPI_COMM_WORLD,
                               c.stream),
             "MPIX_Pack_enqueue");
}

// ---- begin and end ----------------------------------------------------------------------------------------------

// After MPI_Init. Begins the table, by a row of the copy that the limits are computed from. `csv` as table has it.
inline void open(context &c, const char *title, const char *csv, int64_t array_bytes, int64_t packed_bytes) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreate(&c.begin), "cudaEventCreate");
    check(cudaEventCreate(&c.end), "cudaEventCreate");
    std::size_t free_bytes = 0, all_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
    c.packed_bytes = packed_bytes;
    c.array_bytes = std::min<int64_t>(array_bytes, static_cast<int64_t>(free_bytes / 2));
    check(cudaMalloc(&c.array, static_cast<std::size_t>(c.array_bytes)), "cudaMalloc");
    check(cudaMalloc(&c.packed, static_cast<std::size_t>(c.packed_bytes)), "cudaMalloc");
    check(cudaMalloc(&c.flush, flush_bytes), "cudaMalloc");
    check(cudaMemset(c.array, 1, static_cast<std::size_t>(c.array_bytes)), "cudaMemset");
    const int64_t quarter = c.array_bytes / 4;
    c.bandwidth = 2.0 * static_cast<double>(quarter) / event_us(c, [&] {
                      check(cudaMemcpyAsync(c.array, c.array + quarter, static_cast<std::size_t>(quarter),
                                            cudaMemcpyDeviceToDevice, c.stream),
                            "cudaMemcpyAsync");
                  });
    c.rows = std::make_unique<table>(title, csv,
                                     std::vector<column>{"table",
                                                         {"shape", 26},
                                                         {"how", 28},
                                                         {"direction", 9},
                                                         {"clock", 9},
                                                         {"payload", 11},
                                                         {"us", 9},
                                                         "GB/s",
                                                         {"limit_us", 9},
                                                         "limit/us"},
                                     machine_names, machine_columns(0));
    print(c, {"copy", "contiguous", "cudaMemcpy", "copy", "events", static_cast<double>(quarter),
              2.0 * static_cast<double>(quarter) / c.bandwidth, 2.0 * static_cast<double>(quarter) / c.bandwidth});
}

inline void close(context &c) {
    for (char *p : {c.array, c.packed, c.flush}) check(cudaFree(p), "cudaFree");
    check(cudaEventDestroy(c.begin), "cudaEventDestroy");
    check(cudaEventDestroy(c.end), "cudaEventDestroy");
    check(cudaStreamDestroy(c.stream), "cudaStreamDestroy");
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PACK_CLOCK_CUH
