// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernels/drain.h"

#include "device/kernels/own_stream.h"

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
outcome start_inline_drain(mpix_prequest *receive, int device, std::unique_ptr<pending> &out) {
    return start_in_own_stream(
        device, "taking out of an inline buffer",
        [&](device_state &, cudaStream_t stream) {
            const auto error = static_cast<cudaError_t>(launch_inline_drain(receive, stream));
            return error == cudaSuccess ? outcome{} : detail::cuda_error("a kernel of mpix", error);
        },
        out);
}
#endif

}  // namespace mpix::gpu
