// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/field_memory.h"

#include <algorithm>
#include <functional>
#include <mutex>

#include <mpix/halo.hpp>

#include "host/request/user_memory.h"

namespace mpix::halo {
namespace {

struct field_memory_list {
    std::mutex mutex;
    std::vector<field_memory *> entries;
};

// Never destroyed: a program's arrays may be destroyed after main has returned.
field_memory_list &all_exchanges() {
    static field_memory_list &list = *new field_memory_list;
    return list;
}

}  // namespace

field_memory::field_memory() {
    field_memory_list &all = all_exchanges();
    const std::lock_guard lock(all.mutex);
    all.entries.push_back(this);
}

field_memory::~field_memory() {
    field_memory_list &all = all_exchanges();
    const std::lock_guard lock(all.mutex);
    std::erase(all.entries, this);
}

void field_memory::add(int field, void *first, std::size_t bytes, bool in_gpu) {
    if (first == nullptr || bytes == 0) return;
    const std::lock_guard lock(all_exchanges().mutex);
    parts_.push_back({field, static_cast<std::byte *>(first), bytes, in_gpu});
}

int field_memory::unmapped_field() const {
    for (const part &p : parts_)
        if (!p.in_gpu && !(can_write(p.first) && can_write(p.first + p.bytes - 1))) return p.field;
    return -1;
}

bool field_memory::before_free(const void *first, std::size_t bytes) {
    const auto *const begin = static_cast<const std::byte *>(first);
    const std::less<> before;  // also orders addresses of different arrays
    field_memory_list &all = all_exchanges();
    const std::lock_guard lock(all.mutex);
    bool in_use = false;
    for (field_memory *const memory : all.entries) {
        const auto used = std::find_if(memory->parts_.begin(), memory->parts_.end(), [&](const part &p) {
            return before(p.first, begin + bytes) && before(begin, p.first + p.bytes);
        });
        if (used == memory->parts_.end()) continue;
        int none = -1;
        memory->destroyed_.compare_exchange_strong(none, used->field, std::memory_order_relaxed);
        in_use = in_use || memory->active_.load(std::memory_order_relaxed);
    }
    return in_use;
}

bool detail::before_free(const void *first, std::size_t bytes) noexcept {
    return field_memory::before_free(first, bytes);
}

}  // namespace mpix::halo
