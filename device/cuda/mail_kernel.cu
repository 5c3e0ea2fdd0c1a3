// SPDX-License-Identifier: BSD-3-Clause
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/device/gpu_mail.h>
#include <mpix/device/mail_timing.h>

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

static_assert(timed_line_bytes == mpix::detail::line_bytes && timed_line_payload == mpix::detail::line_payload &&
              many_lines == timed_threads * mpix::detail::most_lines_per_thread);

// As take_at_once does it.
__device__ void take_lines_out(char *to, const char *box, unsigned lines) {
    constexpr unsigned each = mpix::detail::most_lines_per_thread;
    uint64_t payload[each] = {};
#pragma unroll
    for (unsigned n = 0; n < each; ++n)
        if (const unsigned i = threadIdx.x + n * timed_threads; i < lines)
            mpix::detail::load_line(box, i, 0, &payload[n]);
#pragma unroll
    for (unsigned n = 0; n < each; ++n)
        if (const unsigned i = threadIdx.x + n * timed_threads; i < lines)
            mpix::detail::store_word(to + i * timed_line_payload, payload[n]);
}

// Nobody looks at what is stored at the peer, or here, nor waits for it; the fences are what is measured.
__global__ void __launch_bounds__(timed_threads) time_mail(char *at_peer, char *here, uint64_t *words) {
    constexpr int turns = 12;
    const bool leader = threadIdx.x == 0, teller = threadIdx.x == timed_threads - 1;
    char *const to = here + many_lines * timed_line_bytes;
    const uint64_t begin_ns = mpix::detail::now_ns();
    const long long begin = clock64();
    for (unsigned way = 0; way < timed_ways; ++way) {
        const unsigned lines = way % 3 == 2 ? many_lines : few_lines;
        const bool at_once = way % 3 == 0;
        long long best = 0;
        for (int turn = 0; turn < turns; ++turn) {
            __syncthreads();
            const long long start = clock64();
            if (way < 3) {
                for (unsigned i = threadIdx.x; i < lines; i += timed_threads)
                    mpix::detail::store_line(at_peer, i, 0, 0);
                __syncthreads();
                if (leader && !at_once) mpix::detail::release_to_system();  // as publish_partition has it
            } else {
                take_lines_out(to, here, lines);
                __syncthreads();
                if (teller && !at_once)  // as tell_taken has it; to a word that is taken out again
                    mpix::detail::publish_gpu(reinterpret_cast<uint64_t *>(here), 0);
            }
            __syncthreads();
            const long long took = clock64() - start;
            // The first one finds nothing in the caches.
            if (turn == 1 || (turn > 1 && took < best)) best = took;
            if (leader) mpix::detail::release_to_system();  // no turn waits for an earlier one's stores
        }
        if (leader) mpix::detail::poke(&words[way], static_cast<uint64_t>(best));
    }
    if (!leader) return;
    mpix::detail::poke(&words[ticks_of_all], static_cast<uint64_t>(clock64() - begin));
    mpix::detail::poke(&words[ns_of_all], mpix::detail::now_ns() - begin_ns);
}

}  // namespace

int launch_lone_copy(char *to, const char *from, int64_t bytes, stream_handle order) {
    lone_copy<<<1, 1, 0, order>>>(to, from, bytes);
    return cudaGetLastError();
}

int launch_taking(mpix_prequest *receive, stream_handle order) {
    take<<<blocks, threads, 0, order>>>(receive);
    return cudaGetLastError();
}

int launch_timing(char *at_peer, char *here, uint64_t *words, stream_handle order) {
    time_mail<<<1, timed_threads, 0, order>>>(at_peer, here, words);
    return cudaGetLastError();
}

int load_mail_kernels() {
    cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, take);
    return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, time_mail) : error;
}

}  // namespace mpix::gpu
