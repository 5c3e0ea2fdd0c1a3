// SPDX-License-Identifier: BSD-3-Clause
//
// How many streams with waiting kernels keep work in other streams from beginning, by CUDA_DEVICE_MAX_CONNECTIONS, which CUDA reads
// when it starts, and by the priority of the other streams.
//
// In `waiting` streams a kernel waits, and a second one is queued behind it. A kernel is launched in each of eight other streams;
// a row says how many of these have not ended when the host has looked for a while.
#include <mpi.h>
#include <mpix/mpix.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/by_hand.cuh"
#include "tests/bench/machine.hpp"

using namespace bench;

namespace {

constexpr int most_waiting = 36, others = 8;
constexpr auto patience = std::chrono::milliseconds(30);

__global__ void wait_for(const volatile int *open) {
    while (*open == 0) __nanosleep(200);
}
__global__ void count(int *launches) { atomicAdd(launches, 1); }

cudaStream_t make_stream(int priority) {
    cudaStream_t stream;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
    return stream;
}

// How many of the other streams' kernels have not ended.
int held_up(const std::array<cudaStream_t, others> &streams) {
    const auto end = std::chrono::steady_clock::now() + patience;
    int waiting = others;
    while (waiting != 0 && std::chrono::steady_clock::now() < end) {
        waiting = 0;
        for (cudaStream_t const stream : streams) waiting += cudaStreamQuery(stream) == cudaErrorNotReady;
    }
    return waiting;
}

}  // namespace

int main(int argc, char **argv) {
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    check(cudaSetDevice(0), "cudaSetDevice");
    int *launches, *open;
    check(cudaMalloc(&launches, sizeof *launches), "cudaMalloc");
    check(cudaHostAlloc(&open, sizeof *open, cudaHostAllocMapped), "cudaHostAlloc");
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    std::vector<cudaStream_t> waiting;
    for (int i = 0; i < most_waiting; ++i) waiting.push_back(make_stream(least));
    const char *const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const std::string columns = machine_columns(0);
    std::printf("connections,priority,waiting,held_up,of,gpu,driver,cuda,date,mpi\n");
    for (const int priority : {least, greatest}) {
        std::array<cudaStream_t, others> other;
        for (cudaStream_t &stream : other) stream = make_stream(priority);
        for (const int n : {1, 2, 4, 6, 7, 8, 9, 12, 16, 24, 30, 31, 32, 36}) {
            *open = 0;
            for (int i = 0; i < n; ++i) {
                wait_for<<<1, 1, 0, waiting[static_cast<std::size_t>(i)]>>>(open);
                count<<<1, 1, 0, waiting[static_cast<std::size_t>(i)]>>>(launches);
            }
            for (cudaStream_t const stream : other) count<<<1, 1, 0, stream>>>(launches);
            check(cudaGetLastError(), "a launch");
            const int held = held_up(other);
            *open = 1;
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
            std::printf("%s,%s,%d,%d,%d,%s\n", connections == nullptr ? "not set" : connections,
                        priority == least ? "equal" : "high", n, held, others, columns.c_str());
        }
        for (cudaStream_t const stream : other) check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    }
    for (cudaStream_t const stream : waiting) check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    check(cudaFreeHost(open), "cudaFreeHost");
    check(cudaFree(launches), "cudaFree");
    MPI_Finalize();
    return 0;
}
