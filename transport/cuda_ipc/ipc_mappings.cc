// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cuda_ipc/ipc_mappings.h"

#include <mpix/detail/cuda_host.h>

#include <iterator>

namespace mpix::transport {

// They wait for kernels, so without mutex_. Nobody maps meanwhile (opening_): what was allocated in the place of a closed
// one may have its handle, and would get its mapping.
void ipc_mappings::close(const to_close &mappings) {
    for (const auto &[base, device] : mappings) {
        const detail::device_scope scope(device);
        cudaIpcCloseMemHandle(base);
    }
}

// Takes those off the list that are outdated and unused. Whether others are outdated and in use.
template <class Outdated>
bool ipc_mappings::take_off(const Outdated &outdated, to_close &unused) {
    bool in_use = false;
    for (auto it = opened_.begin(); it != opened_.end();) {
        const bool found = outdated(it->first, it->second), off = found && it->second.users == 0;
        in_use |= found && !off;
        if (off) unused.emplace_back(it->second.base, it->first.device);
        it = off ? opened_.erase(it) : std::next(it);
    }
    return in_use;
}

// Where the owner has freed memory and allocated this in its place, an allocation usually has another handle, which can
// be opened beside the old one's. If not, the mappings of what was freed are `outdated`, and have to be closed first.
status ipc_mappings::try_to_attach(const wire_address &wire, int device, region &out, to_close &outdated) {
    const std::lock_guard lock(mutex_);
    const allocation_name name{wire.handle, wire.id, device};
    auto it = opened_.find(name);
    if (it == opened_.end()) {
        // The driver would take the one for the other.
        const bool in_use =
            take_off([&](const allocation_name &n, const opened &) { return n.same_handle(name); }, outdated);
        if (in_use || !outdated.empty())
            return failure(
                "the peer's GPU memory is in the place of memory that it has freed, and that another request here "
                "still maps; free that request first");
        opened made;
        made.owner = wire.pid;
        made.address = wire.address - wire.offset;
        made.bytes = wire.allocation_bytes;
        // Slabs stay mapped: the next request's flags are in them too, and closing waits for kernels.
        made.users = wire.lasting != 0 ? 1 : 0;
        void *base = nullptr;
        if (const cudaError_t error = cudaIpcOpenMemHandle(&base, wire.handle, cudaIpcMemLazyEnablePeerAccess);
            error != cudaSuccess) {
            if (error == cudaErrorAlreadyMapped)
                take_off(
                    [&](const allocation_name &n, const opened &o) { return n.device == device && o.overlaps(made); },
                    outdated);
            return failure(detail::cuda_error("cannot map the peer's GPU memory: cudaIpcOpenMemHandle", error));
        }
        made.base = static_cast<char *>(base);
        it = opened_.emplace(name, made).first;
    }
    opened &o = it->second;
    ++o.users;
    out.address = o.base + wire.offset;
    out.backing = o.base;
    out.device = device;
    if (wire.lasting >= scratch_bytes) out.scratch = o.base;
    return {};
}

status ipc_mappings::attach(const wire_address &wire, int device, region &out) {
    const std::lock_guard opening(opening_);
    to_close outdated;
    status bad = try_to_attach(wire, device, out, outdated);
    if (bad.ok() || outdated.empty()) return bad;
    close(outdated);
    outdated.clear();
    return try_to_attach(wire, device, out, outdated);
}

void ipc_mappings::detach(const region &attached) {
    const std::lock_guard lock(mutex_);
    for (auto &[name, o] : opened_)
        if (o.base == attached.backing && name.device == attached.device) --o.users;
}

void ipc_mappings::close_unused() {
    const std::lock_guard opening(opening_);
    to_close unused;
    {
        const std::lock_guard lock(mutex_);
        take_off([](const allocation_name &, const opened &) { return true; }, unused);
    }
    close(unused);
}

}  // namespace mpix::transport
