// SPDX-License-Identifier: BSD-3-Clause
#include "device/halo/launch.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <algorithm>

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
launch_result enqueue_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int device,
                               CUstream_st *stream) {
    // A block for each parcel.
    const detail::device_scope scope(device);
    if (!scope.problem().empty()) return {scope.problem(), false};
    const bool sends = call == halo::stream_call::start || call == halo::stream_call::drain_sends;
    const int parcels = static_cast<int>(sends ? halo::sends_end(o.x) : o.x.received_end_ - o.x.received_begin_);
    const int parcel_blocks = std::clamp(parcels, 1, halo::most_parcel_blocks);
    const int blocks = call == halo::stream_call::finish ? parcel_blocks + 1 : parcel_blocks;  // one begins an exchange
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
    if (!scope.problem().empty()) return scope.problem();
    const cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? std::string() : detail::cuda_error("cudaDeviceSynchronize", error);
}

std::string run_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int device) {
    const detail::device_scope scope(device);
    if (!scope.problem().empty()) return scope.problem();
    std::string problem = enqueue_exchange(call, o, device, cudaStreamPerThread).problem;
    const cudaError_t error = cudaStreamSynchronize(cudaStreamPerThread);
    if (problem.empty() && error != cudaSuccess) problem = detail::cuda_error("cudaStreamSynchronize", error);
    return problem;
}
#endif

}  // namespace mpix::gpu
