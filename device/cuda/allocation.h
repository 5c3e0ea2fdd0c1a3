// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_DEVICE_CUDA_ALLOCATION_H
#define MPIX_DEVICE_CUDA_ALLOCATION_H

#include <cstdint>

namespace mpix::gpu {

// The allocation of GPU memory that contains the address; false if it is unknown.
#if MPIX_HAVE_CUDA
bool allocation_around(const void *address, std::uintptr_t &start, std::uint64_t &bytes);
#else
inline bool allocation_around(const void *, std::uintptr_t &, std::uint64_t &) { return false; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_CUDA_ALLOCATION_H
