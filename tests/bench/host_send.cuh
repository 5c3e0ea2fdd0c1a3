// SPDX-License-Identifier: BSD-3-Clause
//
// What a program does that knows nothing better: kernel, copy to the host, MPI_Send, MPI_Recv, copy to the device.
#ifndef MPIX_TESTS_BENCH_HOST_SEND_CUH
#define MPIX_TESTS_BENCH_HOST_SEND_CUH

#include "tests/bench/pair.cuh"

namespace bench {

static __global__ void touch(char *at) { *at = *at; }  // stands for the kernel that makes, or takes, the data

// Half a round trip in microseconds, the median of the epochs.
inline double host_send_us(pair &c, int epochs, uint64_t bytes, int count, char *out) {
    char *in = nullptr, *staging = nullptr;
    const auto all = bytes * static_cast<uint64_t>(count);
    check(cudaMalloc(&in, all), "cudaMalloc");
    check(cudaMallocHost(&staging, bytes), "cudaMallocHost");
    const int n = static_cast<int>(bytes);
    const auto put = [&](int i) {
        char *const at = out + static_cast<uint64_t>(i) * bytes;
        touch<<<1, 1, 0, c.stream>>>(at);
        check(cudaGetLastError(), "touch");
        check(cudaMemcpyAsync(staging, at, bytes, cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync");
        check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize");
        must(MPI_Send(staging, n, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD), "MPI_Send");
    };
    const auto await = [&](int i) {
        must(MPI_Recv(staging, n, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
        // The kernel that uses the data follows on the stream: the next put's.
        check(cudaMemcpyAsync(in + static_cast<uint64_t>(i) * bytes, staging, bytes, cudaMemcpyHostToDevice, c.stream),
              "cudaMemcpyAsync");
    };
    const double us = c.measure(epochs, "host", out, in, all, [&](int) {
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

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_HOST_SEND_CUH
