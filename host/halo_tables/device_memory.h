// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that kernels of an exchange use: of a GPU, or of the host for host threads.
#ifndef MPIX_HOST_HALO_TABLES_DEVICE_MEMORY_H
#define MPIX_HOST_HALO_TABLES_DEVICE_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/select.h"
#include "transport/status.h"

namespace mpix::halo {

// Zeroed, aligned to 256 bytes.
class device_memory {
public:
    device_memory() = default;
    ~device_memory();
    device_memory(const device_memory &) = delete;
    device_memory &operator=(const device_memory &) = delete;

    status allocate(const transport::placement &where, std::uint64_t bytes);
    std::byte *address() const;
    // Return when done. No kernel uses those bytes meanwhile.
    status write(std::uint64_t at, const void *from, std::uint64_t bytes);
    status read(std::uint64_t at, void *to, std::uint64_t bytes) const;

private:
    struct aligned_free {
        void operator()(std::byte *memory) const;
    };
    std::unique_ptr<std::byte, aligned_free> host_;
    transport::placement where_;
    void *on_gpu_ = nullptr;
};

// Where parts of one such memory lie, which are placed one after the other before it is allocated.
class memory_layout {
public:
    // Where the part begins.
    template <class T>
    std::uint64_t place(std::uint64_t count) {
        return place_bytes(count * sizeof(T));
    }
    std::uint64_t place_bytes(std::uint64_t bytes) {
        const std::uint64_t at = bytes_;
        bytes_ += (bytes + 255) / 256 * 256;
        return at;
    }
    std::uint64_t bytes() const { return bytes_; }

private:
    std::uint64_t bytes_ = 0;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_TABLES_DEVICE_MEMORY_H
