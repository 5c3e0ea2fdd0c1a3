// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that a NIC reads and writes: of the host, or of a GPU, by dma-buf or by the driver's peer memory.
#ifndef MPIX_TRANSPORT_IB_MLX5_MEMORY_H
#define MPIX_TRANSPORT_IB_MLX5_MEMORY_H

#include <cstdint>

#include "transport/ib/mlx5/calls.h"
#include "transport/ib/mlx5/export.h"

namespace mpix::transport::mlx5 {

/** One registration; given back at the end of its life. */
class memory {
public:
    enum class way { none, host, dmabuf, peer_memory };

    memory() = default;
    ~memory() { release(); }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    /**
     * `gpu`: null where the process has none. `domain` outlives it. Entries name this memory by its
     * own address, with local_key; peers by the same address, with remote_key.
     */
    status add(const verbs_calls &verbs, const gpu_calls *gpu, ibv_pd *domain, const void *address, std::uint64_t bytes,
               contents what, std::uint64_t page);
    void release();

    std::uint32_t local_key() const { return region_->lkey; }
    std::uint32_t remote_key() const { return region_->rkey; }
    way by() const { return by_; }
    /** The GPU that it lies in, or on_host. */
    int device() const { return device_; }

private:
    status add_gpu(const gpu_calls &gpu, ibv_pd *domain, std::uint64_t address, std::uint64_t bytes, unsigned access,
                   std::uint64_t allocation, std::uint64_t allocation_bytes, std::uint64_t page);
    verbs_calls verbs_;
    ibv_mr *region_ = nullptr;
    way by_ = way::none;
    int device_ = on_host;
};

/** Fails where a flag in the one says nothing of payload in the other. `gpu`: null where both are the host's. */
status flags_not_believable(const gpu_calls *gpu, const memory &payload, const memory &flags, flag_reader reader);

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_MEMORY_H
