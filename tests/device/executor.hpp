// SPDX-License-Identifier: BSD-3-Clause
//
// What runs the kernels of these tests: a GPU where the source is compiled as CUDA, host threads otherwise.
//
// A kernel is a functor that both can run:
//
//   struct body {
//       template <class Block>
//       DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const;
//   };
//
// launch() returns at once; synchronise() waits for all that was launched. One launch at a time. Kernels whose blocks wait
// for each other need launch_cooperative(), which ends the program if they would not be resident together.
#ifndef MPIX_TESTS_DEVICE_EXECUTOR_HPP
#define MPIX_TESTS_DEVICE_EXECUTOR_HPP

#include <mpix/device.cuh>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <thread>

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>
#include <mpix/launch.h>
#include "tests/gpu_memory.hpp"
#define DEVICE_FN __device__
#else
#include <mpix/host_group.hpp>
#define DEVICE_FN inline
#endif

namespace device_test {

#ifdef __CUDACC__

inline void check_cuda(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

template <class Body>
__global__ void __launch_bounds__(1024) run_body(const Body body) {
    body(cooperative_groups::this_thread_block(), static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

class executor {
public:
    static constexpr bool is_gpu = true;
    static const char *name() { return "cuda"; }

    static bool available() {
        int devices = 0;
        const bool found = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
        (void)cudaGetLastError();
        return found;
    }

    static int devices() {
        int found = 0;
        check_cuda(cudaGetDeviceCount(&found), "cudaGetDeviceCount");
        return found;
    }

    // One process takes the device of its rank within the node.
    explicit executor(int local_rank) {
        device_ = local_rank % devices();
        make_current();
        // Not the legacy default stream, which would order other streams' work with ours.
        check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    }
    ~executor() { check_cuda(cudaStreamDestroy(stream_), "cudaStreamDestroy"); }
    executor(const executor &) = delete;
    executor &operator=(const executor &) = delete;

    // Of the calling thread; the constructor's has it so.
    void make_current() { check_cuda(cudaSetDevice(device_), "cudaSetDevice"); }

    // A device other than this one on which the process has a context, which nobody has asked for; -1: none.
    int context_elsewhere() const {
        for (int d = 0; d < devices(); ++d)
            if (d != device_ && mpix::detail::has_context(d)) return d;
        return -1;
    }

    void *allocate(std::size_t bytes) {
        return gpu_memory::allocate(gpu_memory::chosen(), bytes);  // MPIX_TEST_MEMORY
    }
    void release(void *memory) { gpu_memory::release(memory); }

    // The far side may be host memory too.
    void upload(void *to, const void *from, std::size_t bytes) { copy(to, from, bytes); }
    void download(void *to, const void *from, std::size_t bytes) { copy(to, from, bytes); }
    void set(void *to, int byte, std::size_t bytes) {
        check_cuda(cudaMemsetAsync(to, byte, bytes, stream_), "cudaMemsetAsync");
        synchronise();
    }

    std::size_t free_bytes() const {
        std::size_t free = 0, all = 0;
        check_cuda(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
        return free;
    }

    // Zeroed memory that host and kernels can both reach, at the same address.
    void *allocate_shared(std::size_t bytes) {
        void *memory = nullptr;
        check_cuda(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
        std::memset(memory, 0, bytes);
        return memory;
    }
    void release_shared(void *memory) { check_cuda(cudaFreeHost(memory), "cudaFreeHost"); }

    // How many blocks of a kernel the GPU holds at a time.
    template <class Body>
    int most_resident(int threads) {
        int on_each = 0, all = 0;
        check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&on_each, run_body<Body>, threads, 0), "occupancy");
        check_cuda(cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, device_), "cudaDeviceGetAttribute");
        return on_each * all;
    }
    // Loads a kernel; a launch does that, too, unless it is loaded already.
    template <class Body>
    void load() {
        cudaFuncAttributes attributes;
        check_cuda(cudaFuncGetAttributes(&attributes, run_body<Body>), "cudaFuncGetAttributes");
    }
    template <class Body>
    void launch(int blocks, int threads, const Body &body) {
        run_body<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream_>>>(body);
        check_cuda(cudaGetLastError(), "kernel launch");
    }
    template <class Body>
    void launch_cooperative(int blocks, int threads, const Body &body) {
        const mpix::launch_status launch =
            mpix::launch_cooperative(run_body<Body>, dim3(static_cast<unsigned>(blocks)),
                                     dim3(static_cast<unsigned>(threads)), 0, stream_, body);
        check_cuda(launch.error, launch.message.c_str());
    }
    void synchronise() { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
    // Of the launches, for what the library is to do behind them.
    cudaStream_t stream() { return stream_; }
    // What `enqueue` launches, so many times, as a graph.
    template <class Enqueue>
    void repeat(int times, const Enqueue &enqueue) {
        cudaGraph_t captured = nullptr;
        cudaGraphExec_t graph = nullptr;
        check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        enqueue();
        check_cuda(cudaStreamEndCapture(stream_, &captured), "cudaStreamEndCapture");
        check_cuda(cudaGraphInstantiate(&graph, captured, 0), "cudaGraphInstantiate");
        check_cuda(cudaGraphDestroy(captured), "cudaGraphDestroy");
        for (int i = 0; i < times; ++i) check_cuda(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch");
        synchronise();
        check_cuda(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
    }

private:
    void copy(void *to, const void *from, std::size_t bytes) {
        check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
        synchronise();
    }
    int device_ = 0;
    cudaStream_t stream_ = nullptr;
};

#else

class executor {
public:
    static constexpr bool is_gpu = false;
    static const char *name() { return "host"; }
    static bool available() { return true; }
    static int devices() { return 0; }

    explicit executor(int) {}
    ~executor() { synchronise(); }
    executor(const executor &) = delete;
    executor &operator=(const executor &) = delete;

    void make_current() {}
    int context_elsewhere() const { return -1; }
    void *allocate(std::size_t bytes) { return std::malloc(bytes); }
    void release(void *memory) { std::free(memory); }

    void upload(void *to, const void *from, std::size_t bytes) { std::memcpy(to, from, bytes); }
    void download(void *to, const void *from, std::size_t bytes) { std::memcpy(to, from, bytes); }
    void set(void *to, int byte, std::size_t bytes) { std::memset(to, byte, bytes); }

    std::size_t free_bytes() const { return 0; }
    void *allocate_shared(std::size_t bytes) { return std::calloc(1, bytes); }
    void release_shared(void *memory) { std::free(memory); }

    template <class Body>
    int most_resident(int) {
        return 4;
    }
    template <class Body>
    void load() {}
    template <class Body>
    void launch(int blocks, int threads, const Body &body) {
        synchronise();
        kernel_ = std::thread([=] {
            mpix::host_launch(blocks, threads,
                              [&](const mpix::host_group &block) { body(block, block.group_rank(), blocks); });
        });
    }
    template <class Body>
    void launch_cooperative(int blocks, int threads, const Body &body) {
        launch(blocks, threads, body);  // host threads are always all there
    }
    void synchronise() {
        if (kernel_.joinable()) kernel_.join();
    }
    // As on a GPU: when what was launched has ended, since the library does its part at once.
    CUstream_st *stream() {
        synchronise();
        return nullptr;
    }
    template <class Enqueue>
    void repeat(int times, const Enqueue &enqueue) {
        for (int i = 0; i < times; ++i) enqueue();
    }

private:
    std::thread kernel_;
};

#endif

// The parts of a block that make the calls.
enum class scope { thread, tile4, partial_warp, warp, block };
inline const char *scope_name(scope s) {
    constexpr const char *names[] = {"thread", "tile of 4", "coalesced group", "warp", "block"};
    return names[static_cast<int>(s)];
}

// Call f(group, index, groups) for the group of this scope that the calling thread is in. Host threads have
// no parts of a block between one thread and all.
template <class Block, class F>
DEVICE_FN void as_group(const Block &block, scope s, const F &f) {
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    if (s == scope::thread) f(mpix::this_thread(), rank, threads);
    if (s == scope::block) f(block, 0, 1);
#ifdef __CUDACC__
    namespace cg = cooperative_groups;
    const auto of = [&](const auto &tile) { f(tile, tile.meta_group_rank(), tile.meta_group_size()); };
    if (s == scope::tile4) of(cg::tiled_partition<4>(block));
    if (s == scope::warp) of(cg::tiled_partition<32>(block));
    if (s == scope::partial_warp) {
        // Both branches of a condition, as groups of 20 and of 12 lanes.
        const auto warp = cg::tiled_partition<32>(block);
        const bool low = warp.thread_rank() < 20;
        f(cg::binary_partition(warp, low), 2 * static_cast<int>(warp.meta_group_rank()) + (low ? 0 : 1),
          2 * static_cast<int>(warp.meta_group_size()));
    }
#endif
}

DEVICE_FN std::uint64_t add_to(std::uint64_t *counter, std::uint64_t n) {
#ifdef __CUDACC__
    return atomicAdd(reinterpret_cast<unsigned long long *>(counter), static_cast<unsigned long long>(n));
#else
    return std::atomic_ref<std::uint64_t>(*counter).fetch_add(n, std::memory_order_relaxed);
#endif
}
DEVICE_FN std::uint64_t add_one(std::uint64_t *counter) { return add_to(counter, 1); }

// One turn of a polling loop: where threads share cores, let the others run. Yielding is not enough: schedulers have
// been seen that leave a thread among many that only yield without a core for tens of seconds.
inline void host_poll_pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
DEVICE_FN void poll_pause() {
#ifndef __CUDACC__
    host_poll_pause();
#endif
}

}  // namespace device_test

#endif  // MPIX_TESTS_DEVICE_EXECUTOR_HPP
