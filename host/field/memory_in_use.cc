// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/memory_in_use.h"

#include <algorithm>
#include <functional>
#include <mutex>

#include <mpix/halo.hpp>

#include "host/request/user_memory.h"

namespace mpix::halo {
namespace {

struct all_exchanges {
    std::mutex mutex;
    std::vector<memory_in_use *> list;
};

// Never destroyed: a program's arrays may end after main.
all_exchanges &everybody() {
    static all_exchanges &all = *new all_exchanges;
    return all;
}

}  // namespace

memory_in_use::memory_in_use() {
    all_exchanges &all = everybody();
    const std::lock_guard lock(all.mutex);
    all.list.push_back(this);
}

memory_in_use::~memory_in_use() {
    all_exchanges &all = everybody();
    const std::lock_guard lock(all.mutex);
    std::erase(all.list, this);
}

void memory_in_use::add(int field, void *first, std::size_t bytes, bool in_gpu) {
    if (first == nullptr || bytes == 0) return;
    const std::lock_guard lock(everybody().mutex);
    parts_.push_back({field, static_cast<std::byte *>(first), bytes, in_gpu});
}

int memory_in_use::unmapped() const {
    for (const part &p : parts_)
        if (!p.in_gpu && !(can_write(p.first) && can_write(p.first + p.bytes - 1))) return p.field;
    return -1;
}

bool memory_in_use::ends(const void *first, std::size_t bytes) {
    const auto *const begin = static_cast<const std::byte *>(first);
    const std::less<> before;  // of addresses in different arrays, too
    all_exchanges &all = everybody();
    const std::lock_guard lock(all.mutex);
    bool under_way = false;
    for (memory_in_use *const one : all.list) {
        const auto used = std::find_if(one->parts_.begin(), one->parts_.end(), [&](const part &p) {
            return before(p.first, begin + bytes) && before(begin, p.first + p.bytes);
        });
        if (used == one->parts_.end()) continue;
        int none = -1;
        one->ended_.compare_exchange_strong(none, used->field, std::memory_order_relaxed);
        under_way = under_way || one->under_way_.load(std::memory_order_relaxed);
    }
    return under_way;
}

bool detail::memory_ends(const void *first, std::size_t bytes) noexcept { return memory_in_use::ends(first, bytes); }

}  // namespace mpix::halo
