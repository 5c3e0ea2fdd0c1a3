// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/calls.h"

#if MPIX_HAVE_CUDA

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <string>

namespace mpix::transport::mlx5 {
namespace {

using detail::cuda_error;
using detail::driver_error;
using detail::driver_function;

outcome map_pages(void *pages, std::size_t bytes, bool registers, bool &already) {
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

outcome gpu_address(void *host, void **gpu) {
    const cudaError_t error = cudaHostGetDevicePointer(gpu, host, 0);
    return error == cudaSuccess ? outcome{} : cuda_error("cudaHostGetDevicePointer", error);
}

outcome allocation_of(std::uint64_t address, std::uint64_t &base, std::uint64_t &bytes, int &device) {
    bytes = 0;
    cudaPointerAttributes a{};
    if (cudaPointerGetAttributes(&a, reinterpret_cast<const void *>(address)) != cudaSuccess) {
        cudaGetLastError();
        return {};
    }
    if (a.type != cudaMemoryTypeDevice) return {};
    device = a.device;
    return detail::find_allocation(address, base, bytes);
}

outcome keep_synchronous(std::uint64_t address) {
    using set_attribute = int (*)(const void *, int, unsigned long long);
    static const auto function = driver_function<set_attribute>("cuPointerSetAttribute");
    if (function == nullptr) return "the CUDA driver lacks cuPointerSetAttribute";
    constexpr int sync_memops = 6;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
    const unsigned on = 1;
    const int e = function(&on, sync_memops, address);
    return e == 0 ? outcome{} : driver_error("cuPointerSetAttribute", e);
}

outcome export_dmabuf(std::uint64_t begin, std::uint64_t bytes, int &fd) {
    using get_handle = int (*)(void *, unsigned long long, std::size_t, int, unsigned long long);
    static const auto function = driver_function<get_handle>("cuMemGetHandleForAddressRange");
    if (function == nullptr) return "the CUDA driver lacks cuMemGetHandleForAddressRange";
    constexpr int dmabuf = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    const int e = function(&fd, begin, bytes, dmabuf, 0);
    return e == 0 ? outcome{} : driver_error("cuMemGetHandleForAddressRange", e);
}

outcome write_ordering(int device, int &ordering) {
    const cudaError_t error = cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device);
    return error == cudaSuccess ? outcome{} : cuda_error("cudaDeviceGetAttribute", error);
}

}  // namespace

outcome gpu_calls::load() {
    int devices = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess)
        return cuda_error("cudaGetDeviceCount", error);
    if (devices == 0) return "there is no GPU";
    *this = {mlx5::map_pages,        mlx5::unmap_pages,   mlx5::gpu_address,   mlx5::allocation_of,
             mlx5::keep_synchronous, mlx5::export_dmabuf, mlx5::write_ordering};
    return {};
}

}  // namespace mpix::transport::mlx5

#else

namespace mpix::transport::mlx5 {

outcome gpu_calls::load() { return "mpix was built without CUDA"; }

}  // namespace mpix::transport::mlx5

#endif
