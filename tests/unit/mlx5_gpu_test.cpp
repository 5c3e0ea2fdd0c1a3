// SPDX-License-Identifier: BSD-3-Clause
//
// What a queue pair of a ConnectX asks of CUDA, on a GPU; there need be no such card. Only a card's registers are
// missing.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "transport/ib/mlx5/export.h"
#include "transport/ib/mlx5/gpu_pages.h"

using namespace mpix::transport;
using namespace mpix::transport::mlx5;
using mpix::status;

namespace {

void check(bool good, const char *what, const status &why = {}) {
    if (good) return;
    std::printf("FAILED: %s %s\n", what, why.message().c_str());
    std::exit(1);
}

// Two neighbouring queues of the host's, one page shared: what either side writes the other one reads.
void map_host_pages(const gpu_calls &gpu) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto *const memory = static_cast<char *>(std::aligned_alloc(page, 4 * page));
    std::memset(memory, 0, 4 * page);
    gpu_pages pages(gpu, page);
    void *first = nullptr, *second = nullptr;
    status bad = pages.hold(memory, 2 * page + 64, false, first);
    check(bad.ok(), "mapping pages:", bad);
    bad = pages.hold(memory + 2 * page + 128, 64, false, second);
    check(bad.ok(), "mapping a shared page:", bad);
    check(pages.held() == 3, "three pages are held");
    check(static_cast<char *>(second) - static_cast<char *>(first) == static_cast<std::ptrdiff_t>(2 * page + 128),
          "the GPU reaches both in one piece");
    std::uint64_t word = 0x1122334455667788, back = 0, *on_gpu = nullptr;
    check(cudaMalloc(&on_gpu, sizeof word) == cudaSuccess, "cudaMalloc");
    check(cudaMemcpy(on_gpu, &word, sizeof word, cudaMemcpyHostToDevice) == cudaSuccess, "cudaMemcpy");
    check(cudaMemcpy(second, on_gpu, sizeof word, cudaMemcpyDeviceToDevice) == cudaSuccess, "a copy by the GPU");
    std::memcpy(&back, memory + 2 * page + 128, sizeof back);
    check(back == word, "the host sees what the GPU has written");
    pages.release(memory, 2 * page + 64);
    check(pages.held() == 1, "the shared page stays");
    pages.release(memory + 2 * page + 128, 64);
    bool already = true;
    bad = gpu.map_pages(memory, page, false, already);
    check(bad.ok() && !already, "the pages were given back", bad);
    void *again = nullptr;
    check(pages.hold(memory, 8, false, again).ok(), "a page that somebody else has mapped");
    pages.release(memory, 8);
    gpu.unmap_pages(memory);
    cudaFree(on_gpu);
    std::free(memory);
}

void ask_about_memory(const gpu_calls &gpu) {
    char *memory = nullptr;
    constexpr std::uint64_t bytes = 4u << 20;
    check(cudaMalloc(&memory, bytes) == cudaSuccess, "cudaMalloc");
    const auto at = reinterpret_cast<std::uint64_t>(memory) + 12345;
    std::uint64_t base = 0, all = 0;
    int device = -1, ordering = -1, fd = -1;
    status bad = gpu.allocation_of(at, base, all, device);
    check(bad.ok() && base == reinterpret_cast<std::uint64_t>(memory) && all >= bytes && device == 0,
          "the allocation of an address", bad);
    int on_stack = 0;
    bad = gpu.allocation_of(reinterpret_cast<std::uint64_t>(&on_stack), base, all, device);
    check(bad.ok() && all == 0, "the host's memory is no GPU's", bad);
    bad = gpu.keep_synchronous(at);
    check(bad.ok(), "SYNC_MEMOPS:", bad);
    bad = gpu.write_ordering(0, ordering);
    check(bad.ok(), "the attribute of write ordering:", bad);
    std::printf("GPUDirectRDMAWritesOrdering: %d\n", ordering);
    bad = gpu.allocation_of(at, base, all, device);
    check(bad.ok(), "the allocation once more", bad);
    const dmabuf_range range =
        pages_to_export(at, 1u << 20, base, all, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)), bad);
    check(bad.ok() && range.pages.begin + range.offset == at, "the pages to be exported", bad);
    bad = gpu.export_dmabuf(range.pages.begin, range.pages.bytes, fd);
    std::printf("dma-buf: %s\n", bad.ok() ? "exported" : bad.message().c_str());
    check(bad.ok() == (fd >= 0), "a descriptor or a reason");
    if (fd >= 0) close(fd);
    cudaFree(memory);
}

// Ordinary memory is no card's register: whatever CUDA says, it is a sentence or a mapping, and the next call goes
// well.
void map_no_registers(const gpu_calls &gpu) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto *const memory = static_cast<char *>(std::aligned_alloc(page, page));
    std::memset(memory, 0, page);
    gpu_pages pages(gpu, page);
    void *reached = nullptr;
    const status bad = pages.hold(memory + 0x800, 8, true, reached);
    std::printf("ordinary memory as registers: %s\n", bad.ok() ? "mapped" : bad.message().c_str());
    if (bad.ok()) pages.release(memory + 0x800, 8);
    check(cudaGetLastError() == cudaSuccess, "no error is left for the program to find");
    std::free(memory);
}

}  // namespace

int main() {
    gpu_calls gpu;
    if (const status bad = gpu.load(); !bad.ok()) {
        std::printf("SKIP: %s\n", bad.message().c_str());
        return 77;
    }
    map_host_pages(gpu);
    ask_about_memory(gpu);
    map_no_registers(gpu);
    std::printf("passed\n");
    return 0;
}
