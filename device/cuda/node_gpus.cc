// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/node_gpus.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

namespace mpix::gpu {
namespace {

std::string try_ipc() {
    void *memory = nullptr;
    cudaIpcMemHandle_t handle{};
    if (const cudaError_t error = cudaMalloc(&memory, 1); error != cudaSuccess)
        return detail::cuda_error("cudaMalloc", error);
    const cudaError_t error = cudaIpcGetMemHandle(&handle, memory);
    const std::string why = error == cudaSuccess ? "" : detail::cuda_error("cudaIpcGetMemHandle", error);
    cudaFree(memory);
    return why;
}

// The driver's, since toolkits before 12.4 do not name it.
std::string look_for_fabric() {
    using get_attribute = int (*)(int *, int, int);
    constexpr int handle_type_fabric_supported = 128;  // CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED
    const auto function = detail::driver_function<get_attribute>("cuDeviceGetAttribute");
    if (function == nullptr) return "the CUDA driver lacks cuDeviceGetAttribute";
    int supported = 0;
    if (const int error = function(&supported, handle_type_fabric_supported, 0); error != 0)
        return detail::driver_error("cuDeviceGetAttribute", error);
    return supported ? "" : "GPU 0 has no fabric handles: they take NVLink across nodes, and a running IMEX daemon";
}

}  // namespace

int count_gpus() {
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
    cudaGetLastError();
    return n;
}

std::string gpu_id(int device) {
    cudaDeviceProp what{};
    if (cudaGetDeviceProperties(&what, device) == cudaSuccess) return {what.uuid.bytes, sizeof what.uuid.bytes};
    cudaGetLastError();
    return {};
}

node_gpus find_gpus() {
    node_gpus found;
    int n = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&n); error != cudaSuccess)
        found.why_none = detail::cuda_error("cudaGetDeviceCount", error);
    else if (n == 0)
        found.why_none = "there is no GPU, or CUDA_VISIBLE_DEVICES hides it";
    if (!found.why_none.empty()) {
        found.why_no_ipc = found.why_no_fabric = found.why_none;
        return found;
    }
    for (int i = 0; i < n; ++i) {
        cudaDeviceProp what{};
        cudaGetDeviceProperties(&what, i);
        found.names.push_back(std::to_string(i) + ": " + what.name + ", compute capability " +
                              std::to_string(what.major) + "." + std::to_string(what.minor));
        for (int j = 0; j < n; ++j) {
            int reaches = 0;
            if (i != j && (cudaDeviceCanAccessPeer(&reaches, i, j) != cudaSuccess || !reaches))
                found.apart.push_back(std::to_string(i) + " -> " + std::to_string(j));
        }
    }
    cudaGetLastError();
    found.why_no_ipc = try_ipc();
    found.why_no_fabric = look_for_fabric();
    return found;
}

}  // namespace mpix::gpu
