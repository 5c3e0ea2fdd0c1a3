// SPDX-License-Identifier: BSD-3-Clause
//
// GPU memory of every kind that a program may have.
#ifndef MPIX_TESTS_GPU_MEMORY_HPP
#define MPIX_TESTS_GPU_MEMORY_HPP

#include <cuda.h>
#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

namespace gpu_memory {

// `mapped`: allocations of the least size side by side, as PyTorch's expandable segments; `shareable` ones could be
// handed to other processes.
enum kind { plain, pool, managed, mapped, shareable };
constexpr kind kinds[] = {plain, pool, managed, mapped, shareable};
constexpr const char *names[] = {"cudaMalloc", "cudaMallocAsync", "cudaMallocManaged", "cuMemCreate",
                                 "cuMemCreate, shareable"};
constexpr std::string_view short_names[] = {"plain", "pool", "managed", "mapped", "shareable"};  // of MPIX_TEST_MEMORY

inline void need(bool good, const char *what) {
    if (good) return;
    std::fprintf(stderr, "%s failed\n", what);
    std::abort();
}

inline bool there_is(kind k) {
    int device = 0, has = 1;
    cudaGetDevice(&device);
    if (k == pool) cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device);
    if (k == managed) cudaDeviceGetAttribute(&has, cudaDevAttrManagedMemory, device);
    if (k == shareable)
        cudaDeviceGetAttribute(
            &has, static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), device);
    return has != 0;
}

#define MPIX_TEST_DRIVER(name) mpix::detail::driver_function<decltype(&name)>(#name)

// Ranges of addresses that allocations are mapped to.
struct mapped_range {
    std::size_t bytes, each;
    std::vector<CUmemGenericAllocationHandle> allocations;
};
inline std::map<void *, mapped_range> &mapped_ranges() {
    static auto *const all = new std::map<void *, mapped_range>;
    return *all;
}

inline void *map_memory(std::size_t bytes, bool for_others) {
    int device = 0;
    cudaGetDevice(&device);
    cudaFree(nullptr);  // there is a context
    CUmemAllocationProp what{};
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    if (for_others) what.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    mapped_range range{};
    need(MPIX_TEST_DRIVER(cuMemGetAllocationGranularity)(&range.each, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
             CUDA_SUCCESS,
         "cuMemGetAllocationGranularity");
    range.bytes = (bytes + range.each) / range.each * range.each;
    CUdeviceptr base = 0;
    need(MPIX_TEST_DRIVER(cuMemAddressReserve)(&base, range.bytes, 0, 0, 0) == CUDA_SUCCESS, "cuMemAddressReserve");
    for (std::size_t at = 0; at < range.bytes; at += range.each) {
        CUmemGenericAllocationHandle allocation{};
        need(MPIX_TEST_DRIVER(cuMemCreate)(&allocation, range.each, &what, 0) == CUDA_SUCCESS, "cuMemCreate");
        need(MPIX_TEST_DRIVER(cuMemMap)(base + at, range.each, 0, allocation, 0) == CUDA_SUCCESS, "cuMemMap");
        range.allocations.push_back(allocation);
    }
    CUmemAccessDesc access{};
    access.location = what.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    need(MPIX_TEST_DRIVER(cuMemSetAccess)(base, range.bytes, &access, 1) == CUDA_SUCCESS, "cuMemSetAccess");
    void *const address = reinterpret_cast<void *>(base);
    mapped_ranges()[address] = range;
    return address;
}

inline void *allocate(kind k, std::size_t bytes) {
    void *memory = nullptr;
    if (k == plain) need(cudaMalloc(&memory, bytes) == cudaSuccess, names[k]);
    if (k == pool)
        need(cudaMallocAsync(&memory, bytes, cudaStreamPerThread) == cudaSuccess &&
                 cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess,
             names[k]);
    if (k == managed) need(cudaMallocManaged(&memory, bytes) == cudaSuccess, names[k]);
    if (k == mapped || k == shareable) memory = map_memory(bytes, k == shareable);
    return memory;
}

inline void release(void *memory) {
    const auto it = mapped_ranges().find(memory);
    if (it == mapped_ranges().end()) return need(cudaFree(memory) == cudaSuccess, "cudaFree");
    need(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    const auto base = reinterpret_cast<CUdeviceptr>(memory);
    need(MPIX_TEST_DRIVER(cuMemUnmap)(base, it->second.bytes) == CUDA_SUCCESS, "cuMemUnmap");
    for (const CUmemGenericAllocationHandle allocation : it->second.allocations)
        need(MPIX_TEST_DRIVER(cuMemRelease)(allocation) == CUDA_SUCCESS, "cuMemRelease");
    need(MPIX_TEST_DRIVER(cuMemAddressFree)(base, it->second.bytes) == CUDA_SUCCESS, "cuMemAddressFree");
    mapped_ranges().erase(it);
}

// As MPIX_TEST_MEMORY says; plain if it is not set.
inline kind chosen() {
    const char *const name = std::getenv("MPIX_TEST_MEMORY");
    for (const kind k : kinds)
        if (name == nullptr || name == short_names[k]) return k;
    need(false, "MPIX_TEST_MEMORY");
    return plain;
}

}  // namespace gpu_memory

#endif  // MPIX_TESTS_GPU_MEMORY_HPP
