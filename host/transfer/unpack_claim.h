// SPDX-License-Identifier: BSD-3-Clause
//
// Who takes a message out of its landing, where several threads may: one that waits for it, all that is left at once, or those
// that ask, partition by partition.
#ifndef MPIX_HOST_TRANSFER_UNPACK_CLAIM_H
#define MPIX_HOST_TRANSFER_UNPACK_CLAIM_H

#include <mpix/detail/order.h>

#include <cstdint>

namespace mpix {

// Each says first what it is about to do, and then looks whether the other has: so not both have the message to themselves. Who
// waits then claims each partition, which costs an exchange; who asks leaves them all to who waits. What an asker has said
// counts until the next Start.
class unpack_claim {
public:
    // The request is not active.
    void start() {
        detail::store_relaxed(&asked_, 0);
        detail::store_relaxed(&all_, 0);
    }
    // Who waits, one at a time: whether nobody else takes anything in this epoch any more.
    bool all() {
        detail::set_flag_seq_cst(&all_);                       // pairs with test_flag_seq_cst in some; pairs: F3
        if (!detail::test_flag_seq_cst(&asked_)) return true;  // pairs: F3
        detail::store_release(&all_, 0);                       // pairs: F3
        return false;
    }
    // Who asks: whether partitions may be claimed.
    bool some() {
        // Who finds that another has said so speaks after it. By the same kind of load as the next: a mere acquire has no place
        // in the one order of these that decides who sees whom. pairs: F3
        if (!detail::test_flag_seq_cst(&asked_))
            detail::set_flag_seq_cst(&asked_);     // pairs with test_flag_seq_cst in all; pairs: F3
        return !detail::test_flag_seq_cst(&all_);  // pairs: F3
    }

private:
    std::uint64_t asked_ = 0, all_ = 0;
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_UNPACK_CLAIM_H
