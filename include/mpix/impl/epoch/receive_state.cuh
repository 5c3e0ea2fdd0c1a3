// SPDX-License-Identifier: BSD-3-Clause
//
// What an epoch handle knows of a receive (see handle/epoch_handle.cuh).
#ifndef MPIX_IMPL_EPOCH_RECEIVE_STATE_CUH
#define MPIX_IMPL_EPOCH_RECEIVE_STATE_CUH

#include <stdint.h>

namespace mpix::detail {

struct receive_state {
    uint64_t epoch;  // the running one; 0: not known
    uint64_t *flags;
    unsigned partitions, senders;
    // Where partitions of the sender, which are those of this side, come inline. Null: not, or not in whole words.
    char *inline_buffer;
    char *buffer;
    uint64_t *told, partition_bytes;  // as in mpix_prequest
    bool reads;                       // groups may be offered partitions (rget.cuh), with an inline buffer only whoever
                                      // claims them there (await_offer.cuh)
};

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_RECEIVE_STATE_CUH
