// SPDX-License-Identifier: BSD-3-Clause
//
// Pages of this process that the GPUs reach: queues, doorbell records, and the NIC's registers.
#ifndef MPIX_TRANSPORT_IB_MLX5_GPU_PAGES_H
#define MPIX_TRANSPORT_IB_MLX5_GPU_PAGES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "transport/ib/mlx5/calls.h"
#include "transport/ib/mlx5/export.h"

namespace mpix::transport::mlx5 {

/**
 * Counts who uses a page: the provider puts the doorbell records of many queue pairs on one, and the registers of two.
 * CUDA takes a page once. Any thread may call any function.
 */
class gpu_pages {
public:
    gpu_pages(const gpu_calls &gpu, std::uint64_t page) : gpu_(gpu), page_(page) {}
    gpu_pages(const gpu_pages &) = delete;
    gpu_pages &operator=(const gpu_pages &) = delete;

    /** The pages around [host, host + bytes); `gpu` is by what the GPUs reach `host`. If it fails, nothing is held. */
    status hold(const void *host, std::size_t bytes, bool registers, void *&gpu);
    /** Of what was held, with the same arguments. */
    void release(const void *host, std::size_t bytes);

    /** Pages in use. */
    std::size_t held() const {
        const std::lock_guard lock(mutex_);
        return pages_.size();
    }

private:
    struct entry {
        unsigned users = 0;
        bool ours = false;  // mapped by us, so unmapped by us
        void *gpu = nullptr;
    };
    status hold_page(std::uint64_t page, bool registers, entry *&out);
    void release_pages(std::uint64_t begin, std::uint64_t end);

    const gpu_calls gpu_;
    const std::uint64_t page_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, entry> pages_;
};

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_GPU_PAGES_H
