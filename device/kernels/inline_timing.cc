// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernels/inline_timing.h"

#include "device/kernels/own_stream.h"

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
outcome start_timing(void *at_peer, int device, std::unique_ptr<pending> &out) {
    return start_in_own_stream(
        device, "timing stores to another GPU",
        [&](device_state &state, cudaStream_t stream) -> outcome {
            const timing_room room = state.room_for_timing();
            if (room.words == nullptr) return "the GPU has no kernel, or no memory, for that";
            const auto error =
                static_cast<cudaError_t>(launch_timing(static_cast<char *>(at_peer), room.memory, room.words, stream));
            return error == cudaSuccess ? outcome{} : detail::cuda_error("a kernel of mpix", error);
        },
        out);
}

inline_times times_of(int device) {
    const std::uint64_t *const words = devices().at(static_cast<std::size_t>(device)).room_for_timing().words;
    if (words == nullptr || words[ticks_of_all] == 0) return {};
    const double us = static_cast<double>(words[ns_of_all]) / static_cast<double>(words[ticks_of_all]) / 1000;
    const auto of = [&](unsigned way) { return static_cast<double>(words[way]) * us; };
    return {of(0), of(1), of(2), of(3), of(4), of(5)};
}
#else
outcome start_timing(void *, int, std::unique_ptr<pending> &) { return "mpix was built without CUDA kernels"; }
inline_times times_of(int) { return {}; }
#endif

}  // namespace mpix::gpu
