// SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <mpi.h>
#include <mpix/device.cuh>

#include "device/kernels/drain.h"
#include "device/kernels/inline_timing.h"

namespace mpix::gpu {
namespace {

constexpr int threads = 256, blocks = 16;

__global__ void __launch_bounds__(threads) take(MPIX_Prequest receive) {
    const auto block = cooperative_groups::this_thread_block();
    const int partitions = mpix::detail::request_of(receive)->partitions;
    for (int j = static_cast<int>(blockIdx.x); j < partitions; j += static_cast<int>(gridDim.x))
        mpix::detail::arrived(block, receive, j, mpix::detail::library_taker{});
}

__global__ void lone_copy(char *to, const char *from, int64_t bytes) {
    mpix::detail::group_copy(this_thread(), to, from, static_cast<uint64_t>(bytes));
}

static_assert(timed_packet_bytes == mpix::detail::packet_bytes &&
              timed_packet_payload == mpix::detail::packet_payload &&
              many_packets == timed_threads * mpix::detail::most_packets_per_thread);

// As wait_inline_fast does it.
__device__ void take_packets_out(char *to, const char *box, unsigned packets) {
    constexpr unsigned each = mpix::detail::most_packets_per_thread;
    uint64_t payload[each] = {};
#pragma unroll
    for (unsigned n = 0; n < each; ++n)
        if (const unsigned i = threadIdx.x + n * timed_threads; i < packets)
            mpix::detail::load_packet(box, i, 0, &payload[n]);
#pragma unroll
    for (unsigned n = 0; n < each; ++n)
        if (const unsigned i = threadIdx.x + n * timed_threads; i < packets)
            mpix::detail::store_word(to + i * timed_packet_payload, payload[n]);
}

// Nobody looks at what is stored at the peer, or here, nor waits for it; the fences are what is measured.
__global__ void __launch_bounds__(timed_threads) time_inline(char *at_peer, char *here, uint64_t *words) {
    constexpr int turns = 12;
    const bool leader = threadIdx.x == 0, last = threadIdx.x == timed_threads - 1;
    char *const to = here + many_packets * timed_packet_bytes;
    const uint64_t begin_ns = mpix::detail::now_ns();
    const long long begin = clock64();
    for (unsigned way = 0; way < timed_ways; ++way) {
        const unsigned packets = way % 3 == 2 ? many_packets : few_packets;
        const bool at_once = way % 3 == 0;
        long long best = 0;
        for (int turn = 0; turn < turns; ++turn) {
            __syncthreads();
            const long long start = clock64();
            if (way < 3) {
                for (unsigned i = threadIdx.x; i < packets; i += timed_threads)
                    mpix::detail::store_packet(at_peer, i, 0, 0);
                __syncthreads();
                if (leader && !at_once) mpix::detail::fence_acq_rel();  // as publish_partition has it; pairs: M1
            } else {
                take_packets_out(to, here, packets);
                __syncthreads();
                if (last && !at_once)  // as tell_taken has it; to a word that is taken out again
                    mpix::detail::store_release_gpu(reinterpret_cast<uint64_t *>(here), 0);  // pairs: M1
            }
            __syncthreads();
            const long long took = clock64() - start;
            // The first one finds nothing in the caches.
            if (turn == 1 || (turn > 1 && took < best)) best = took;
            if (leader) mpix::detail::fence_acq_rel();  // no turn waits for an earlier one's stores; pairs: M1
        }
        if (leader) mpix::detail::store_relaxed(&words[way], static_cast<uint64_t>(best));
    }
    if (!leader) return;
    mpix::detail::store_relaxed(&words[ticks_of_all], static_cast<uint64_t>(clock64() - begin));
    mpix::detail::store_relaxed(&words[ns_of_all], mpix::detail::now_ns() - begin_ns);
}

}  // namespace

int launch_lone_copy(char *to, const char *from, int64_t bytes, stream_handle stream) {
    lone_copy<<<1, 1, 0, stream>>>(to, from, bytes);
    return cudaGetLastError();
}

int launch_inline_drain(mpix_prequest *receive, stream_handle stream) {
    take<<<blocks, threads, 0, stream>>>(receive);
    return cudaGetLastError();
}

int launch_timing(char *at_peer, char *here, uint64_t *words, stream_handle stream) {
    time_inline<<<1, timed_threads, 0, stream>>>(at_peer, here, words);
    return cudaGetLastError();
}

int load_inline_kernels() {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, take);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, lone_copy);
    return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, time_inline) : error;
}

}  // namespace mpix::gpu
