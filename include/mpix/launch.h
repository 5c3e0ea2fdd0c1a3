/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Launches a kernel whose blocks wait for each other, or for a peer, with all its blocks resident at the same time. A
 * block that waits keeps its place on the GPU; if what it waits for is the work of a block that found no place, both
 * wait for ever.
 *
 * The functions are inline, because a kernel belongs to the CUDA runtime that the program is linked with. They need
 * CUDA's headers and its runtime (compute capability 6.0 and later), and work in C, in C++ and in CUDA C++.
 *
 * Thread safety: any number of threads. All functions act on the current device, which must be the stream's. */
#ifndef MPIX_LAUNCH_H
#define MPIX_LAUNCH_H

#include <cuda_runtime_api.h>
#include <mpix/detail/occupancy.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the runtime says of a kernel and of the current device. */
struct mpix_launch_facts {
    int device;
    struct mpix_block_needs block;
    struct mpix_multiprocessor multiprocessor;
};

static inline cudaError_t mpix_find_occupancy(const void *kernel, dim3 block, size_t shared_bytes,
                                              struct mpix_launch_facts *facts, MPIX_Occupancy *occupancy) {
    struct cudaFuncAttributes kernels;
    int shared = 0, reserved = 0;
    const int threads = (int)(block.x * block.y * block.z);
    struct mpix_multiprocessor *const m = &facts->multiprocessor;
    occupancy->blocks = occupancy->blocks_per_multiprocessor = 0;
    cudaError_t error = cudaGetDevice(&facts->device);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&kernels, kernel);
#define MPIX_ASK(what, out) \
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(out, what, facts->device)
    MPIX_ASK(cudaDevAttrMultiProcessorCount, &occupancy->multiprocessors);
    MPIX_ASK(cudaDevAttrMaxThreadsPerMultiProcessor, &m->threads);
    MPIX_ASK(cudaDevAttrMaxBlocksPerMultiprocessor, &m->blocks);
    MPIX_ASK(cudaDevAttrMaxRegistersPerMultiprocessor, &m->registers);
    MPIX_ASK(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &shared);
    MPIX_ASK(cudaDevAttrReservedSharedMemoryPerBlock, &reserved);
#undef MPIX_ASK
    if (error != cudaSuccess) return error;
    m->shared = shared;
    m->reserved = reserved;
    facts->block.threads = threads;
    facts->block.most_threads = kernels.maxThreadsPerBlock;
    facts->block.dynamic = (long long)shared_bytes;
    facts->block.most_dynamic = kernels.maxDynamicSharedSizeBytes;
    facts->block.fixed = (long long)kernels.sharedSizeBytes;
    facts->block.registers = kernels.numRegs;
    if (threads <= kernels.maxThreadsPerBlock && facts->block.dynamic <= facts->block.most_dynamic)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&occupancy->blocks_per_multiprocessor, kernel, threads,
                                                              shared_bytes);
    if (error != cudaSuccess) return error;
    occupancy->blocks = occupancy->blocks_per_multiprocessor * occupancy->multiprocessors;
    occupancy->limit = mpix_occupancy_limit(&facts->block, m, occupancy->blocks_per_multiprocessor);
    return cudaSuccess;
}

/**
 * How many blocks of a kernel are resident on the current device at the same time, if nothing else runs there.
 *
 * kernel        a __global__ function
 * block         the shape of a block
 * shared_bytes  of dynamic shared memory for each block
 *
 * Where several processes use one GPU, each of them has a share of it only. Leave room for one more block if the
 * library may launch kernels meanwhile: see docs/limitations.md, "Epochs that kernels start".
 *
 * Returns an error of the CUDA runtime. Loads the kernel, if it is not loaded yet.
 */
static inline cudaError_t MPIX_Occupancy_get(const void *kernel, dim3 block, size_t shared_bytes,
                                             MPIX_Occupancy *occupancy) {
    struct mpix_launch_facts facts;
    return mpix_find_occupancy(kernel, block, shared_bytes, &facts, occupancy);
}

/**
 * cudaLaunchCooperativeKernel, after a check that all blocks of the grid are resident at the same time. A launch that
 * was made starts when all of them have found a place.
 *
 * arguments      the addresses of the kernel's arguments
 * message, size  where a sentence goes that says why there was no launch, such as how many blocks would fit; empty
 *                after a launch. Null, 0: no sentence
 *
 * Returns cudaErrorCooperativeLaunchTooLarge if the blocks do not fit, cudaErrorNotSupported if the device has no
 * cooperative launches, or another error of the CUDA runtime. None of these is left for cudaGetLastError to find.
 */
static inline cudaError_t MPIX_Launch_cooperative(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                                  size_t shared_bytes, cudaStream_t stream, char *message,
                                                  size_t size) {
    struct mpix_launch_facts facts;
    MPIX_Occupancy occupancy;
    const unsigned long long blocks = (unsigned long long)grid.x * grid.y * grid.z;
    int cooperative = 0;
    if (size > 0) message[0] = 0;
    cudaError_t error = mpix_find_occupancy(kernel, block, shared_bytes, &facts, &occupancy);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, facts.device);
    if (error == cudaSuccess && !cooperative) error = cudaErrorNotSupported;
    if (error == cudaSuccess && blocks > (unsigned long long)occupancy.blocks) {
        mpix_occupancy_sentence(message, size, blocks, facts.device, &occupancy, &facts.block, &facts.multiprocessor);
        return cudaErrorCooperativeLaunchTooLarge;
    }
    if (error == cudaSuccess) error = cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared_bytes, stream);
    if (error == cudaSuccess) return cudaSuccess;
    cudaGetLastError();
    snprintf(message, size, "the cooperative launch of %llu blocks of %u threads: %s", blocks,
             block.x * block.y * block.z, cudaGetErrorString(error));
    return error;
}

#ifdef __cplusplus
}

#include <string>
#include <utility>

namespace mpix {

/** What has become of a launch. */
struct [[nodiscard]] launch_status {
    cudaError_t error = cudaSuccess;
    std::string message;  // why there was none, in a sentence; empty after a launch

    bool ok() const { return error == cudaSuccess; }
};

/** MPIX_Occupancy_get of a kernel of any arguments. */
template <class... Parameters>
cudaError_t get_occupancy(void (*kernel)(Parameters...), dim3 block, std::size_t shared_bytes,
                          MPIX_Occupancy *occupancy) {
    return MPIX_Occupancy_get(reinterpret_cast<const void *>(kernel), block, shared_bytes, occupancy);
}

/**
 * MPIX_Launch_cooperative of kernel<<<grid, block, shared_bytes, stream>>>(arguments...). The arguments are converted
 * to the kernel's parameters.
 *
 *     const mpix::launch_status launch = mpix::launch_cooperative(kernel, grid, block, 0, stream, a, b);
 *     if (!launch.ok()) std::fprintf(stderr, "%s\n", launch.message.c_str());
 */
template <class... Parameters, class... Arguments>
launch_status launch_cooperative(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                                 cudaStream_t stream, Arguments &&...arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "as many arguments as the kernel has parameters");
    return [&](Parameters... values) {
        void *addresses[] = {&values..., nullptr};  // never an array of no elements
        char message[512];
        const cudaError_t error = MPIX_Launch_cooperative(reinterpret_cast<const void *>(kernel), grid, block,
                                                          addresses, shared_bytes, stream, message, sizeof message);
        return launch_status{error, message};
    }(std::forward<Arguments>(arguments)...);
}

}  // namespace mpix
#endif

#endif /* MPIX_LAUNCH_H */
