// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/device_memory.h"

#include <mpi.h>

#include <cstring>
#include <new>

#include "device/cuda/memory.h"
#include "host/format.h"

namespace mpix::halo {
namespace {

constexpr std::align_val_t allocation_alignment{256};

}  // namespace

void device_memory::aligned_free::operator()(std::byte *memory) const {
    ::operator delete(memory, allocation_alignment);
}

device_memory::~device_memory() {
    if (on_gpu_ != nullptr) gpu::release(where_.device, on_gpu_);
}

status device_memory::allocate(const transport::placement &where, std::uint64_t bytes) {
    where_ = where;
    if (where.owner != nullptr)
        return from_sentence(gpu::allocate(where.device, bytes, on_gpu_)).of_class(MPI_ERR_NO_MEM);
    auto *const memory =
        static_cast<std::byte *>(::operator new(bytes == 0 ? 1 : bytes, allocation_alignment, std::nothrow));
    if (memory == nullptr) return failure(MPI_ERR_NO_MEM, format("no memory for {} bytes of messages", bytes));
    std::memset(memory, 0, bytes);
    host_.reset(memory);
    return {};
}

std::byte *device_memory::address() const {
    return where_.owner != nullptr ? static_cast<std::byte *>(on_gpu_) : host_.get();
}

status device_memory::write(std::uint64_t at, const void *from, std::uint64_t bytes) {
    if (where_.owner != nullptr)
        return where_.owner->write(address() + at, from, bytes, where_.device).of_class(MPI_ERR_OTHER);
    std::memcpy(address() + at, from, bytes);
    return {};
}

status device_memory::read(std::uint64_t at, void *to, std::uint64_t bytes) const {
    if (where_.owner != nullptr)
        return where_.owner->read(to, address() + at, bytes, where_.device).of_class(MPI_ERR_OTHER);
    std::memcpy(to, address() + at, bytes);
    return {};
}

}  // namespace mpix::halo
