// SPDX-License-Identifier: BSD-3-Clause
#include <mpix/device/allocation.h>

#include <mpix/detail/cuda_host.h>

#include <cstddef>

namespace mpix::gpu {

bool allocation_around(const void *address, std::uintptr_t &start, std::uint64_t &bytes) {
    using get_range = int (*)(unsigned long long *, std::size_t *, unsigned long long);
    static const auto function = detail::driver_function<get_range>("cuMemGetAddressRange");
    unsigned long long first = 0;
    std::size_t size = 0;
    if (function == nullptr || function(&first, &size, reinterpret_cast<unsigned long long>(address)) != 0)
        return false;
    start = static_cast<std::uintptr_t>(first);
    bytes = size;
    return true;
}

}  // namespace mpix::gpu
