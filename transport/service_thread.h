// SPDX-License-Identifier: BSD-3-Clause
//
// The library's threads. They run in the user's program, so each starts with
//   - all signals blocked except those that a thread causes itself: the others are the program's;
//   - a stack as large as the main thread's limit, but at least 64 MiB of address space: an MPI library may call the
//     user's functions in it, such as the operator of a reduction.
#ifndef MPIX_TRANSPORT_SERVICE_THREAD_H
#define MPIX_TRANSPORT_SERVICE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#if MPIX_HAVE_CUDA
#include <mpix/detail/cuda_context.h>
#endif

namespace mpix::transport {

class service_thread {
public:
    service_thread() = default;
    service_thread(const service_thread &) = delete;
    service_thread &operator=(const service_thread &) = delete;

    /** Run (object.*Body)() in a new thread. Returns 0 or an error number. `name`: at most 15 characters. */
    template <auto Body, class Object>
    int start(const char *name, Object &object) {
        sigset_t blocked, before;
        sigfillset(&blocked);
        for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&blocked, own);
        pthread_sigmask(SIG_SETMASK, &blocked, &before);
        int error = 0;
        // Limits of address space or locked memory may allow only a smaller stack.
        for (std::size_t stack = stack_bytes(); stack >= least_stack_bytes / 16; stack /= 2) {
            pthread_attr_t attributes;
            if ((error = pthread_attr_init(&attributes)) != 0) break;
            pthread_attr_setstacksize(&attributes, stack);
            error = pthread_create(
                &thread_, &attributes,
                [](void *of) -> void * {
#if MPIX_HAVE_CUDA
                    detail::library_thread = true;
#endif
                    (static_cast<Object *>(of)->*Body)();
                    return nullptr;
                },
                &object);
            pthread_attr_destroy(&attributes);
            if (error == 0) break;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        running_ = error == 0;
        if (running_) pthread_setname_np(thread_, name);
        return error;
    }

    bool running() const { return running_; }

    /** Bind it to these CPUs; false if none of them is available. */
    bool bind(const std::vector<int> &cpus) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const int cpu : cpus)
            if (cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(cpu), &set);
        return pthread_setaffinity_np(thread_, sizeof set, &set) == 0;
    }

    /** Wait for the end of the thread, if it was started. */
    void join() {
        if (running_) pthread_join(thread_, nullptr);
        running_ = false;
    }

private:
    static constexpr std::size_t least_stack_bytes = std::size_t{64} << 20;
    static std::size_t stack_bytes() {
        rlimit limit{};
        // Unlimited: glibc's default would be 2 MiB.
        if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return least_stack_bytes;
        constexpr std::size_t page = 4096;
        return std::max<std::size_t>(least_stack_bytes, limit.rlim_cur / page * page);
    }

    pthread_t thread_{};
    bool running_ = false;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_SERVICE_THREAD_H
