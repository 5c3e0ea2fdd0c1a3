// SPDX-License-Identifier: BSD-3-Clause
//
// What the driver tells of the user's GPU memory: where it came from, and where it ends.
#ifndef MPIX_TRANSPORT_CUDA_IPC_USER_MEMORY_H
#define MPIX_TRANSPORT_CUDA_IPC_USER_MEMORY_H

#include <cuda.h>
#include <mpix/detail/cuda_host.h>

#include <cstdint>
#include <string>

#include "transport/status.h"

namespace mpix::transport {

// False if the driver does not know it. `out` is at least as large as what the driver writes.
template <class Value>
bool attribute_of(const void *address, CUpointer_attribute which, Value &out) {
    using get_attribute = CUresult (*)(void *, CUpointer_attribute, CUdeviceptr);
    static const auto attribute = detail::driver_function<get_attribute>("cuPointerGetAttribute");
    return attribute != nullptr && attribute(&out, which, reinterpret_cast<CUdeviceptr>(address)) == CUDA_SUCCESS;
}

// Whether a program has mapped it itself (cuMemMap).
bool is_vmm_memory(const void *address);
// Why CUDA IPC does not map GPU memory at that address.
std::string not_mappable(const void *address);

// Fails if some of these bytes certainly lie beyond the memory that begins there.
status check_memory(const void *buffer, std::uint64_t bytes);
// That they go beyond `end`.
status beyond(std::uint64_t end);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_CUDA_IPC_USER_MEMORY_H
