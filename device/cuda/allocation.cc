// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/allocation.h"

#include <mpix/detail/cuda_host.h>

namespace mpix::gpu {

bool allocation_around(const void *address, std::uintptr_t &start, std::uint64_t &bytes) {
    return detail::find_allocation(reinterpret_cast<std::uintptr_t>(address), start, bytes).empty();
}

}  // namespace mpix::gpu
