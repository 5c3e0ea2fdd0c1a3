// SPDX-License-Identifier: BSD-3-Clause
//
// Whether UCX is to reach the memory of GPUs itself.
#ifndef MPIX_TRANSPORT_UCX_GPU_MEMORY_H
#define MPIX_TRANSPORT_UCX_GPU_MEMORY_H

#include "transport/transport.h"
#include "transport/ucx_options.h"

namespace mpix::transport::ucx {

struct library_abilities {
    unsigned major = 0, minor = 0;
    bool knows_cuda = false;  // its context has said so
};

// Success if it is.
status why_no_gpu_memory(const ucx_options &options, const library_abilities &library);

}  // namespace mpix::transport::ucx

#endif  // MPIX_TRANSPORT_UCX_GPU_MEMORY_H
