// SPDX-License-Identifier: BSD-3-Clause
//
// What gpu_pack.cc asks of the part that only nvcc can compile.
#ifndef MPIX_DEVICE_PACK_LAUNCH_H
#define MPIX_DEVICE_PACK_LAUNCH_H

#include <mpix/device/gpu_pack.h>

namespace mpix::gpu {

// One kernel for all of the message, on the current device. The tables of the message's type and its packed side are
// memory that this device can reach. Returns a cudaError_t.
int launch_pack(const message &m, stream_handle order);
// The same from one type to another.
int launch_move(const passage &p, stream_handle order);

// Have all of these kernels loaded on the current device.
int load_kernels();

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_PACK_LAUNCH_H
