// SPDX-License-Identifier: BSD-3-Clause
//
// Where a program runs its kernels: on GPUs if nvcc compiles it, else on host threads that play the blocks.
#ifndef EXAMPLES_GPU_OR_HOST_CUH
#define EXAMPLES_GPU_OR_HOST_CUH

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <mpix/launch.h>
#define KERNEL_FN __device__
#define BOTH_FN __host__ __device__
#else
#include <mpix/host_group.hpp>
#define KERNEL_FN
#define BOTH_FN
#endif

namespace example {

[[noreturn]] inline void give_up(const char *what, const char *why) {
    std::fprintf(stderr, "%s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

#ifdef __CUDACC__

inline void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) give_up(what, cudaGetErrorString(error));
}

/** Each rank of a node takes a GPU. */
inline void choose_gpu() {
    MPI_Comm node;
    int rank = 0, gpus = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    check(cudaSetDevice(rank % gpus), "cudaSetDevice");
}

/** Zeroed memory of the GPU. */
template <class T>
T *allocate(std::size_t count) {
    T *memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
    return memory;
}
template <class T>
void release_memory(T *memory) {
    check(cudaFree(memory), "cudaFree");
}
template <class T>
void copy(T *to, const T *from, std::size_t count) {
    check(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDefault), "cudaMemcpy");
}

template <class Body>
__global__ void kernel(Body body) {
    body(cooperative_groups::this_thread_block(), static_cast<int>(blockIdx.x));
}

inline constexpr int threads_per_block = 128;

/** Runs body(block, index) in each of `blocks` blocks, all of them at the same time, and waits for the end. */
template <class Body>
void launch(int blocks, const Body &body) {
    const mpix::launch_status launched = mpix::launch_cooperative(kernel<Body>, dim3(static_cast<unsigned>(blocks)),
                                                                  dim3(threads_per_block), 0, nullptr, body);
    if (!launched.ok()) give_up("launch", launched.message.c_str());
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

/** The same in the order of the default stream; returns at once. The blocks wait for nothing. */
template <class Body>
void enqueue(int blocks, const Body &body) {
    kernel<<<static_cast<unsigned>(blocks), threads_per_block>>>(body);
    check(cudaGetLastError(), "launch");
}
inline void synchronise() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

#else

inline void choose_gpu() {}
template <class T>
T *allocate(std::size_t count) {
    T *const memory = static_cast<T *>(std::calloc(count, sizeof(T)));
    if (memory == nullptr) give_up("calloc", "no memory");
    return memory;
}
template <class T>
void release_memory(T *memory) {
    std::free(memory);
}
template <class T>
void copy(T *to, const T *from, std::size_t count) {
    std::copy_n(from, count, to);
}

inline constexpr int threads_per_block = 2;

template <class Body>
void launch(int blocks, const Body &body) {
    mpix::host_launch(blocks, threads_per_block,
                      [&](const mpix::host_group &block) { body(block, block.group_rank()); });
}
template <class Body>
void enqueue(int blocks, const Body &body) {
    launch(blocks, body);
}
inline void synchronise() {}

#endif

/** A program: MPI, and a GPU for this rank if it runs on GPUs, around run(). Returns what main does. */
inline int with_mpi(int argc, char **argv, int (*run)()) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    choose_gpu();
    const int status = run();
    MPI_Finalize();
    return status;
}

}  // namespace example

#endif  // EXAMPLES_GPU_OR_HOST_CUH
