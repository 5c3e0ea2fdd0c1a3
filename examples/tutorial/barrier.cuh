// SPDX-License-Identifier: BSD-3-Clause
//
// Where the programs of the tutorial run: on GPUs if nvcc compiles them, else on host threads that play the blocks.
#ifndef TUTORIAL_RUN_CUH
#define TUTORIAL_RUN_CUH

#include <mpi.h>
#include <mpix/device.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <mpix/launch.h>
#define KERNEL_FN __device__
#define BOTH_FN __host__ __device__
#else
#include <mpix/host_group.hpp>

#include <atomic>
#include <thread>
#define KERNEL_FN
#define BOTH_FN
#endif

namespace tutorial {

[[noreturn]] inline void give_up(const char *what, const char *why) {
    std::fprintf(stderr, "%s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

#ifdef __CUDACC__

using word = cuda::atomic_ref<int, cuda::thread_scope_device>;
inline constexpr auto acquire = cuda::memory_order_acquire, release = cuda::memory_order_release;
__device__ inline void pause() {}

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

/** Runs body(block, index) in each of `blocks` blocks, all of them at the same time, and waits for the end. */
template <class Body>
void launch(int blocks, const Body &body) {
    constexpr unsigned threads = 128;
    const mpix::launch_status launched =
        mpix::launch_cooperative(kernel<Body>, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, nullptr, body);
    if (!launched.ok()) give_up("launch", launched.message.c_str());
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

#else

using word = std::atomic_ref<int>;
inline constexpr auto acquire = std::memory_order_acquire, release = std::memory_order_release;
inline void pause() { std::this_thread::yield(); }

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
template <class Body>
void launch(int blocks, const Body &body) {
    constexpr int threads = 2;
    mpix::host_launch(blocks, threads, [&](const mpix::host_group &block) { body(block, block.group_rank()); });
}

#endif

/** One thread: waits until *at is at least `value`. What was written before that was released is visible then. */
KERNEL_FN inline void await(int *at, int value) {
    while (word(*at).load(acquire) < value) pause();
}

/** A barrier of all blocks of a kernel. */
struct grid_barrier {
    int *arrived;  // counts up from 0
    int blocks;

    template <class Block>
    KERNEL_FN void operator()(const Block &block) const {
        block.sync();
        if (block.thread_rank() == 0) {
            const int mine = word(*arrived).fetch_add(1);
            await(arrived, (mine / blocks + 1) * blocks);
        }
        block.sync();
    }
};

}  // namespace tutorial

#endif  // TUTORIAL_RUN_CUH
