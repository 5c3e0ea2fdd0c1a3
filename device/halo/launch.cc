// SPDX-License-Identifier: BSD-3-Clause
#include "device/halo/launch.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <algorithm>

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
launch_result enqueue_exchange(halo::ordered_call call, const halo::ordered_exchange &o, int device,
                               CUstream_st *stream) {
    // A block for each parcel, as far as they run side by side. More would only take turns.
    constexpr int most_blocks = 264;
    const detail::device_scope scope(device);
    const bool sends = call == halo::ordered_call::start || call == halo::ordered_call::drain_sends;
    const int parcels = static_cast<int>(sends ? o.x.received_ : o.x.received_end_ - o.x.received_);
    const int movers = std::clamp(parcels, 1, most_blocks);
    const int blocks = call == halo::ordered_call::finish ? movers + 1 : movers;  // one begins the next exchange
    const auto error = static_cast<cudaError_t>(launch_exchange(call, o, blocks, stream));
    if (error == cudaSuccess) return {};
    // Of another device, or destroyed; the legacy default stream while another one is captured; a capture that has failed.
    const bool is_of_stream = error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed ||
                              error == cudaErrorStreamCaptureImplicit || error == cudaErrorStreamCaptureUnsupported ||
                              error == cudaErrorStreamCaptureInvalidated;
    return {detail::cuda_error(is_of_stream ? "stream" : "launch of a halo exchange's kernel", error), is_of_stream};
}

std::string finish_device(int device) {
    const detail::device_scope scope(device);
    const cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? std::string() : detail::cuda_error("cudaDeviceSynchronize", error);
}

std::string run_exchange(halo::ordered_call call, const halo::ordered_exchange &o, int device) {
    const detail::device_scope scope(device);
    std::string problem = enqueue_exchange(call, o, device, cudaStreamPerThread).problem;
    const cudaError_t error = cudaStreamSynchronize(cudaStreamPerThread);
    if (problem.empty() && error != cudaSuccess) problem = detail::cuda_error("cudaStreamSynchronize", error);
    return problem;
}
#endif

}  // namespace mpix::gpu
