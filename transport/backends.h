// SPDX-License-Identifier: BSD-3-Clause
//
// The backends by name; for select alone.
#ifndef MPIX_TRANSPORT_BACKENDS_H
#define MPIX_TRANSPORT_BACKENDS_H

#include "transport/network.h"
#include "transport/transport.h"

namespace mpix::transport {

transport &shm_transport();
#if MPIX_HAVE_CUDA
transport &cuda_ipc_transport();
#endif
#if MPIX_HAVE_UCX
network &ucx_transport();
#endif
#if MPIX_HAVE_VERBS
network &verbs_transport();
#endif

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_BACKENDS_H
