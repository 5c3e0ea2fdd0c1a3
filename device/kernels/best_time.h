// SPDX-License-Identifier: BSD-3-Clause
//
// How long work takes on a GPU, from its submission to the end of its stream. Not for kernels.
#ifndef MPIX_DEVICE_KERNELS_BEST_TIME_H
#define MPIX_DEVICE_KERNELS_BEST_TIME_H

#include <cuda_runtime.h>

#include <chrono>

namespace mpix::gpu {

// Microseconds, the best of a few. submit() returns a cudaError_t; after an error, which is kept in `error`, no more is
// submitted.
template <class Submit>
double best_time_us(cudaStream_t stream, cudaError_t &error, const Submit &submit) {
    using clock = std::chrono::steady_clock;
    constexpr int repeats = 4;
    double best = 0;
    for (int i = 0; i <= repeats && error == cudaSuccess; ++i) {
        const auto begin = clock::now();
        error = submit();
        if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
        const double us = std::chrono::duration<double, std::micro>(clock::now() - begin).count();
        if (i == 1 || (i > 1 && us < best)) best = us;  // the first one loads the kernel
    }
    return best;
}

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_BEST_TIME_H
