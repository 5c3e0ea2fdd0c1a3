// SPDX-License-Identifier: BSD-3-Clause
//
// The landing of a message: epochs side by side, in slots, and what a sender has to know before it may store to one.
#ifndef MPIX_IMPL_EPOCH_SLOT_RING_CUH
#define MPIX_IMPL_EPOCH_SLOT_RING_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

// The clear-to-send that a send of `epoch` needs. With several slots the landing still has room for one
// epoch more than the receiver has finished; the first epoch always waits for the receiver's first
// Start, because until then its request may still be freed and the match undone.
MPIX_FN uint64_t gate_needed(uint64_t epoch, uint64_t slots) { return slots > 1 && epoch > 1 ? epoch - 1 : epoch; }

// The slot that an epoch's message is in; of none, while the peer is not known, the first.
MPIX_FN uint64_t slot_of(uint64_t epoch, uint64_t slots) { return slots > 1 ? epoch & (slots - 1) : 0; }

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_SLOT_RING_CUH
