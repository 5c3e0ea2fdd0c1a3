// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of an exchange's fields. Each exchange has an entry in a list of the process, so a halo::array that is
// destroyed finds the exchanges that use it.
#ifndef MPIX_HOST_FIELD_FIELD_MEMORY_H
#define MPIX_HOST_FIELD_FIELD_MEMORY_H

#include <atomic>
#include <cstddef>
#include <vector>

namespace mpix::halo {

class field_memory {
public:
    field_memory();
    ~field_memory();
    field_memory(const field_memory &) = delete;
    field_memory &operator=(const field_memory &) = delete;

    // An allocation of a field; a null pointer is ignored. `in_gpu`: the CPU need not be able to write to it.
    void add(int field, void *first, std::size_t bytes, bool in_gpu = false);
    // True from the start of an exchange to its end. If the exchange fails, it stays true.
    void set_active(bool now) { active_.store(now, std::memory_order_relaxed); }
    // The field whose array was destroyed first, or -1.
    int destroyed_field() const { return destroyed_.load(std::memory_order_relaxed); }
    // The first field in host memory whose first or last byte the CPU can no longer write, or -1.
    int unmapped_field() const;

    // Marks the fields in memory that is about to be freed. Returns whether an active exchange uses it: then the memory
    // must be kept.
    static bool before_free(const void *first, std::size_t bytes);

private:
    struct part {
        int field;
        std::byte *first;
        std::size_t bytes;
        bool in_gpu;
    };
    std::vector<part> parts_;
    std::atomic<bool> active_{false};
    std::atomic<int> destroyed_{-1};
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_FIELD_MEMORY_H
