// SPDX-License-Identifier: BSD-3-Clause
//
// What the library does on a GPU by the functions that it gives to kernels: take what lies in a receive's inline buffer
// out to its buffer. Not for kernels.
#ifndef MPIX_DEVICE_KERNELS_DRAIN_H
#define MPIX_DEVICE_KERNELS_DRAIN_H

#include <mpix/detail/abi.h>

#include <memory>

#include "device/kernels/work.h"

namespace mpix::gpu {

#if MPIX_HAVE_NVCC
// What has come by now of an active receive, exported to `device`; in a stream of our own. Needs room on the GPU beside the
// kernels that run. Errors and thread safety as in gpu_pack.h.
outcome start_inline_drain(mpix_prequest *receive, int device, std::unique_ptr<pending> &out);

// What kernels/drain.cc asks of the part that only nvcc can compile; a cudaError_t.
int launch_inline_drain(mpix_prequest *receive, stream_handle stream);
// Have the kernels of inline_kernels.cu loaded on the current device.
int load_inline_kernels();
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_DRAIN_H
