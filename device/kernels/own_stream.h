// SPDX-License-Identifier: BSD-3-Clause
//
// Work in a stream of the library's own. Not for kernels.
#ifndef MPIX_DEVICE_KERNELS_OWN_STREAM_H
#define MPIX_DEVICE_KERNELS_OWN_STREAM_H

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <memory>
#include <utility>

#include "device/kernels/device_state.h"
#include "device/kernels/work.h"

namespace mpix::gpu {

struct under_way final : pending {
    device_state *device = nullptr;
    int ordinal = 0;  // the device's
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
    const char *what = nullptr;
    ~under_way() override {
        const detail::device_scope scope(ordinal);
        if (end != nullptr) cudaEventDestroy(end);
        if (stream != nullptr) device->give_stream(stream);
    }
    bool finished(outcome &problem) override { return detail::event_passed(end, what, problem); }
};

// Start it: `submit_to(state, stream)` enqueues it.
template <class Submit>
outcome start_in_own_stream(int ordinal, const char *what, const Submit &submit_to, std::unique_ptr<pending> &out) {
    const detail::device_scope scope(ordinal);
    if (!scope.problem().empty()) return scope.problem();
    device_state &device = devices().at(static_cast<std::size_t>(ordinal));
    if (outcome problem = device.open(); !problem.empty()) return problem;
    auto made = std::make_unique<under_way>();
    made->device = &device;
    made->ordinal = ordinal;
    made->what = what;
    made->stream = device.take_stream();
    if (outcome problem = submit_to(device, made->stream); !problem.empty()) return problem;
    cudaError_t error = cudaEventCreateWithFlags(&made->end, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(made->end, made->stream);
    if (error != cudaSuccess) return detail::cuda_error("cudaEventRecord", error);
    out = std::move(made);
    return {};
}

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_OWN_STREAM_H
