// SPDX-License-Identifier: BSD-3-Clause
//
// Of a queue pair of a ConnectX: the decisions. What mlx5dv_init_obj says is checked and put into our terms; with which
// rights memory is registered; which pages are mapped; whether a flag may be believed. Nothing here calls anything.
#ifndef MPIX_TRANSPORT_IB_MLX5_EXPORT_H
#define MPIX_TRANSPORT_IB_MLX5_EXPORT_H

#include <infiniband/mlx5dv.h>
#include <mpix/detail/work_queue.h>

#include <cstdint>

#include "transport/transport.h"

namespace mpix::transport::mlx5 {

// ---- the queue pair -----------------------------------------------------------------------------------------------

/** What is asked of the provider, so that the send queue has at least `blocks` blocks of 64 bytes. */
ibv_qp_init_attr_ex wanted_queue(ibv_pd *domain, ibv_cq *completions, std::uint32_t blocks);

/** Entries to ask for: one for every block, and the provider may round the blocks up. */
int wanted_entries(std::uint32_t blocks);

/** Fails where our code cannot post to these. */
status check_export(const mlx5dv_qp &queue, const mlx5dv_cq &completions);

/** As this process reaches them. Checked before. */
mpix_queue_rings rings_of(const mlx5dv_qp &queue, const mlx5dv_cq &completions, std::uint32_t qpn);

// ---- pages --------------------------------------------------------------------------------------------------------

/** Whole pages. */
struct page_range {
    std::uint64_t begin = 0, bytes = 0;
    bool operator==(const page_range &) const = default;
};

/** All pages that hold a byte of it. */
page_range pages_around(std::uint64_t address, std::uint64_t bytes, std::uint64_t page);

/** What of an allocation is exported as a dma-buf, which takes whole pages, and where in that the memory begins. */
struct dmabuf_range {
    page_range pages;
    std::uint64_t offset = 0;
};
/** The pages around [address, address + bytes); cut to the allocation, which need not end with a page: `bad` then. */
dmabuf_range pages_to_export(std::uint64_t address, std::uint64_t bytes, std::uint64_t allocation,
                             std::uint64_t allocation_bytes, std::uint64_t page, status &bad);

// ---- memory -------------------------------------------------------------------------------------------------------

enum class contents {
    payload_source,   // read by our NIC
    payload_landing,  // written by peers' NICs
    flags             // written by peers' NICs, and believed by who polls them
};

/**
 * Rights of a registration. Payload may be written in any order among itself; a flag is registered without relaxed
 * ordering, so its write passes none of the payload's before it.
 */
unsigned access_of(contents what);

/** The values of the attribute cudaDevAttrGPUDirectRDMAWritesOrdering. */
enum gpu_write_ordering : int { ordering_none = 0, ordering_owner = 100, ordering_all_devices = 200 };

/** Who polls the flags. */
enum class flag_reader { owner_gpu, other_gpu, host };

/**
 * Fails where an arrival flag says nothing of payload, one of the two being in the memory of a GPU. `same_gpu`: both
 * are, of the same one; only then do both take the same way.
 */
status flags_not_believable(int ordering, bool same_gpu, flag_reader reader);

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_EXPORT_H
