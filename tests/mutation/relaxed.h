// SPDX-License-Identifier: BSD-3-Clause
//
// The ordered accesses of <mpix/detail/order.h> without their order: the same values, no guarantee.
#ifndef MPIX_TESTS_MUTATION_RELAXED_H
#define MPIX_TESTS_MUTATION_RELAXED_H

#include <mpix/detail/order.h>

namespace mpix::detail {

inline uint64_t relaxed_load_acquire(const uint64_t *word) { return load_relaxed(word); }
inline uint64_t relaxed_load_acquire_gpu(const uint64_t *word) { return load_relaxed(word); }
inline void relaxed_store_release(uint64_t *word, uint64_t value) { store_relaxed(word, value); }
inline void relaxed_store_release_gpu(uint64_t *word, uint64_t value) { store_relaxed(word, value); }
inline void relaxed_store_release_after_fence(uint64_t *word, uint64_t value) { store_relaxed(word, value); }
inline uint64_t relaxed_fetch_add_acq_rel_gpu(uint64_t *counter) {
    return std::atomic_ref<uint64_t>(*counter).fetch_add(1, std::memory_order_relaxed);
}
inline bool relaxed_compare_exchange_acq_rel_gpu(uint64_t *word, uint64_t *expected, uint64_t desired) {
    return std::atomic_ref<uint64_t>(*word).compare_exchange_strong(*expected, desired, std::memory_order_relaxed);
}
inline bool relaxed_cas_acq_rel_gpu(uint64_t *word, uint64_t expected, uint64_t desired) {
    return relaxed_compare_exchange_acq_rel_gpu(word, &expected, desired);
}
inline void relaxed_set_flag_seq_cst(uint64_t *own) { store_relaxed(own, uint64_t{1}); }
inline bool relaxed_test_flag_seq_cst(const uint64_t *others) { return load_relaxed(others) != 0; }
inline void relaxed_store_release_record(uint32_t *record, uint32_t value) { store_relaxed(record, value); }
inline uint32_t relaxed_load_acquire_record(const uint32_t *record) { return load_relaxed(record); }
inline void relaxed_fence_acquire(const uint64_t *) {}
inline bool relaxed_reached_acquire(const uint64_t *word, uint64_t value) { return load_relaxed(word) >= value; }
inline void relaxed_load_acquire_pair(const uint64_t *words, uint64_t *first, uint64_t *second) {
    *first = load_relaxed(words);
    *second = load_relaxed(words + 1);
}

}  // namespace mpix::detail

#endif  // MPIX_TESTS_MUTATION_RELAXED_H
