// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the README's functions for a GPU unchanged, and checks `in` after the last epoch.
#include <mpi.h>

#include README_EXAMPLE

#include <cstdio>
#include <vector>

namespace {

void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Every float of a partition is its number and its place in it.
int wrong_floats(const std::vector<float> &in, int n) {
    int wrong = 0;
    for (int p = 0; p < 64; ++p)
        for (int i = 0; i < n; ++i)
            wrong += in[static_cast<std::size_t>(p) * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)] !=
                     static_cast<float>(p + i);
    return wrong;
}

}  // namespace

int main(int argc, char **argv) {
    int devices = 0, rank = 0, wrong = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("skipped: no GPU");
        return 77;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check(cudaSetDevice(rank % devices), "cudaSetDevice");
    cudaStream_t stream;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    for (const int n : {3, 1000, 40000}) {
        const std::size_t floats = 64 * static_cast<std::size_t>(n);
        float *out = nullptr, *in = nullptr;
        check(cudaMalloc(&out, floats * sizeof(float)), "cudaMalloc");
        check(cudaMalloc(&in, floats * sizeof(float)), "cudaMalloc");
        check(cudaMemset(in, 0xa5, floats * sizeof(float)), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        exchange(out, in, n, 1 - rank, 3, stream);
        std::vector<float> found(floats);
        check(cudaMemcpy(found.data(), in, floats * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
        if (const int bad = wrong_floats(found, n); bad != 0) {
            std::fprintf(stderr, "rank %d: %d of %zu floats are wrong\n", rank, bad, floats);
            wrong = 1;
        }
        MPI_Barrier(MPI_COMM_WORLD);  // the peer has taken its mappings back
        check(cudaFree(out), "cudaFree");
        check(cudaFree(in), "cudaFree");
    }
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    MPI_Finalize();
    return wrong;
}
