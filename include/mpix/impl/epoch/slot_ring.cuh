// SPDX-License-Identifier: BSD-3-Clause
//
// The slots of a landing, one for each of several epochs, and the clear-to-send that a sender needs to store to one.
#ifndef MPIX_IMPL_EPOCH_SLOT_RING_CUH
#define MPIX_IMPL_EPOCH_SLOT_RING_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

// The clear-to-send that a send of `epoch` needs. With several slots, the landing has room for one epoch more than the
// receiver has finished. But the first epoch always waits for the receiver's first Start: until then its request may be
// freed, and the match undone.
MPIX_FN uint64_t clear_to_send_needed(uint64_t epoch, uint64_t slots) {
    return slots > 1 && epoch > 1 ? epoch - 1 : epoch;
}

// The slot of an epoch's message; the first one while the peer is not known, and there are none.
MPIX_FN uint64_t slot_of(uint64_t epoch, uint64_t slots) { return slots > 1 ? epoch & (slots - 1) : 0; }

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_SLOT_RING_CUH
