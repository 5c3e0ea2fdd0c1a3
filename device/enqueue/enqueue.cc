// SPDX-License-Identifier: BSD-3-Clause
#include "device/enqueue/enqueue.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <algorithm>

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
namespace {

template <class Launch>
std::string launch_on(int device, const Launch &launch) {
    const detail::device_scope scope(device);
    if (!scope.problem().empty()) return scope.problem();
    const auto error = static_cast<cudaError_t>(launch());
    if (error == cudaSuccess) return {};
    std::string problem = detail::cuda_error("kernel launch", error);
    if (error == cudaErrorInvalidResourceHandle || error == cudaErrorInvalidValue)
        problem +=
            "; stream must be a stream of device " + std::to_string(device) + ", where the request is exported to";
    return problem;
}

// Lists that are too long for one kernel's arguments go by several, one after the other.
template <class Launch>
std::string launch_lists(const requests_on &requests, const Launch &launch) {
    return launch_on(requests.device, [&] {
        int error = cudaSuccess;
        for (int at = 0; at < requests.count && error == cudaSuccess; at += most_listed) {
            request_list list{std::min(requests.count - at, most_listed), {}};
            std::copy_n(requests.handles + at, list.count, list.handles);
            error = launch(list);
        }
        return error;
    });
}

}  // namespace

std::string enqueue_start(const requests_on &requests, CUstream_st *stream) {
    return launch_lists(requests, [stream](const request_list &list) { return launch_start(list, stream); });
}

std::string enqueue_wait(const requests_on &requests, CUstream_st *stream) {
    return launch_lists(requests, [stream](const request_list &list) { return launch_wait(list, stream); });
}

std::string enqueue_pready(const partitions_of &send, int device, CUstream_st *stream) {
    return launch_on(device, [&] { return launch_pready(send, stream); });
}

bool may_run_now(int device, CUstream_st *stream) {
    const detail::device_scope scope(device);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    if (error != cudaSuccess) cudaGetLastError();  // then the launch says what is wrong
    return error == cudaSuccess && capture == cudaStreamCaptureStatusNone;
}
#endif

}  // namespace mpix::gpu
