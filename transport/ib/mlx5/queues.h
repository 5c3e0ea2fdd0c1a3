// SPDX-License-Identifier: BSD-3-Clause
//
// hardware_queues of a ConnectX, by the tables of functions that the caller has.
#ifndef MPIX_TRANSPORT_IB_MLX5_QUEUES_H
#define MPIX_TRANSPORT_IB_MLX5_QUEUES_H

#include <memory>

#include "transport/ib/hardware_queues.h"
#include "transport/ib/mlx5/calls.h"

namespace mpix::transport::mlx5 {

/** `gpu` is asked for CUDA's functions when GPUs are to post for the first time. */
using gpu_loader = status (*)(gpu_calls &out);

/** What is given outlives it. */
status make_queues(const verbs_calls &verbs, gpu_loader gpu, ibv_context *device, ibv_pd *domain, const rdma::port &at,
                   std::unique_ptr<hardware_queues> &out);

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_QUEUES_H
