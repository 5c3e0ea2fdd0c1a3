// SPDX-License-Identifier: BSD-3-Clause
//
// For the library's own host code on the CUDA runtime.
#ifndef MPIX_DETAIL_CUDA_HOST_H
#define MPIX_DETAIL_CUDA_HOST_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
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

// While any thread of the program captures a stream in CUDA's default mode (CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA refuses
// many calls in all threads, and the capture fails as well. The library's calls have nothing to do with what is captured,
// so the calling thread is exempted from that. By the driver: the runtime's function makes a context on the current device.
class beside_captures {
public:
    beside_captures() { exchange(); }
    ~beside_captures() { exchange(); }
    beside_captures(const beside_captures &) = delete;
    beside_captures &operator=(const beside_captures &) = delete;

private:
    void exchange() {
        static const auto function = driver_function<int (*)(int *)>("cuThreadExchangeStreamCaptureMode");
        if (function != nullptr) function(&mode_);
    }
    int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED, and then the thread's own
};

// A device's primary context, which is made if there is none, and kept; null if that fails.
inline void *primary_context(int device) {
    static const auto retain = driver_function<int (*)(void **, int)>("cuDevicePrimaryCtxRetain");
    static std::mutex mutex;
    static std::map<int, void *> kept;
    const std::lock_guard lock(mutex);
    const auto found = kept.find(device);
    if (found != kept.end()) return found->second;
    void *context = nullptr;
    if (retain == nullptr || retain(&context, device) != 0) return nullptr;
    return kept[device] = context;
}

// Whether there is a context on the device already.
inline bool has_context(int device) {
    static const auto state = driver_function<int (*)(int, unsigned *, int *)>("cuDevicePrimaryCtxGetState");
    unsigned flags = 0;
    int active = 0;
    return state != nullptr && state(device, &flags, &active) == 0 && active != 0;
}

// A device's context is current on the calling thread. By the driver's stack of contexts: cudaSetDevice, to make the thread's
// own device current again, would make a context there, which takes most of a second and hundreds of MiB, on a device of which
// the program may know nothing. (A thread that has not called CUDA yet has device 0.)
class current_context {
public:
    explicit current_context(int device) {
        static const auto get = driver_function<int (*)(void **)>("cuCtxGetCurrent");
        static const auto device_of = driver_function<int (*)(int *)>("cuCtxGetDevice");
        static const auto push = driver_function<int (*)(void *)>("cuCtxPushCurrent");
        if (get == nullptr || device_of == nullptr || push == nullptr) return;
        void *context = nullptr;
        int its = -1;
        if (get(&context) == 0 && context != nullptr && device_of(&its) == 0 && its == device) return;
        context = primary_context(device);
        pushed_ = context != nullptr && push(context) == 0;
    }
    ~current_context() {
        static const auto pop = driver_function<int (*)(void **)>("cuCtxPopCurrent");
        void *context = nullptr;
        if (pushed_ && pop != nullptr) pop(&context);
    }
    current_context(const current_context &) = delete;
    current_context &operator=(const current_context &) = delete;

private:
    bool pushed_ = false;
};

// A device is current; the caller's own is so again afterwards. Captures are not disturbed.
class device_scope {
public:
    explicit device_scope(int device) : context_(device) {}

private:
    const current_context context_;
    const beside_captures beside_captures_;
};

// The allocation of GPU memory around an address: only the driver interface tells. A sentence if there is none.
inline std::string find_allocation(std::uint64_t address, std::uint64_t &start, std::uint64_t &bytes) {
    using get_attribute = int (*)(void *, int, unsigned long long);
    using get_range = int (*)(unsigned long long *, std::size_t *, unsigned long long);
    static const auto attribute = driver_function<get_attribute>("cuPointerGetAttribute");
    static const auto range = driver_function<get_range>("cuMemGetAddressRange");
    if (attribute == nullptr || range == nullptr) return "the CUDA driver lacks cuMemGetAddressRange";
    constexpr int device_ordinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    int device = -1;
    if (const int error = attribute(&device, device_ordinal, address); error != 0)
        return driver_error("cuPointerGetAttribute", error);
    const current_context context(device);  // without any the driver says nothing
    unsigned long long first = 0;
    std::size_t size = 0;
    if (const int error = range(&first, &size, address); error != 0) return driver_error("cuMemGetAddressRange", error);
    start = first;
    bytes = size;
    return {};
}

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
