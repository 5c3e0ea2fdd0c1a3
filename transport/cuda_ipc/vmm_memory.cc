// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cuda_ipc/vmm_memory.h"

#include <cuda.h>
#include <fcntl.h>
#include <mpix/detail/cuda_host.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "transport/cma.h"
#include "transport/cuda_ipc/user_memory.h"

namespace mpix::transport {
namespace {

// What is needed of the driver; null members: it is older.
struct vmm_driver {
#define MPIX_DRIVER(member, name) decltype(&name) member = detail::driver_function<decltype(&name)>(#name)
    MPIX_DRIVER(retain, cuMemRetainAllocationHandle);
    MPIX_DRIVER(properties, cuMemGetAllocationPropertiesFromHandle);
    MPIX_DRIVER(export_as, cuMemExportToShareableHandle);
    MPIX_DRIVER(release, cuMemRelease);
    MPIX_DRIVER(reserve, cuMemAddressReserve);
    MPIX_DRIVER(free_addresses, cuMemAddressFree);
    MPIX_DRIVER(map, cuMemMap);
    MPIX_DRIVER(unmap, cuMemUnmap);
    MPIX_DRIVER(set_access, cuMemSetAccess);
    MPIX_DRIVER(import_from, cuMemImportFromShareableHandle);
#undef MPIX_DRIVER
    bool whole() const {
        return retain != nullptr && properties != nullptr && export_as != nullptr && release != nullptr &&
               reserve != nullptr && free_addresses != nullptr && map != nullptr && unmap != nullptr &&
               set_access != nullptr && import_from != nullptr;
    }
};
const vmm_driver &driver() {
    static const vmm_driver made;
    return made;
}

status driver_error(const char *call, CUresult error) { return failure(detail::driver_error(call, error)); }
status system_error(const char *call) { return failure(std::string(call) + ": " + std::strerror(errno)); }

// The table, a file in memory: one for each allocation, in the order of their addresses.
struct piece {
    std::int64_t file;  // its number in the owner
    std::uint64_t bytes;
};

// Of all that is given away at a time: a process may usually have 1024 open files.
constexpr std::size_t most_files = 256;

struct open_files {
    std::vector<int> all;
    ~open_files() {
        for (const int file : all) close(file);
    }
};

// A file for the allocation that is mapped at an address.
status file_of(std::uint64_t address, int &file) {
    const vmm_driver &d = driver();
    CUmemGenericAllocationHandle allocation{};
    if (const CUresult error = d.retain(&allocation, reinterpret_cast<void *>(address)); error != CUDA_SUCCESS)
        return driver_error("cuMemRetainAllocationHandle", error);
    CUmemAllocationProp made{};
    CUresult error = d.properties(&made, allocation);
    status bad = error == CUDA_SUCCESS ? status{} : driver_error("cuMemGetAllocationPropertiesFromHandle", error);
    if (bad.ok() && (made.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
        bad = failure("it was made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
    if (bad.ok()) {
        error = d.export_as(&file, allocation, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        if (error != CUDA_SUCCESS) bad = driver_error("cuMemExportToShareableHandle", error);
    }
    d.release(allocation);
    if (bad.ok()) fcntl(file, F_SETFD, FD_CLOEXEC);
    return bad;
}

// Files for all of a range, and their table, at most so many. `allocations` changes with any of the allocations.
status files_of(std::uint64_t first, std::uint64_t end, std::size_t most, open_files &files, wire_address &out,
                std::uint64_t &allocations) {
    std::vector<piece> table;
    std::uint64_t begin = 0;
    allocations = 0;
    for (std::uint64_t at = first; at < end || table.empty();) {
        if (table.size() + 1 >= most)
            return failure("there would be more than 256 open files of such memory, one for each allocation");
        std::uint64_t base = 0, size = 0, its = 0;
        if (status bad = from_sentence(detail::find_allocation(at, base, size)); !bad.ok()) return bad;
        attribute_of(reinterpret_cast<const void *>(at), CU_POINTER_ATTRIBUTE_BUFFER_ID, its);
        int file = -1;
        if (status bad = file_of(base, file); !bad.ok()) return bad;
        files.all.push_back(file);
        if (table.empty()) begin = base;
        table.push_back({file, size});
        allocations = (allocations ^ its) * 0x9e3779b97f4a7c15u + size;
        at = base + size;
        out.allocation_bytes = at - begin;
    }
    const int all = memfd_create("mpix", MFD_CLOEXEC);
    if (all < 0) return system_error("memfd_create");
    files.all.push_back(all);
    const auto bytes = static_cast<ssize_t>(table.size() * sizeof(piece));
    if (write(all, table.data(), static_cast<std::size_t>(bytes)) != bytes) return system_error("write");
    out.pid = getpid();
    out.files = all;
    out.address = first;
    out.offset = first - begin;
    return {};
}

// The owner's table.
status read_table(int process, const wire_address &wire, open_files &files, std::vector<piece> &table) {
    const int all = take_file(process, wire.files);
    if (all < 0) return system_error("pidfd_getfd");
    files.all.push_back(all);
    std::uint64_t bytes = 0;
    for (piece p{}; pread(all, &p, sizeof p, static_cast<off_t>(table.size() * sizeof p)) == sizeof p;) {
        table.push_back(p);
        bytes += p.bytes;
        if (bytes >= wire.allocation_bytes) break;
    }
    return bytes == wire.allocation_bytes ? status{} : failure("its files are not as described");
}

CUresult allow(std::uint64_t address, std::uint64_t bytes, int device) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver().set_access(address, bytes, &access, 1);
}

void unmap(std::uint64_t address, std::uint64_t bytes) {
    driver().unmap(address, bytes);
    driver().free_addresses(address, bytes);
}

}  // namespace

status vmm_exports::give(const region &own, std::uint64_t number, wire_address &out) {
    if (!driver().whole()) return failure("the CUDA driver gives no files of it");
    const auto address = reinterpret_cast<std::uint64_t>(own.address);
    open_files files;
    const std::lock_guard lock(mutex_);
    std::size_t others = 0;
    for (const given &g : all_) others += g.files.size();
    out = {};
    std::uint64_t allocations = 0;
    if (status bad = files_of(address, address + own.bytes, others < most_files ? most_files - others : 0, files, out,
                              allocations);
        !bad.ok())
        return bad;
    for (given &g : all_)
        if (g.address == address && g.bytes == own.bytes && g.allocations == allocations) {
            if (std::find(g.regions.begin(), g.regions.end(), number) == g.regions.end()) g.regions.push_back(number);
            out = g.wire;
            return {};
        }
    out.id = ++ids_;  // a peer maps what is given anew, whatever it has mapped of those addresses before
    all_.push_back({address, own.bytes, allocations, {number}, out, std::move(files.all)});
    files.all.clear();
    return {};
}

void vmm_exports::take_back(std::uint64_t number) {
    open_files files;
    const std::lock_guard lock(mutex_);
    for (auto it = all_.begin(); it != all_.end(); ++it) {
        if (std::erase(it->regions, number) == 0) continue;
        if (it->regions.empty()) {
            files.all = std::move(it->files);
            all_.erase(it);
        }
        return;
    }
}

// Into addresses of this process, one allocation behind the other.
status vmm_mappings::map(const wire_address &wire, int device, std::uint64_t &address) {
    const vmm_driver &d = driver();
    open_files files;
    const int process = open_process(wire.pid);
    if (process < 0) return system_error("pidfd_open");
    files.all.push_back(process);
    std::vector<piece> table;
    if (status bad = read_table(process, wire, files, table); !bad.ok()) return bad;
    CUdeviceptr base = 0;
    if (const CUresult error = d.reserve(&base, wire.allocation_bytes, 0, 0, 0); error != CUDA_SUCCESS)
        return driver_error("cuMemAddressReserve", error);
    std::uint64_t done = 0;
    status bad;
    for (std::size_t i = 0; i < table.size() && bad.ok(); ++i) {
        const int file = take_file(process, table[i].file);
        if (file < 0) {
            bad = system_error("pidfd_getfd");
            break;
        }
        files.all.push_back(file);
        CUmemGenericAllocationHandle allocation{};
        CUresult error = d.import_from(&allocation, reinterpret_cast<void *>(static_cast<std::uintptr_t>(file)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (error != CUDA_SUCCESS) {
            bad = driver_error("cuMemImportFromShareableHandle", error);
            break;
        }
        error = d.map(base + done, table[i].bytes, 0, allocation, 0);
        if (error != CUDA_SUCCESS) bad = driver_error("cuMemMap", error);
        d.release(allocation);  // the mapping keeps it
        if (bad.ok()) done += table[i].bytes;
    }
    if (bad.ok())
        if (const CUresult error = allow(base, wire.allocation_bytes, device); error != CUDA_SUCCESS)
            bad = driver_error("cuMemSetAccess", error);
    if (!bad.ok()) {
        if (done != 0) d.unmap(base, done);
        d.free_addresses(base, wire.allocation_bytes);
        return bad;
    }
    address = base;
    return {};
}

status vmm_mappings::attach(const wire_address &wire, int device, region &out) {
    if (!driver().whole()) return failure("the CUDA driver maps no memory of other processes by files");
    const std::lock_guard lock(mutex_);
    const name which{wire.pid, wire.address - wire.offset, wire.id, device};
    auto it = all_.find(which);
    if (it == all_.end()) {
        mapping made{0, wire.allocation_bytes, 0};
        if (status bad = map(wire, device, made.address); !bad.ok())
            return bad.in_context("cannot map the peer's GPU memory: ");
        it = all_.emplace(which, made).first;
    }
    ++it->second.users;
    out.address = reinterpret_cast<void *>(it->second.address + wire.offset);
    out.backing = reinterpret_cast<void *>(it->second.address);
    out.device = device;
    return {};
}

void vmm_mappings::detach(const region &attached) {
    const std::lock_guard lock(mutex_);
    for (auto &[which, m] : all_)
        if (reinterpret_cast<void *>(m.address) == attached.backing) --m.users;
}

void vmm_mappings::close_unused() {
    std::vector<mapping> unused;
    {
        const std::lock_guard lock(mutex_);
        for (auto it = all_.begin(); it != all_.end();) {
            if (it->second.users == 0) unused.push_back(it->second);
            it = it->second.users == 0 ? all_.erase(it) : std::next(it);
        }
    }
    for (const mapping &m : unused) unmap(m.address, m.bytes);  // it may wait for kernels, so without the lock
}

status admit_device(std::uint64_t address, std::uint64_t bytes, int device) {
    const CUresult error = allow(address, bytes, device);
    return error == CUDA_SUCCESS ? status{} : driver_error("cuMemSetAccess", error);
}

}  // namespace mpix::transport
