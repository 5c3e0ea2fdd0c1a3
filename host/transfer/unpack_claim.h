// SPDX-License-Identifier: BSD-3-Clause
//
// Which threads copy a message out of its landing, where several may: a waiting thread copies all that is left at once;
// a thread that asks for a partition (Parrived) copies that one.
#ifndef MPIX_HOST_TRANSFER_UNPACK_CLAIM_H
#define MPIX_HOST_TRANSFER_UNPACK_CLAIM_H

#include <mpix/detail/order.h>

#include <cstdint>

namespace mpix {

// Each side first sets its own flag, and then looks at the other's, so at least one of two sees the other. A waiting
// thread that sees an asking one claims each partition, which costs an exchange; an asking thread that sees a waiting
// one leaves all partitions to it. The flag of the asking threads stays set until the next Start.
class unpack_claim {
public:
    // The request is not active.
    void start() {
        detail::store_relaxed(&asked_, 0);
        detail::store_relaxed(&all_, 0);
    }
    // For a waiting thread, one at a time: whether no other thread copies anything out in this epoch any more.
    bool all() {
        detail::set_flag_seq_cst(&all_);                       // pairs with test_flag_seq_cst in some; pairs: F3
        if (!detail::test_flag_seq_cst(&asked_)) return true;  // pairs: F3
        detail::store_release(&all_, 0);                       // pairs: F3
        return false;
    }
    // For an asking thread: whether it may claim partitions.
    bool some() {
        // If another asking thread has set the flag, this one comes after it. The load is of the same kind as the next
        // one: an acquire has no place in the single order that decides which side sees the other.
        // pairs: F3
        if (!detail::test_flag_seq_cst(&asked_))
            detail::set_flag_seq_cst(&asked_);     // pairs with test_flag_seq_cst in all; pairs: F3
        return !detail::test_flag_seq_cst(&all_);  // pairs: F3
    }

    // The same in a process of one thread, where the waiting and the asking thread are one.
    void ask() { detail::store_relaxed(&asked_, 1); }
    bool asked() const { return detail::load_relaxed(&asked_) != 0; }

private:
    std::uint64_t asked_ = 0, all_ = 0;
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_UNPACK_CLAIM_H
