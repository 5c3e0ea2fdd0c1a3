// SPDX-License-Identifier: BSD-3-Clause
#include "device/halo/launch.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <algorithm>

namespace mpix::gpu {

launch_result finish_stream(int device, CUstream_st *stream) {
    const detail::device_scope scope(device);
    if (!scope.problem().empty()) return {scope.problem(), false};
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (const cudaError_t error = cudaStreamIsCapturing(stream, &capture); error != cudaSuccess)
        return {detail::cuda_error("stream", error), true};
    if (capture != cudaStreamCaptureStatusNone)
        return {"stream is being captured, and the host makes the exchange (MPIX_HALO_STREAM)", true};
    const cudaError_t error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess) return {};
    return {detail::cuda_error("cudaStreamSynchronize", error), error == cudaErrorInvalidResourceHandle};
}

#if MPIX_HAVE_NVCC
namespace {

// A block for each parcel, if they are not too many; in finish and run one more, which begins the next exchange of the
// set.
int blocks_of(halo::stream_call call, const halo::stream_exchange_args &o) {
    const int sends = halo::sends_end(o.x), receives = o.x.received_end_ - o.own_end;
    switch (call) {
        case halo::stream_call::start:
            return std::clamp(o.own_end, 1, halo::most_parcel_blocks);
        case halo::stream_call::finish:
            return 1 + std::clamp(receives, 1, o.finish_groups);
        case halo::stream_call::run:
            return 1 + std::clamp(o.own_end + receives, 1, o.run_groups);
        case halo::stream_call::drain_sends:
            return std::clamp(sends, 1, halo::most_parcel_blocks);
        case halo::stream_call::drain_receives:
            break;  // these wait as those of finish do
    }
    return std::clamp(receives, 1, o.finish_groups);
}

}  // namespace

bool plan_run(halo::stream_exchange_args &o, int device, int ranks) {
    int multiprocessors = 0;
    if (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) return false;
    const int slots = halo::run_blocks_of_multiprocessor * multiprocessors;
    // Several ranks leave room for a block, which the progress engine may need for a copy (docs/limitations.md), and
    // their finishes room for each other's starts.
    const int blocks = ranks == 1 ? slots : (slots - 1) / ranks;
    if (ranks > 1) o.finish_groups = std::max(multiprocessors / ranks, 1);
    o.run_groups = blocks - 1;  // one more block begins the next exchange; it waits, too
    o.most_receivers = std::max(ranks == 1 ? multiprocessors - 1 : o.run_groups, 1);
    const int receives = o.x.received_end_ - o.own_end, copies = o.own_end - halo::sends_end(o.x);
    if (o.run_groups <= 0) return false;
    constexpr int most_copies = 8;  // of each block; measured between two H200
    return ranks == 1 ? copies <= most_copies * o.run_groups : std::max(o.own_end, receives) <= o.run_groups;
}

launch_result enqueue_exchange(halo::stream_call call, const halo::stream_exchange_args &o, int device,
                               CUstream_st *stream) {
    const detail::device_scope scope(device);
    if (!scope.problem().empty()) return {scope.problem(), false};
    const auto error = static_cast<cudaError_t>(launch_exchange(call, o, blocks_of(call, o), stream));
    if (error == cudaSuccess) return {};
    // Of another device, or destroyed; the legacy default stream while another one is captured; a capture that has
    // failed.
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
