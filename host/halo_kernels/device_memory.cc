// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/device_memory.h"

#include <mpi.h>

#include <cstring>
#include <new>

namespace mpix::halo {
namespace {

constexpr std::align_val_t alignment{256};

}  // namespace

void device_memory::aligned_free::operator()(std::byte *memory) const { ::operator delete(memory, alignment); }

device_memory::~device_memory() {
    if (owner_ != nullptr) owner_->release(region_);
}

status device_memory::allocate(const transport::placement &where, std::uint64_t bytes) {
    if (where.owner == nullptr) {
        auto *const memory = static_cast<std::byte *>(::operator new(bytes == 0 ? 1 : bytes, alignment, std::nothrow));
        if (memory == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for messages");
        std::memset(memory, 0, bytes);
        host_.reset(memory);
        return {};
    }
    if (status bad = where.owner->allocate(bytes, where.device, region_); !bad.ok())
        return bad.of_class(MPI_ERR_NO_MEM);
    owner_ = where.owner;
    return {};
}

std::byte *device_memory::address() const {
    return owner_ != nullptr ? static_cast<std::byte *>(region_.address) : host_.get();
}

status device_memory::write(std::uint64_t at, const void *from, std::uint64_t bytes) {
    if (owner_ != nullptr) return owner_->write(address() + at, from, bytes, region_.device).of_class(MPI_ERR_OTHER);
    std::memcpy(address() + at, from, bytes);
    return {};
}

status device_memory::read(std::uint64_t at, void *to, std::uint64_t bytes) const {
    if (owner_ != nullptr) return owner_->read(to, address() + at, bytes, region_.device).of_class(MPI_ERR_OTHER);
    std::memcpy(to, address() + at, bytes);
    return {};
}

}  // namespace mpix::halo
