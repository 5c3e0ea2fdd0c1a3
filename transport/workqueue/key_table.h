// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that work-queue entries may name, by key. What a NIC's memory regions are to the hardware.
#ifndef MPIX_TRANSPORT_WORKQUEUE_KEY_TABLE_H
#define MPIX_TRANSPORT_WORKQUEUE_KEY_TABLE_H

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace mpix::transport {

enum access : unsigned { may_read_locally = 1, may_write_remotely = 2 };

/** Any thread may call any function. */
class key_table {
public:
    /** `address` is as the entries name it; the bytes lie at `memory`. */
    std::uint32_t add(std::uint64_t address, void *memory, std::uint64_t bytes, unsigned rights) {
        const std::lock_guard lock(mutex_);
        regions_[next_] = {address, static_cast<char *>(memory), bytes, rights};
        return next_++;
    }
    std::uint32_t add(void *memory, std::uint64_t bytes, unsigned rights) {
        return add(reinterpret_cast<std::uint64_t>(memory), memory, bytes, rights);
    }
    void remove(std::uint32_t key) {
        const std::lock_guard lock(mutex_);
        regions_.erase(key);
    }

    /** Where those bytes lie; null if the key is not known, does not reach so far, or lacks the right. */
    void *find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, access right) const {
        const std::lock_guard lock(mutex_);
        const auto at = regions_.find(key);
        if (at == regions_.end() || (at->second.rights & right) == 0) return nullptr;
        const region &r = at->second;
        if (address < r.address || bytes > r.bytes || address - r.address > r.bytes - bytes) return nullptr;
        return r.memory + (address - r.address);
    }

private:
    struct region {
        std::uint64_t address;
        char *memory;
        std::uint64_t bytes;
        unsigned rights;
    };
    mutable std::mutex mutex_;
    std::unordered_map<std::uint32_t, region> regions_;
    // Keys are not given out again, so one that was removed never names other memory. Their low byte varies, too.
    std::uint32_t next_ = 0x101;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_WORKQUEUE_KEY_TABLE_H
