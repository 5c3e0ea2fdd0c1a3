// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cuda_ipc/user_memory.h"

#include <cstdio>

namespace mpix::transport {
namespace {

enum class memory_kind { plain, managed, pool, mapped };

// Plain where the driver does not say.
memory_kind kind_of(const void *address) {
    unsigned managed = 0, for_ipc = 0;
    void *pool = nullptr;
    if (attribute_of(address, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) && managed != 0) return memory_kind::managed;
    if (attribute_of(address, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pool) && pool != nullptr) return memory_kind::pool;
    if (attribute_of(address, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, for_ipc) && for_ipc == 0)
        return memory_kind::mapped;
    return memory_kind::plain;
}

}  // namespace

bool is_vmm_memory(const void *address) { return kind_of(address) == memory_kind::mapped; }

std::string not_mappable(const void *address) {
    constexpr const char *names[] = {"memory that CUDA IPC refuses", "managed memory (cudaMallocManaged)",
                                     "memory of a pool (cudaMallocAsync)", "memory mapped by cuMemMap (cuMemCreate)"};
    return std::string("the buffer is ") + names[static_cast<std::size_t>(kind_of(address))] +
           ", which other processes of the node cannot map";
}

status beyond(std::uint64_t end) {
    char text[32];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(end));
    return failure(std::string("the buffer goes beyond the end of its memory, which is at ") + text);
}

status check_memory(const void *buffer, std::uint64_t bytes) {
    const std::uint64_t first = reinterpret_cast<std::uint64_t>(buffer), end = first + bytes;
    for (std::uint64_t at = first; at < end;) {
        std::uint64_t base = 0, size = 0;
        // The driver may know no bounds of such memory at all.
        if (!detail::find_allocation(at, base, size).empty() || base + size <= at)
            return at == first ? status{} : beyond(at);
        at = base + size;
        // Of allocations side by side, only mapped ones are one piece of memory.
        if (at < end && kind_of(reinterpret_cast<const void *>(base)) != memory_kind::mapped) return beyond(at);
    }
    return {};
}

}  // namespace mpix::transport
