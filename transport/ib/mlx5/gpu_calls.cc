// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/calls.h"

#if MPIX_HAVE_CUDA

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <string>

namespace mpix::transport::mlx5 {
namespace {

using detail::driver_function;

status cuda_error(const char *call, cudaError_t error) { return failure(detail::cuda_error(call, error)); }
status driver_error(const char *call, int error) { return failure(detail::driver_error(call, error)); }

status map_pages(void *pages, std::size_t bytes, bool registers, bool &already) {
    const unsigned flags =
        cudaHostRegisterPortable | cudaHostRegisterMapped | (registers ? cudaHostRegisterIoMemory : 0u);
    const cudaError_t error = cudaHostRegister(pages, bytes, flags);
    already = error == cudaErrorHostMemoryAlreadyRegistered;
    if (error == cudaSuccess) return {};
    if (!already) return cuda_error("cudaHostRegister", error);
    cudaGetLastError();
    return {};
}

void unmap_pages(void *pages) {
    if (cudaHostUnregister(pages) != cudaSuccess) cudaGetLastError();
}

status gpu_address(void *host, void **gpu) {
    const cudaError_t error = cudaHostGetDevicePointer(gpu, host, 0);
    return error == cudaSuccess ? status{} : cuda_error("cudaHostGetDevicePointer", error);
}

status allocation_of(std::uint64_t address, std::uint64_t &base, std::uint64_t &bytes, int &device) {
    bytes = 0;
    cudaPointerAttributes a{};
    if (cudaPointerGetAttributes(&a, reinterpret_cast<const void *>(address)) != cudaSuccess) {
        cudaGetLastError();
        return {};
    }
    if (a.type != cudaMemoryTypeDevice) return {};
    device = a.device;
    return from_sentence(detail::find_allocation(address, base, bytes));
}

status keep_synchronous(std::uint64_t address) {
    using set_attribute = int (*)(const void *, int, unsigned long long);
    static const auto function = driver_function<set_attribute>("cuPointerSetAttribute");
    if (function == nullptr) return failure("the CUDA driver lacks cuPointerSetAttribute");
    constexpr int sync_memops = 6;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
    const unsigned on = 1;
    const int e = function(&on, sync_memops, address);
    return e == 0 ? status{} : driver_error("cuPointerSetAttribute", e);
}

status export_dmabuf(std::uint64_t begin, std::uint64_t bytes, int &fd) {
    using get_handle = int (*)(void *, unsigned long long, std::size_t, int, unsigned long long);
    static const auto function = driver_function<get_handle>("cuMemGetHandleForAddressRange");
    if (function == nullptr) return failure("the CUDA driver lacks cuMemGetHandleForAddressRange");
    constexpr int dmabuf = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    const int e = function(&fd, begin, bytes, dmabuf, 0);
    return e == 0 ? status{} : driver_error("cuMemGetHandleForAddressRange", e);
}

status write_ordering(int device, int &ordering) {
    const cudaError_t error = cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device);
    return error == cudaSuccess ? status{} : cuda_error("cudaDeviceGetAttribute", error);
}

}  // namespace

status gpu_calls::load() {
    int devices = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess)
        return cuda_error("cudaGetDeviceCount", error);
    if (devices == 0) return failure("there is no GPU");
    *this = {mlx5::map_pages,        mlx5::unmap_pages,   mlx5::gpu_address,   mlx5::allocation_of,
             mlx5::keep_synchronous, mlx5::export_dmabuf, mlx5::write_ordering};
    return {};
}

}  // namespace mpix::transport::mlx5

#else

namespace mpix::transport::mlx5 {

status gpu_calls::load() { return failure("mpix was built without CUDA"); }

}  // namespace mpix::transport::mlx5

#endif
