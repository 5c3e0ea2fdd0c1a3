// SPDX-License-Identifier: BSD-3-Clause
//
// What the stores of a block to a peer GPU take, with and without a fence, and taking as much out of an inline buffer: measured by a
// kernel of the library. Not for kernels.
#ifndef MPIX_DEVICE_KERNELS_INLINE_TIMING_H
#define MPIX_DEVICE_KERNELS_INLINE_TIMING_H

#include <cstdint>
#include <memory>

#include "device/kernels/launch.h"

namespace mpix::gpu {

// In microseconds, the best of several turns.
struct inline_times {
    double few_stored = 0;               // few packets at the peer, until the block goes on
    double few_fenced = 0;               // and until they are known to be there
    double many_fenced = 0;              // the same of many
    double few_taken = 0;                // few packets out of an inline buffer into a buffer here
    double few_told = 0, many_told = 0;  // and until other groups of this GPU may know
};

#if MPIX_HAVE_CUDA
// Begin to measure it on `device`, in a stream of our own, by storing zeros to many_packets of a peer's memory, which must stay
// mapped until it has ended. One at a time of a device, which has been prepared (gpu_pack.h). Does not wait; needs room on the
// GPU beside the kernels that run. Errors and thread safety as in gpu_pack.h.
outcome start_timing(void *at_peer, int device, std::unique_ptr<pending> &out);
// What the last one on `device` that is finished has found.
inline_times times_of(int device);
#else
inline outcome start_timing(void *, int, std::unique_ptr<pending> &) { return "mpix was built without CUDA"; }
inline inline_times times_of(int) { return {}; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_INLINE_TIMING_H
