// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of the CUDA driver, which need not be linked.
#ifndef MPIX_DETAIL_CUDA_DRIVER_H
#define MPIX_DETAIL_CUDA_DRIVER_H

#include <cuda_runtime.h>

#include <string>

namespace mpix::detail {

// Null if the driver has none of that name. CUDA's last error is the caller's still.
template <class Function>
inline Function driver_function(const char *name) {
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
    if (error == cudaSuccess && found == cudaDriverEntryPointSuccess) return reinterpret_cast<Function>(entry);
    if (error != cudaSuccess) cudaGetLastError();
    return nullptr;
}

inline std::string driver_error(const char *what, int error) {
    std::string text = what;  // not by operator +, of which GCC 12 warns (-Warray-bounds)
    text += ": error ";
    text += std::to_string(error);
    return text += " of the CUDA driver";
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_CUDA_DRIVER_H
