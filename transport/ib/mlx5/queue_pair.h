// SPDX-License-Identifier: BSD-3-Clause
//
// A reliable connection of a ConnectX whose send queue, completion queue, doorbell records and doorbell are ours:
// threads of the host or of a GPU post to it and poll it as include/mpix/impl/work_queue/queue.cuh does, and
// libibverbs' own posting and polling are not used.
//
//   open         makes the queue pair and exports it
//   address         goes to the peer, by whatever way the caller has
//   connect      with the peer's; both ends may do it in any order
//   map_for_gpu  if GPUs post
//
// Then make_queue takes host_rings(), and what it made gets rings() in their place.
#ifndef MPIX_TRANSPORT_IB_MLX5_QUEUE_PAIR_H
#define MPIX_TRANSPORT_IB_MLX5_QUEUE_PAIR_H

#include <cstdint>
#include <vector>

#include "transport/ib/mlx5/calls.h"
#include "transport/ib/mlx5/export.h"
#include "transport/ib/mlx5/gpu_pages.h"
#include "transport/ib/rc.h"

namespace mpix::transport::mlx5 {

/** Who tells the NIC that there is something to do. */
enum class bell {
    by_poster,  // whoever posts, the GPU included: mpix_queue_rings::doorbell
    by_proxy,   // a thread of the host that looks at the doorbell record, see doorbell_proxy.h
};

class queue_pair {
public:
    queue_pair() = default;
    ~queue_pair() { close(); }
    queue_pair(const queue_pair &) = delete;
    queue_pair &operator=(const queue_pair &) = delete;

    /** After a failure nothing is held. `device`, `domain` and `at` outlive it. */
    status open(const verbs_calls &verbs, ibv_context *device, ibv_pd *domain, const rdma::port &at,
                std::uint32_t blocks);
    /**
     * Queues and records. Fails where the GPUs do not reach them: then the host alone may post. Whether they reach the
     * doorbell too is tried, and rung_by() says what came of it. `pages` outlives the queue pair.
     */
    status map_for_gpu(gpu_pages &pages);
    /** What was posted fails, or has gone; what is posted from now on fails. No memory is read any more. */
    void fail_all();
    /** Nobody posts, polls or rings any more. */
    void close();

    /** For the peer's connect(). */
    rdma::qp_address address() const { return rdma::qp_address_of(*port_, host_.qpn, psn_); }
    /** Nothing in the peer's address is trusted. */
    status connect(const rdma::qp_address &peers);

    /** As this process reaches them; always with the doorbell. */
    const mpix_queue_rings &host_rings() const { return host_; }
    /**
     * As the posting side reaches them, the GPU behind map_for_gpu; without a doorbell where a doorbell proxy is
     * needed.
     */
    const mpix_queue_rings &rings() const { return posting_; }
    bell rung_by() const { return bell_; }
    /** Why not by the GPU; success if it is. */
    const status &why_proxy() const { return why_proxy_; }
    std::uint32_t number() const { return host_.qpn; }

private:
    status make(ibv_context *device, ibv_pd *domain, std::uint32_t blocks);
    status export_rings();
    void unmap();

    verbs_calls verbs_;
    gpu_pages *pages_ = nullptr;
    const rdma::port *port_ = nullptr;
    ibv_td *thread_domain_ = nullptr;
    ibv_pd *parent_ = nullptr;
    ibv_cq *completions_ = nullptr;
    ibv_qp *queue_ = nullptr;
    std::uint32_t psn_ = 0;
    mpix_queue_rings host_{}, posting_{};
    bell bell_ = bell::by_poster;
    status why_proxy_;
    struct held_pages {
        const void *host;
        std::size_t bytes;
    };
    std::vector<held_pages> held_;
};

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_QUEUE_PAIR_H
