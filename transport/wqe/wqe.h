// SPDX-License-Identifier: BSD-3-Clause
//
// Prebuilt work-queue entries: what the kernel copies into the queue when a partition is ready.
#ifndef MPIX_TRANSPORT_WQE_WQE_H
#define MPIX_TRANSPORT_WQE_WQE_H

#include <mpix/detail/work_queue.h>

#include <cstdint>
#include <vector>

#include "transport/status.h"

namespace mpix::transport {

struct remote_place {
    std::uint64_t address;
    std::uint32_t key;
};
struct local_place {
    std::uint64_t address;
    std::uint32_t key;
};

/** The index is the poster's to fill in. `bytes` is at most wqe_most_bytes; 0 gives an entry without data segment. */
detail::wqe make_write(std::uint32_t qpn, remote_place to, local_place from, std::uint64_t bytes, bool signalled);

/** The first of wqe_flags words that the entry has room for is `value`, and the only one that it writes. */
detail::wqe make_flag_write(std::uint32_t qpn, remote_place to, std::uint64_t value, bool signalled);

/** A send request whose partitions lie at equal distances, at both ends. */
struct partition_layout {
    std::uint32_t qpn;
    std::uint32_t partitions;
    std::uint64_t bytes;  // of one partition
    local_place from;
    std::uint64_t from_stride;
    remote_place to;
    std::uint64_t to_stride;
    remote_place flags;  // 8 bytes for each partition
};

/**
 * The blocks of mpix_posting, for all partitions. Only the flag's entry is signalled: a partition's slots come back
 * together, and completions are half as many. A partition of no bytes has its flag alone.
 */
std::vector<detail::wqe> make_blocks(const partition_layout &layout);

/** The rest of it; `blocks` as the executor reaches them. */
mpix_posting describe_posting(const partition_layout &layout, mpix_work_queue *queue, const detail::wqe *blocks);

/** Whether the queue can carry such partitions: one must fit, with its flag. */
status check_layout(const partition_layout &layout, std::uint32_t log_sq);

/**
 * A queue that begins at these counts, in memory of the caller's choosing that the host reaches too. Clears the rings:
 * no entry is valid, nothing is handed over.
 */
mpix_work_queue make_queue(const mpix_queue_rings &rings, std::uint64_t *filled, mpix_queue_report *report,
                           std::uint64_t first_block = 0, std::uint64_t first_entry = 0);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_WQE_WQE_H
