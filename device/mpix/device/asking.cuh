// SPDX-License-Identifier: BSD-3-Clause
//
// Who reads the host's words. They lie across PCIe, where the reads of many threads queue up: 64 blocks that came at the same
// time waited 16 to 230 us for what takes one of them 2. So on a GPU one thread of a request reads them at a time, notes what it
// found where the others look, and these wait for that.
#ifndef MPIX_DEVICE_ASKING_CUH
#define MPIX_DEVICE_ASKING_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

// Whether the caller is to read them, and then to call end_asking; false: another thread has read them meanwhile. That one has
// nothing to wait for in between, so this ends.
MPIX_FN bool begin_asking(mpix_prequest *r) {
#ifdef __CUDA_ARCH__
    if (claim_gpu(&r->asking, 0, 1)) return true;
    while (observe_gpu(&r->asking) != 0) {
    }
    return false;
#else
    (void)r;
    return true;
#endif
}
// What the caller noted, before the word. Pairs with observe_gpu, and with the next caller's claim_gpu, in begin_asking.
MPIX_FN void end_asking(mpix_prequest *r) {
#ifdef __CUDA_ARCH__
    publish_gpu(&r->asking, 0);
#else
    (void)r;
#endif
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_ASKING_CUH
