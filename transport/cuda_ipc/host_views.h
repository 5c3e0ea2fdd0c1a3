// SPDX-License-Identifier: BSD-3-Clause
//
// Shared host memory as kernels see it: page-locked while any of its regions has a view.
#ifndef MPIX_TRANSPORT_CUDA_IPC_HOST_VIEWS_H
#define MPIX_TRANSPORT_CUDA_IPC_HOST_VIEWS_H

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <map>
#include <mutex>

#include "transport/transport.h"

namespace mpix::transport {

class host_views {
public:
    // As of transport::acquire_view and release_view.
    status acquire(const region &host, int device, void *&out) {
        const detail::device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        const std::lock_guard lock(mutex_);
        view &v = views_[host.backing];
        if (!v.locked) {
            v.device = device;
            const cudaError_t error =
                cudaHostRegister(host.backing, host.backing_bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
            if (error != cudaSuccess && error != cudaErrorHostMemoryAlreadyRegistered) {
                views_.erase(host.backing);
                return failure(detail::cuda_error("cannot page-lock shared memory: cudaHostRegister", error));
            }
            if (error != cudaSuccess) cudaGetLastError();
            v.locked = true;
            v.locked_here = error == cudaSuccess;
        }
        ++v.users;
        void *base = nullptr;
        if (const cudaError_t error = cudaHostGetDevicePointer(&base, host.backing, 0); error != cudaSuccess) {
            --v.users;  // it stays page-locked, for the next one
            return failure(detail::cuda_error("cudaHostGetDevicePointer", error));
        }
        out = static_cast<char *>(base) + (static_cast<char *>(host.address) - static_cast<char *>(host.backing));
        return {};
    }

    void release(const region &host) {
        int device = 0;
        {
            const std::lock_guard lock(mutex_);
            const auto it = views_.find(host.backing);
            if (it == views_.end() || --it->second.users != 0 || host.lasting) return;
            const bool locked_here = it->second.locked_here;
            device = it->second.device;
            views_.erase(it);
            if (!locked_here) return;
        }
        const detail::device_scope scope(device);
        cudaHostUnregister(host.backing);  // waits for kernels, so without the lock
    }

private:
    struct view {
        unsigned users = 0;
        int device = 0;  // that page-locked it; to unlock it takes a context
        bool locked = false;
        bool locked_here = false;  // false: the user had page-locked it before us
    };
    std::mutex mutex_;
    std::map<void *, view> views_;  // by backing
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_CUDA_IPC_HOST_VIEWS_H
