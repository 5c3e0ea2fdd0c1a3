// SPDX-License-Identifier: BSD-3-Clause
//
// The ordered accesses of <mpix/detail/order.h> without their order: the same values, no guarantee.
#ifndef MPIX_TESTS_MUTATION_RELAXED_H
#define MPIX_TESTS_MUTATION_RELAXED_H

#include <mpix/detail/order.h>

namespace mpix::detail {

inline uint64_t relaxed_observe(const uint64_t *word) { return peek(word); }
inline uint64_t relaxed_observe_gpu(const uint64_t *word) { return peek(word); }
inline void relaxed_publish(uint64_t *word, uint64_t value) { poke(word, value); }
inline void relaxed_publish_gpu(uint64_t *word, uint64_t value) { poke(word, value); }
inline void relaxed_publish_after_fence(uint64_t *word, uint64_t value) { poke(word, value); }
inline uint64_t relaxed_count_up_gpu(uint64_t *counter) {
    return std::atomic_ref<uint64_t>(*counter).fetch_add(1, std::memory_order_relaxed);
}
inline bool relaxed_claim_or_see_gpu(uint64_t *word, uint64_t *expected, uint64_t desired) {
    return std::atomic_ref<uint64_t>(*word).compare_exchange_strong(*expected, desired, std::memory_order_relaxed);
}
inline bool relaxed_claim_gpu(uint64_t *word, uint64_t expected, uint64_t desired) {
    return relaxed_claim_or_see_gpu(word, &expected, desired);
}
inline void relaxed_raise_flag(uint64_t *own) { poke(own, uint64_t{1}); }
inline bool relaxed_look_across(const uint64_t *others) { return peek(others) != 0; }
inline void relaxed_hand_to_nic(uint32_t *record, uint32_t value) { poke(record, value); }
inline uint32_t relaxed_fetch_record(const uint32_t *record) { return peek(record); }
inline void relaxed_acquire_peeked(const uint64_t *) {}

}  // namespace mpix::detail

#endif  // MPIX_TESTS_MUTATION_RELAXED_H
