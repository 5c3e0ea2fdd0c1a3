// SPDX-License-Identifier: BSD-3-Clause
//
// The backends by name; for select alone.
#ifndef MPIX_TRANSPORT_BACKENDS_H
#define MPIX_TRANSPORT_BACKENDS_H

#include <memory>
#include <string>

#include "transport/device_spec.h"
#include "transport/network.h"
#include "transport/send_queue.h"
#include "transport/transport.h"
#include "transport/ucx_options.h"

namespace mpix::transport {

transport &shm_transport();
#if MPIX_HAVE_CUDA
transport &cuda_ipc_transport();
#endif
#if MPIX_HAVE_UCX
network &ucx_transport(const ucx_options &options);  // which the first call has made
#endif
#if MPIX_HAVE_VERBS
network &verbs_transport(const device_spec &device);  // which the first call has made
#endif

// To one peer, for one executor: the kernels of a GPU, or (gpus null) host threads. The software HCA executes it.
status make_network_queue(network &wire, transport &host_memory, transport *gpus, int device,
                          std::unique_ptr<send_queue> &out);

// The same, executed by the network's hardware if it can be. `executed_by`: by whom, and if not by hardware why not.
status make_queue_to(network &wire, int peer, transport &host_memory, transport *gpus, int device,
                     std::unique_ptr<send_queue> &out, std::string &executed_by);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_BACKENDS_H
