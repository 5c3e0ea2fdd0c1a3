// SPDX-License-Identifier: BSD-3-Clause
#include "transport/reserve.h"

#include <atomic>
#include <mutex>
#include <new>

namespace mpix::transport {
namespace {

// Takes no physical memory before it is used.
constexpr std::size_t room = std::size_t{1} << 20, most_a_step = room / 2;
alignas(std::max_align_t) char piece[room];

std::mutex mutex;
// Changed under the mutex. It starts again at 0 when no block is left.
std::atomic<std::size_t> used{0};
std::size_t blocks = 0;

}  // namespace

void *reserve_take(std::size_t bytes) {
    if (void *const usual = ::operator new(bytes, std::nothrow); usual != nullptr) return usual;
    constexpr std::size_t unit = alignof(std::max_align_t);
    const std::lock_guard lock(mutex);
    const std::size_t before = used.load(std::memory_order_relaxed);
    if (bytes > room - before) throw std::bad_alloc();
    void *const taken = piece + before;
    used.store(before + (bytes + unit - 1) / unit * unit, std::memory_order_relaxed);
    ++blocks;
    return taken;
}

void reserve_give(void *taken) noexcept {
    const std::less<const void *> before;
    if (before(taken, piece) || !before(taken, piece + room)) return ::operator delete(taken);
    const std::lock_guard lock(mutex);
    if (--blocks == 0) used.store(0, std::memory_order_relaxed);
}

void require_reserve() {
    if (room - used.load(std::memory_order_relaxed) >= most_a_step) return;  // relaxed: it orders nothing
    // The reserve may be held by what lives long, while there is memory again.
    ::operator delete(::operator new(most_a_step));
}

}  // namespace mpix::transport
