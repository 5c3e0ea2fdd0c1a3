// SPDX-License-Identifier: BSD-3-Clause
//
// GPU memory of the library that is given back: by cudaMalloc and cudaFree. (What requests need comes from the transport,
// which keeps its memory.)
#ifndef MPIX_DEVICE_CUDA_MEMORY_H
#define MPIX_DEVICE_CUDA_MEMORY_H

#include <cstdint>
#include <string>

namespace mpix::gpu {

// The sentences say what went wrong; empty: nothing did.
#if MPIX_HAVE_CUDA
// Zeroed, aligned to 256 bytes.
std::string allocate(int device, std::uint64_t bytes, void *&memory);
// May wait for running kernels.
void release(int device, void *memory);
#else
inline std::string allocate(int, std::uint64_t, void *&) { return "mpix was built without CUDA"; }
inline void release(int, void *) {}
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_CUDA_MEMORY_H
