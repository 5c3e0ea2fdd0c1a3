// SPDX-License-Identifier: BSD-3-Clause
//
// For the library's own host code on the CUDA runtime.
#ifndef MPIX_DETAIL_CUDA_HOST_H
#define MPIX_DETAIL_CUDA_HOST_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mpix::detail {

// A sentence for the user.
inline std::string cuda_error(const char *what, cudaError_t error) {
    cudaGetLastError();  // ours to report, not for the user's next check to find
    return std::string(what) + ": " + cudaGetErrorString(error);
}

// A function of the driver's, which need not be linked; null if it has none of that name.
template <class Function>
inline Function driver_function(const char *name) {
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found) != cudaSuccess)
        entry = nullptr;
#else
    if (cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found) != cudaSuccess) entry = nullptr;
#endif
    cudaGetLastError();
    return reinterpret_cast<Function>(found == cudaDriverEntryPointSuccess ? entry : nullptr);
}

inline std::string driver_error(const char *what, int error) {
    std::string text = what;  // not by operator +, of which GCC 12 warns (-Warray-bounds)
    text += ": error ";
    text += std::to_string(error);
    return text += " of the CUDA driver";
}

// The allocation of GPU memory around an address: only the driver interface tells. A sentence if there is none.
inline std::string find_allocation(std::uint64_t address, std::uint64_t &start, std::uint64_t &bytes) {
    using get_range = int (*)(unsigned long long *, std::size_t *, unsigned long long);
    static const auto function = driver_function<get_range>("cuMemGetAddressRange");
    if (function == nullptr) return "the CUDA driver lacks cuMemGetAddressRange";
    unsigned long long first = 0;
    std::size_t size = 0;
    if (const int error = function(&first, &size, address); error != 0)
        return driver_error("cuMemGetAddressRange", error);
    start = first;
    bytes = size;
    return {};
}

// While any thread of the program captures a stream in CUDA's default mode (cudaStreamCaptureModeGlobal), CUDA refuses
// many calls in all threads, and the capture fails as well. The library's calls have nothing to do with what is captured,
// so the calling thread is exempted from that.
class beside_captures {
public:
    beside_captures() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    ~beside_captures() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    beside_captures(const beside_captures &) = delete;
    beside_captures &operator=(const beside_captures &) = delete;

private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // and then the thread's own
};

// A device is current; the caller's own is so again afterwards. Captures are not disturbed.
class device_scope {
public:
    explicit device_scope(int device) : device_(device) {
        if (cudaGetDevice(&previous_) != cudaSuccess) previous_ = -1;
        if (previous_ != device) cudaSetDevice(device);
    }
    ~device_scope() {
        if (previous_ >= 0 && previous_ != device_) cudaSetDevice(previous_);
    }
    device_scope(const device_scope &) = delete;
    device_scope &operator=(const device_scope &) = delete;

private:
    const beside_captures beside_captures_;
    int device_, previous_ = -1;
};

// Whether all work before the event is done; `problem` is set if it failed.
inline bool event_passed(cudaEvent_t event, const char *what, std::string &problem) {
    const beside_captures beside;
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
    }
    if (state != cudaSuccess) problem = cuda_error(what, state);
    return true;
}

// Kernels of `device` may access memory of `other`.
inline std::string enable_peer(int device, int other) {
    const device_scope scope(device);
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaSuccess) return {};
    if (error != cudaErrorPeerAccessAlreadyEnabled)
        return cuda_error("no peer access between two GPUs: cudaDeviceEnablePeerAccess", error);
    cudaGetLastError();
    return {};
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_CUDA_HOST_H
