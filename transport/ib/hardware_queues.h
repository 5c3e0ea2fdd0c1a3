// SPDX-License-Identifier: BSD-3-Clause
//
// Work queues that a NIC executes: to each peer a connection of its own beside the network's, on the network's device
// and in its protection domain, so that the keys of what the network describes are good for both. It belongs to one
// executor.
//
// Thread safety: every function may be called from any thread.
#ifndef MPIX_TRANSPORT_IB_HARDWARE_QUEUES_H
#define MPIX_TRANSPORT_IB_HARDWARE_QUEUES_H

#include <memory>

#include "transport/ib/rc.h"
#include "transport/send_queue.h"

namespace mpix::transport {

struct hardware_queues {
    // The end: nobody posts any more. What was opened stays, and is of no use.
    virtual ~hardware_queues() = default;
    // Our end of the connection; the same one if asked again.
    virtual status introduce(int peer, rdma::qp_address &own) = 0;
    // Behind introduce.
    virtual status meet(int peer, const rdma::qp_address &peers) = 0;
    // What is posted to the peer, now or later, fails.
    virtual void give_up(int peer) = 0;
    // For the kernels of `device`, by `gpus`, or (null) for host threads. Behind meet.
    virtual status open_queue(int peer, transport &host_memory, transport *gpus, int device,
                              std::unique_ptr<send_queue> &out) = 0;
};

// Why not: the device is no ConnectX, or the libraries lack what is needed. `device`, `domain` and `at` outlive it.
status make_mlx5_queues(ibv_context *device, ibv_pd *domain, const rdma::port &at,
                        std::unique_ptr<hardware_queues> &out);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_IB_HARDWARE_QUEUES_H
