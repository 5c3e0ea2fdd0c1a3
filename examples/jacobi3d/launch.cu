// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel on a GPU.
#include "executor.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <mpix/launch.h>

#include <algorithm>
#include <stdexcept>

namespace jacobi3d {

namespace {

constexpr int lanes = 32;          // threads of a block side by side along x
constexpr int most_threads = 512;  // of a block
// The second bound of kernels that run all iterations: one block of 512 threads leaves 128 registers a thread. With no second
// bound nvcc 13.0 takes 64, which hold the loads of four cells, and not of eight.
constexpr int min_blocks_per_multiprocessor = 1;
constexpr int epoch_blocks = message_sets;

void check(cudaError_t error, const char *call) {
    if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

// __grid_constant__: the faces are indexed at run time, and stay in constant memory that way.
template <class Real>
__global__ void __launch_bounds__(most_threads) jacobi_kernel(const __grid_constant__ step<Real> s) {
    jacobi_step<lanes>(cooperative_groups::this_thread_block(), static_cast<int>(blockIdx.x),
                       static_cast<int>(gridDim.x), s);
}

template <class Real>
__global__ void __launch_bounds__(most_threads, min_blocks_per_multiprocessor)
    persistent_kernel(const __grid_constant__ persistent<Real> s) {
    __shared__ block_memory<Real> own;
    jacobi_persistent<lanes>(cooperative_groups::this_thread_block(), static_cast<int>(blockIdx.x),
                             static_cast<int>(gridDim.x) - epoch_blocks, epoch_blocks, s, own);
}

template <class Real>
__global__ void __launch_bounds__(most_threads, min_blocks_per_multiprocessor)
    halo_kernel(const __grid_constant__ halo_step<Real> s) {
    __shared__ kept_tiles<Real> kept;
    jacobi_on_halo<lanes>(cooperative_groups::this_thread_block(), static_cast<int>(blockIdx.x),
                          static_cast<int>(gridDim.x) - exchange_blocks, s, kept);
}

class cuda_executor final : public executor {
public:
    cuda_executor(int device, int blocks, int threads) : device_(device), threads_(threads) {
        if (threads < lanes || threads > most_threads || threads % lanes != 0)
            throw std::invalid_argument("a block on a GPU has a multiple of " + std::to_string(lanes) +
                                        " threads, at most " + std::to_string(most_threads) + ", not " +
                                        std::to_string(threads));
        check(cudaSetDevice(device), "cudaSetDevice");
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        name_ = properties.name;
        // The kernel waits for tiles that its own blocks have to send first, so all of them must be
        // resident at the same time.
        const int resident = std::min(resident_blocks(jacobi_kernel<float>), resident_blocks(jacobi_kernel<double>));
        if (blocks > resident)
            throw std::invalid_argument(std::to_string(blocks) + " blocks of " + std::to_string(threads) +
                                        " threads; at most " + std::to_string(resident) +
                                        " are resident on this GPU at the same time");
        blocks_ = blocks ? blocks : resident;
        chosen_ = blocks;
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    }
    ~cuda_executor() override { (void)cudaStreamDestroy(stream_); }

    std::string description() const override {
        return name_ + ", " + std::to_string(blocks_) + " blocks of " + std::to_string(threads_) + " threads";
    }
    std::string mpix_device() const override { return std::to_string(device_); }

    void *allocate(std::size_t bytes) override {
        void *memory = nullptr;
        const cudaError_t error = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
        if (error != cudaSuccess)
            throw std::runtime_error("cudaMalloc of " + std::to_string(bytes) + " bytes: " + cudaGetErrorString(error));
        check(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync");
        synchronize();
        return memory;
    }
    void release(void *memory) noexcept override { (void)cudaFree(memory); }
    void upload(void *to, const void *from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
        synchronize();
    }
    void download(void *to, const void *from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
        synchronize();
    }

    void launch(step<float> s) override { run(s); }
    void launch(step<double> s) override { run(s); }

    residency persistent_blocks(std::int64_t bytes) const override {
        return {available("--persistent", persistent_kernel<float>, persistent_kernel<double>, epoch_blocks,
                          "that run the epochs"),
                threads_ / lanes, bytes <= cache_bytes() * 3 / 2};
    }
    residency halo_blocks() const override {
        return {available("--halo", halo_kernel<float>, halo_kernel<double>, exchange_blocks, "that begin exchanges"),
                threads_ / lanes, false};
    }
    std::array<int, 2> brick_base(const extent3 &) const override { return {lanes, threads_ / lanes}; }
    void launch(const persistent<float> &s, int blocks) override { run(s, blocks); }
    void launch(const persistent<double> &s, int blocks) override { run(s, blocks); }
    void launch(const halo_step<float> &s, int blocks) override { run(s, blocks); }
    void launch(const halo_step<double> &s, int blocks) override { run(s, blocks); }

    CUstream_st *stream() const override { return stream_; }
    void synchronize() override { check(cudaStreamSynchronize(stream_), "the kernel"); }

private:
    // How many blocks of a kernel the GPU holds at the same time.
    template <class Kernel>
    int resident_blocks(Kernel *kernel) const {
        MPIX_Occupancy occupancy;
        check(mpix::get_occupancy(kernel, dim3(static_cast<unsigned>(threads_)), 0, &occupancy), "mpix::get_occupancy");
        return occupancy.blocks;
    }

    // The blocks of a kernel, beside `others` for other work: as many as were asked for, or as fit at once.
    template <class Float, class Double>
    int available(const char *option, Float *of_float, Double *of_double, int others, const char *what_others) const {
        const int resident = std::min(resident_blocks(of_float), resident_blocks(of_double));
        const int least = std::max(chosen_, 1);
        if (least + others > resident)
            throw std::invalid_argument(std::string(option) + ": " + std::to_string(least) + " blocks of " +
                                        std::to_string(threads_) + " threads, and " + std::to_string(others) + " " +
                                        what_others + "; at most " + std::to_string(resident) +
                                        " are resident on this GPU at the same time");
        return chosen_ ? chosen_ : resident - others;
    }
    std::int64_t cache_bytes() const {
        int bytes = 0;
        check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device_), "cudaDeviceGetAttribute");
        return bytes;
    }

    template <class Argument>
    void launch_resident(void (*kernel)(Argument), const Argument &s, int blocks) {
        // Fails where the blocks do not fit, rather than hang.
        const mpix::launch_status launch = mpix::launch_cooperative(
            kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads_)), 0, stream_, s);
        if (!launch.ok()) throw std::runtime_error(launch.message);
    }

    template <class Real>
    void run(const persistent<Real> &s, int blocks) {
        launch_resident(persistent_kernel<Real>, s, blocks + epoch_blocks);
    }
    template <class Real>
    void run(const halo_step<Real> &s, int blocks) {
        launch_resident(halo_kernel<Real>, s, blocks + exchange_blocks);
    }

    template <class Real>
    void run(step<Real> &s) {
        s.brick_x = lanes;
        s.brick_y = threads_ / lanes;
        // Deep bricks read less twice; shallow ones leave no block without work on small boxes.
        const std::int64_t columns =
            (std::int64_t{s.nx} + s.brick_x - 1) / s.brick_x * ((s.ny + s.brick_y - 1) / s.brick_y);
        const std::int64_t depth = columns * s.nz / (4 * std::int64_t{blocks_});
        s.brick_z = static_cast<int>(std::clamp<std::int64_t>(depth, 4, 64));
        jacobi_kernel<Real><<<blocks_, threads_, 0, stream_>>>(s);
        check(cudaGetLastError(), "the kernel's launch");
    }

    int device_, blocks_ = 0, chosen_ = 0, threads_;
    std::string name_;
    cudaStream_t stream_ = nullptr;
};

}  // namespace

int count_gpus() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
        (void)cudaGetLastError();  // the second one also means that there is no driver at all
        return 0;
    }
    check(error, "cudaGetDeviceCount");
    return count;
}

std::unique_ptr<executor> make_cuda_executor(int device, int blocks, int threads) {
    return std::make_unique<cuda_executor>(device, blocks, threads);
}

}  // namespace jacobi3d
