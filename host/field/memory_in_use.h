// SPDX-License-Identifier: BSD-3-Clause
//
// What memory an exchange uses, so that it notices when a halo::array ends that is a field of it.
#ifndef MPIX_HOST_FIELD_MEMORY_IN_USE_H
#define MPIX_HOST_FIELD_MEMORY_IN_USE_H

#include <atomic>
#include <cstddef>
#include <vector>

namespace mpix::halo {

class memory_in_use {
public:
    memory_in_use();
    ~memory_in_use();
    memory_in_use(const memory_in_use &) = delete;
    memory_in_use &operator=(const memory_in_use &) = delete;

    // Of a field; null is none. `in_gpu`: in memory that the CPU need not be able to write.
    void add(int field, void *first, std::size_t bytes, bool in_gpu = false);
    // From the beginning of an exchange to its end, or for ever if it fails.
    void messages_are_under_way(bool now) { under_way_.store(now, std::memory_order_relaxed); }
    // The first field whose memory has ended, or -1.
    int ended() const { return ended_.load(std::memory_order_relaxed); }
    // The first field in host memory that the CPU cannot write any more, at its beginning or end, or -1.
    int unmapped() const;

    // Whether messages of any exchange are under way from or to memory that ends now.
    static bool ends(const void *first, std::size_t bytes);

private:
    struct part {
        int field;
        std::byte *first;
        std::size_t bytes;
        bool in_gpu;
    };
    std::vector<part> parts_;
    std::atomic<bool> under_way_{false};
    std::atomic<int> ended_{-1};
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_MEMORY_IN_USE_H
