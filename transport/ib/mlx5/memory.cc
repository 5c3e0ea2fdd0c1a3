// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/memory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace mpix::transport::mlx5 {

namespace {

status not_registered(const char *call, int number) {
    return failure(std::string(call) + ": " + std::strerror(number) +
                   (number == ENOMEM ? " (the limit of locked memory, \"ulimit -l\"?)" : ""));
}

}  // namespace

void memory::release() {
    if (region_ != nullptr) verbs_.ibv_dereg_mr(region_);
    region_ = nullptr;
    by_ = way::none;
    device_ = on_host;
}

status memory::add(const verbs_calls &verbs, const gpu_calls *gpu, ibv_pd *domain, const void *address,
                   std::uint64_t bytes, contents what, std::uint64_t page) {
    release();
    verbs_ = verbs;
    const auto at = reinterpret_cast<std::uint64_t>(address);
    const unsigned access = access_of(what);
    std::uint64_t base = 0, all = 0;
    int device = on_host;
    if (gpu != nullptr)
        if (status bad = gpu->allocation_of(at, base, all, device); !bad.ok()) return bad;
    if (all != 0) {
        status bad = add_gpu(*gpu, domain, at, bytes, access, base, all, page);
        if (bad.ok()) device_ = device;
        return bad;
    }
    // The call that knows of optional rights, and leaves them out where the kernel does not.
    region_ = verbs_.ibv_reg_mr_iova2(domain, const_cast<void *>(address), bytes, at, access);
    if (region_ == nullptr) return not_registered("ibv_reg_mr", errno);
    by_ = way::host;
    return {};
}

status memory::add_gpu(const gpu_calls &gpu, ibv_pd *domain, std::uint64_t address, std::uint64_t bytes,
                       unsigned access, std::uint64_t allocation, std::uint64_t allocation_bytes, std::uint64_t page) {
    // Or the NIC might send what a cudaMemcpy that has returned has not written yet.
    if (status bad = gpu.keep_synchronous(address); !bad.ok()) return bad;
    status no_dmabuf;
    if (verbs_.ibv_reg_dmabuf_mr == nullptr) {
        no_dmabuf = failure("libibverbs.so.1 lacks ibv_reg_dmabuf_mr");
    } else {
        const dmabuf_range range = pages_to_export(address, bytes, allocation, allocation_bytes, page, no_dmabuf);
        int fd = -1;
        if (no_dmabuf.ok()) no_dmabuf = gpu.export_dmabuf(range.pages.begin, range.pages.bytes, fd);
        if (no_dmabuf.ok()) {
            region_ = verbs_.ibv_reg_dmabuf_mr(domain, range.offset, bytes, address, fd, static_cast<int>(access));
            const int number = errno;
            close(fd);  // the registration has its own reference
            if (region_ != nullptr) {
                by_ = way::dmabuf;
                return {};
            }
            no_dmabuf = not_registered("ibv_reg_dmabuf_mr", number);
        }
    }
    region_ = verbs_.ibv_reg_mr_iova2(domain, reinterpret_cast<void *>(address), bytes, address, access);
    if (region_ == nullptr)
        return failure("the NIC does not reach the GPU's memory, neither by dma-buf (" + no_dmabuf.message() +
                       ") nor by the module nvidia-peermem (" + not_registered("ibv_reg_mr", errno).message() + ")");
    by_ = way::peer_memory;
    return {};
}

status flags_not_believable(const gpu_calls *gpu, const memory &payload, const memory &flags, flag_reader reader) {
    // In the host's memory, writes that are not relaxed come behind those before them.
    if (payload.device() == on_host && flags.device() == on_host) return {};
    int ordering = ordering_none;
    if (payload.device() == flags.device())
        if (status bad = gpu->write_ordering(payload.device(), ordering); !bad.ok()) return bad;
    return flags_not_believable(ordering, payload.device() == flags.device(), reader);
}

}  // namespace mpix::transport::mlx5
