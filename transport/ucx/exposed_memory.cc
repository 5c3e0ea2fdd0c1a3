// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/exposed_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

namespace mpix::transport::ucx {
namespace {

struct wire_address {
    std::uint64_t address;
    std::uint32_t key_bytes;
    std::uint32_t reserved;
    std::uint8_t key[160];  // packed: what each of the process's devices needs to write there
};
static_assert(sizeof(wire_address) == sizeof(wire_region::address));

constexpr std::size_t first_part = sizeof wire_address::key, second_part = sizeof wire_region::address;

void fill(const region &own, const std::vector<std::uint8_t> &key, wire_region &out) {
    wire_address address{};
    address.address = reinterpret_cast<std::uint64_t>(own.address);
    address.key_bytes = static_cast<std::uint32_t>(key.size());
    std::memcpy(address.key, key.data(), std::min(key.size(), first_part));
    out = {};
    out.transport = id_ucx;
    out.device = own.device;
    out.bytes = own.bytes;
    std::memcpy(out.address, &address, sizeof address);
}

}  // namespace

status read_description(const wire_region &wire, const wire_region *rest, remote_memory &out) {
    wire_address address;
    std::memcpy(&address, wire.address, sizeof address);
    const std::size_t room = first_part + (rest != nullptr ? second_part : 0);
    const bool of_gpu = rest != nullptr;
    if (wire.transport != id_ucx || address.key_bytes == 0 || address.key_bytes > room || address.address == 0 ||
        wire.bytes > ~address.address || (of_gpu ? wire.device < 0 : wire.device != on_host))
        return failure("malformed description of a remote region");
    out.address = address.address;
    const std::size_t here = std::min<std::size_t>(address.key_bytes, first_part);
    out.key.assign(address.key, address.key + here);
    if (rest != nullptr) out.key.insert(out.key.end(), rest->address, rest->address + (address.key_bytes - here));
    return {};
}

void exposed_memory::open(ucp_context_h context, ucs_memory_type_t gpu_memory) {
    context_ = context;
    gpu_memory_ = gpu_memory;
}

void exposed_memory::close() {
    for (auto &[mapping, r] : host_) ucp_.ucp_mem_unmap(context_, r.memory);
    for (auto &[handle, r] : adopted_) ucp_.ucp_mem_unmap(context_, r.memory);
    host_.clear();
    adopted_.clear();
    context_ = nullptr;
}

status exposed_memory::describe(const region &own, wire_region &out) {
    auto it = host_.find(own.backing);
    if (it == host_.end()) {
        registration made;
        if (status bad = enter(own.backing, own.backing_bytes, UCS_MEMORY_TYPE_UNKNOWN, first_part, made); !bad.ok())
            return bad;
        it = host_.emplace(own.backing, std::move(made)).first;
    }
    fill(own, it->second.key, out);
    return {};
}

void exposed_memory::forget(const region &own) {
    if (own.lasting) return;  // the mapping is others' as well, and stays
    const auto it = host_.find(own.backing);
    if (it == host_.end()) return;
    ucp_.ucp_mem_unmap(context_, it->second.memory);
    host_.erase(it);
}

bool exposed_memory::covers(std::uint64_t address, std::uint64_t bytes) const {
    const auto behind = host_.upper_bound(reinterpret_cast<void *>(address));
    if (behind == host_.begin()) return false;
    const auto &[mapping, r] = *std::prev(behind);
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(mapping);
    return offset <= r.bytes && bytes <= r.bytes - offset;
}

status exposed_memory::adopt(void *buffer, std::uint64_t bytes, int device, region &out) {
    registration made;
    if (status bad = enter(buffer, bytes, gpu_memory_, first_part + second_part, made); !bad.ok()) return bad;
    out = {};
    out.address = buffer;
    out.bytes = bytes;
    out.device = device;
    out.handle = ++adoptions_;
    adopted_[out.handle] = std::move(made);
    return {};
}

status exposed_memory::describe(const region &own, wire_region &out, wire_region &rest) const {
    const auto it = adopted_.find(own.handle);
    if (it == adopted_.end()) return failure("a GPU's buffer that UCX was not told of");
    const std::vector<std::uint8_t> &key = it->second.key;
    fill(own, key, out);
    rest = {};
    if (key.size() > first_part) std::memcpy(rest.address, key.data() + first_part, key.size() - first_part);
    return {};
}

void exposed_memory::forget_adopted(const region &own) {
    const auto it = adopted_.find(own.handle);
    if (it == adopted_.end()) return;
    ucp_.ucp_mem_unmap(context_, it->second.memory);
    adopted_.erase(it);
}

status exposed_memory::enter(void *address, std::uint64_t bytes, ucs_memory_type_t type, std::size_t room,
                             registration &out) const {
    const auto error = [this](const char *what, ucs_status_t s) {
        return std::string("UCX: ") + what + ": " + ucp_.ucs_status_string(s);
    };
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = address;
    params.length = bytes;
    out.bytes = bytes;
    if (type != UCS_MEMORY_TYPE_UNKNOWN) {
        params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
        params.memory_type = type;
    }
    if (const ucs_status_t s = ucp_.ucp_mem_map(context_, &params, &out.memory); s != UCS_OK) {
        out.memory = nullptr;
        return failure(error("ucp_mem_map", s));
    }
    void *packed = nullptr;
    std::size_t key_bytes = 0;
    const ucs_status_t s = ucp_.ucp_rkey_pack(context_, out.memory, &packed, &key_bytes);
    if (s == UCS_OK) {
        try {
            out.key.assign(static_cast<std::uint8_t *>(packed), static_cast<std::uint8_t *>(packed) + key_bytes);
        } catch (...) {
            ucp_.ucp_rkey_buffer_release(packed);
            ucp_.ucp_mem_unmap(context_, out.memory);
            throw;
        }
        ucp_.ucp_rkey_buffer_release(packed);
    }
    if (s == UCS_OK && key_bytes <= room) return {};
    ucp_.ucp_mem_unmap(context_, out.memory);
    out.memory = nullptr;
    if (s != UCS_OK) return failure(error("ucp_rkey_pack", s));
    return failure("UCX's remote key has " + std::to_string(key_bytes) +
                   " bytes, more than a setup message has room for");
}

}  // namespace mpix::transport::ucx
