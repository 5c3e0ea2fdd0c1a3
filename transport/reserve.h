// SPDX-License-Identifier: BSD-3-Clause
//
// Memory for steps that must not fail half-way: setup steps that change several tables, callbacks from C, and clean-up.
// It comes from the heap, and from a reserve if the heap is exhausted. Before a step begins, require_reserve() checks
// that enough of the reserve is left; if not, nothing has changed, and the step can be repeated later.
#ifndef MPIX_TRANSPORT_RESERVE_H
#define MPIX_TRANSPORT_RESERVE_H

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mpix::transport {

void *reserve_take(std::size_t bytes);
void reserve_give(void *taken) noexcept;
/** Throws std::bad_alloc if less is left than a step may need. */
void require_reserve();

template <class T>
struct reserve_allocator {
    using value_type = T;
    reserve_allocator() = default;
    template <class U>
    reserve_allocator(const reserve_allocator<U> &) {}
    T *allocate(std::size_t n) {
        static_assert(alignof(T) <= alignof(std::max_align_t));
        if (n > ~std::size_t{0} / sizeof(T)) throw std::bad_alloc();
        return static_cast<T *>(reserve_take(n * sizeof(T)));
    }
    void deallocate(T *taken, std::size_t) noexcept { reserve_give(taken); }
    template <class U>
    bool operator==(const reserve_allocator<U> &) const {
        return true;
    }
};

template <class T>
using safe_vector = std::vector<T, reserve_allocator<T>>;
template <class T>
using safe_deque = std::deque<T, reserve_allocator<T>>;
template <class T>
using safe_set = std::set<T, std::less<T>, reserve_allocator<T>>;
template <class Key, class T>
using safe_map = std::map<Key, T, std::less<Key>, reserve_allocator<std::pair<const Key, T>>>;
template <class Key, class T>
using safe_hash_map =
    std::unordered_map<Key, T, std::hash<Key>, std::equal_to<Key>, reserve_allocator<std::pair<const Key, T>>>;

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_RESERVE_H
