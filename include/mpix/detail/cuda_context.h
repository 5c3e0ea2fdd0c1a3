// SPDX-License-Identifier: BSD-3-Clause
//
// Which device's context is current on the calling thread. No other device gets one: that takes about a second, and memory of a
// GPU that the program may leave alone. So all of it is by the driver. The runtime's cudaSetDevice, and its
// cudaThreadExchangeStreamCaptureMode, make a context on the thread's own device, which is 0 in a thread that has not chosen one.
#ifndef MPIX_DETAIL_CUDA_CONTEXT_H
#define MPIX_DETAIL_CUDA_CONTEXT_H

#include <mpix/detail/cuda_driver.h>

#include <atomic>
#include <string>
#include <utility>

namespace mpix::detail {

// While any thread of the program captures a stream in CUDA's default mode (CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA refuses
// many calls in all threads, and the capture fails as well. The library's calls have nothing to do with what is captured,
// so the calling thread is exempted from that.
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

// Whether there is a context on the device already.
inline bool has_context(int device) {
    static const auto state = driver_function<int (*)(int, unsigned *, int *)>("cuDevicePrimaryCtxGetState");
    unsigned flags = 0;
    int active = 0;
    return state != nullptr && state(device, &flags, &active) == 0 && active != 0;
}

// A thread of the library's. It keeps the first context that it gets: a network library that it calls may look for one.
inline thread_local bool library_thread = false;

// A device's primary context is current, and afterwards that which was.
class current_context {
public:
    explicit current_context(int device) {
        static const auto get = driver_function<int (*)(void **)>("cuCtxGetCurrent");
        static const auto device_of = driver_function<int (*)(int *)>("cuCtxGetDevice");
        if (get == nullptr || device_of == nullptr) {
            problem_ = "the CUDA driver lacks cuCtxGetCurrent";
            return;
        }
        void *context = nullptr;
        int its = -1;
        if (get(&context) != 0) context = nullptr;
        if (context != nullptr && device_of(&its) == 0 && its == device) return;
        // The one that is kept may be of before a cudaDeviceReset.
        if (!push(device, kept(device)) && push(device, nullptr)) problem_.clear();
        pushed_ = problem_.empty() && !(library_thread && context == nullptr);
    }
    ~current_context() {
        static const auto pop = driver_function<int (*)(void **)>("cuCtxPopCurrent");
        void *context = nullptr;
        if (pushed_ && pop != nullptr) pop(&context);
    }
    current_context(const current_context &) = delete;
    current_context &operator=(const current_context &) = delete;

    // A sentence if the device has no context, and so is not current.
    const std::string &problem() const { return problem_; }

private:
    // Primary contexts, which the process retains until it ends: what the library has made on them lasts as long. Not a
    // container, which would be destroyed before the progress thread has ended.
    static std::atomic<void *> *kept(int device) {
        constexpr int most = 64;
        static std::atomic<void *> contexts[most];
        return device >= 0 && device < most ? &contexts[device] : nullptr;
    }
    // The context in *place, else the device's, which is made if there is none.
    bool push(int device, std::atomic<void *> *place) {
        static const auto retain = driver_function<int (*)(void **, int)>("cuDevicePrimaryCtxRetain");
        static const auto push = driver_function<int (*)(void *)>("cuCtxPushCurrent");
        if (retain == nullptr || push == nullptr) {
            problem_ = "the CUDA driver lacks cuCtxPushCurrent";
            return false;
        }
        // Relaxed: the driver orders what a context consists of.
        void *context = place != nullptr ? place->load(std::memory_order_relaxed) : nullptr;
        if (context == nullptr) {
            if (const int error = retain(&context, device); error != 0)
                return failed("cuDevicePrimaryCtxRetain", device, error);
            if (std::atomic<void *> *const here = kept(device)) here->store(context, std::memory_order_relaxed);
        }
        if (const int error = push(context); error != 0) return failed("cuCtxPushCurrent", device, error);
        return true;
    }
    bool failed(const char *call, int device, int error) {
        problem_ = driver_error(call, error);
        problem_ += ", for GPU ";
        problem_ += std::to_string(device);
        return false;
    }

    std::string problem_;
    bool pushed_ = false;
};

// The same, and captures are not disturbed.
class device_scope {
public:
    explicit device_scope(int device) : context_(device) {}
    const std::string &problem() const { return context_.problem(); }

private:
    const beside_captures beside_captures_;
    const current_context context_;
};

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_CUDA_CONTEXT_H
